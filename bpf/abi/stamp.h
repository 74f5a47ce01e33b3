/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bpf/stamp.bpf.c and crates/datapath/src/stamp share. The Rust side of these types is
 * generated from the program's BTF; sizes are asserted here and there. Integers are in host byte
 * order unless their comment says otherwise.
 */
#ifndef NIGH_ABI_STAMP_H
#define NIGH_ABI_STAMP_H

#include <linux/types.h>
#include <linux/bpf.h>
#include "limit.h"

/* The outcome of a packet; the index into stamp_counts.count. */
enum stamp_count {
	STAMP_OTHER,	    /* to the kernel: for no address and port of the reflector */
	STAMP_REFLECTED,    /* reflected here */
	STAMP_PASS_SENDER,  /* to the sockets: of no session here */
	STAMP_PASS_FORM,    /* to the sockets: fragments, options, lengths that do not fit */
	STAMP_TOO_SHORT,    /* dropped: it ends before the base packet does */
	STAMP_BAD_CHECKSUM, /* dropped: the IPv4 header's or UDP's checksum is wrong */
	STAMP_CORRUPT,	    /* dropped: the multiplier of its Error Estimate is zero */
	STAMP_OVER_RATE,    /* dropped: beyond the rate of its session */
	STAMP_COUNTS,
};

struct stamp_counts {
	__u64 count[STAMP_COUNTS];
};

/* An address and port of the reflector; IPv4 addresses are written as IPv6 has them,
 * ::ffff:a.b.c.d. */
struct stamp_service {
	__u8 address[16];
	__be16 port;
	__u16 unused;
};

/* What identifies a session: its source address and its SSID. */
struct stamp_sender {
	__u8 address[16];
	__be16 ssid;
	__u16 unused;
};

/* A session: its agreed rate, and what has happened in it. */
struct stamp_session {
	struct bpf_spin_lock lock;
	__u32 reflected; /* packets: the number of the next one */
	__u32 highest;	 /* the sender's number that is highest so far */
	__u32 begun;	 /* whether there was a packet */
	__u64 newest;	 /* the sender's time of the packet that was sent last */
	__u64 bucket;	 /* when the bucket will be full again */
	struct limit_rate rate;
};

/*
 * The state of the clock. TAI less this value, in nanoseconds, is the time of the system's clock
 * since 1970: the program may read only the former. There are two of these; stamp_active says which
 * is in force.
 *
 * The error bounds how far the clock is off until a time of CLOCK_BOOTTIME, unless somebody steps
 * it: then TAI less that clock, which only slewing moves alike, is no longer what it was.
 */
struct stamp_clock {
	__u64 tai_ahead_ns;
	__u64 boot_behind_ns; /* TAI less CLOCK_BOOTTIME */
	__u64 until_ns;	      /* by CLOCK_BOOTTIME */
	__be16 error;	      /* Error Estimate */
	__u16 unused[3];
};

enum stamp_limits {
	STAMP_SERVICES = 256,
	STAMP_SESSIONS = 16384,
	/* Nanoseconds by which the clock may seem stepped that was not: both clocks are not read at
	 * one moment. */
	STAMP_SLACK = 10000,
};

_Static_assert(sizeof(struct stamp_service) == 20, "stamp_service");
_Static_assert(sizeof(struct stamp_sender) == 20, "stamp_sender");
_Static_assert(sizeof(struct stamp_session) == 48, "stamp_session");
_Static_assert(sizeof(struct stamp_clock) == 32, "stamp_clock");

#endif
