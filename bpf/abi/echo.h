/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bpf/echo.bpf.c and crates/datapath/src/echo share. The Rust side of these types is generated
 * from the program's BTF; sizes are asserted here and there. Integers are in host byte order unless
 * their comment says otherwise.
 */
#ifndef NIGH_ABI_ECHO_H
#define NIGH_ABI_ECHO_H

#include <linux/types.h>
#include "limit.h"

/* Why a frame for one of our addresses was dropped; the index into echo_row.drop. */
enum echo_drop {
	ECHO_BOGON_SOURCE,
	ECHO_DENIED,
	ECHO_BAD_CHECKSUM_IP,
	ECHO_BAD_CHECKSUM_ICMP,
	ECHO_BAD_CODE,
	ECHO_BAD_LENGTH,
	ECHO_FRAGMENT,
	ECHO_NOT_UNICAST,
	ECHO_SOURCE_LIMIT,
	ECHO_NODE_LIMIT,
	ECHO_DROPS,
};

/* Rows of the ledger. */
enum echo_rows {
	ECHO_ROW_OTHER = 0, /* frames for no service address */
	ECHO_ROW_PROBE = 1, /* the health probe through a link address */
	ECHO_ROW_FIRST = 2, /* service addresses from here on */
	ECHO_ROWS = 130,    /* twice 64 addresses, so that all can change in one configuration */
};

/* echo_config.flags */
enum echo_flag {
	ECHO_VERIFY = 1,	   /* check the IPv4 header's and the ICMP message's checksum */
	ECHO_FIB = 2,		   /* answers follow the kernel's routing, not the request's MACs */
	ECHO_DROP_FRAGMENTS = 4,   /* else they are passed */
	ECHO_LISTS = 8,		   /* look the source up in the allow and deny lists */
	ECHO_REFUSE_UNLISTED = 16, /* a source that no entry of the lists covers is denied */
	ECHO_SOURCE_RATE = 32,	   /* a limit for each source prefix */
	ECHO_NODE_RATE = 64,	   /* a limit for the node */
};

/*
 * One address's counters on one CPU. The program adds to `received` before anything else and to
 * exactly one other counter after it, so a reader that copies upwards and finds
 * received == passed + answered + sum of drop has a snapshot of one instant.
 */
struct echo_row {
	__u64 drop[ECHO_DROPS];
	__u64 sampled_received; /* `received` when the last sample was taken on this CPU */
	__u64 sampled_tick;	/* the jiffy counter then */
	__u64 passed;
	__u64 answered;
	__u64 received;
};

#define ECHO_ROW_SIZE 120

/* A mask for offsets of rows. */
#define ECHO_AT_MASK 0x3fff

/* All rows of one CPU. */
struct echo_rows_of_cpu {
	struct echo_row row[ECHO_ROWS];
	__u64 pad[143]; /* so that a row at any masked offset lies within */
};

/* The values of `at` in a slot of an address without a row of its own. */
enum echo_at {
	ECHO_PROBED = 0x3ffffffe,   /* a link address */
	ECHO_NOT_OURS = 0x3fffffff, /* an empty slot; its address is zero */
	/* Added where the settings ask for more than the fast path through the program does. */
	ECHO_ALL_LONG = 0x40000000,
};

/*
 * A slot of the perfect hash table of IPv4 addresses. `at` is where the address's row begins, in
 * bytes from that of ECHO_ROW_FIRST.
 */
struct echo_slot4 {
	__be32 address;
	__u32 at;
};

struct echo_slot6 {
	__u64 address[2]; /* bytes as on the wire */
	__u64 at;
	__u64 unused;
};

#define ECHO_SLOTS 256

/* A whole configuration. There are two of them; echo_active says which one is in force. */
struct echo_config {
	__u32 flags;
	__u16 probe_id; /* ICMP identifier of the health probe, network byte order */
	__u16 unused;
	__u32 generation; /* which entries of the lists belong to this configuration: 0 or 1 */
	__be32 mask4;	  /* of a source prefix */
	__u64 mask6[2];	  /* as on the wire */
	__u64 hash4;
	__u64 hash6[2];
	struct limit_rate source[2]; /* the two rows of buckets */
	struct limit_rate node;
	struct echo_slot4 slot4[ECHO_SLOTS];
	struct echo_slot6 slot6[ECHO_SLOTS];
	__u64 pad[755]; /* to a power of two, so that choosing one of two is a single AND */
};

#define ECHO_CONFIG_SIZE 16384

/* Key of the allow and deny lists. `set` is generation * 2 + (1 for IPv6). */
struct echo_list_key {
	__u32 prefixlen; /* 32 for `set` and the prefix's own */
	__u32 set;
	__u8 address[16];
};

/* Key of the table of busy sources; an IPv4 prefix is in the first four bytes. */
struct echo_source {
	__u8 address[16];
	__u32 family; /* 4 or 6 */
};

/* Latency in nanoseconds: four buckets to a power of two, as latency_bucket() has it. */
#define ECHO_BUCKETS 128

struct echo_latency {
	__u64 bucket[ECHO_BUCKETS];
};

_Static_assert(sizeof(struct echo_row) == ECHO_ROW_SIZE, "echo_row");
_Static_assert(sizeof(struct echo_rows_of_cpu) >=
		   ECHO_ROW_FIRST * ECHO_ROW_SIZE + ECHO_AT_MASK + ECHO_ROW_SIZE,
	       "echo_rows_of_cpu");
_Static_assert(sizeof(struct echo_slot4) == 8, "echo_slot4");
_Static_assert(sizeof(struct echo_slot6) == 32, "echo_slot6");
_Static_assert(sizeof(struct echo_config) == ECHO_CONFIG_SIZE, "echo_config");
_Static_assert(sizeof(struct echo_list_key) == 24, "echo_list_key");
_Static_assert(sizeof(struct echo_source) == 20, "echo_source");

#endif
