/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mask's state: the program, its keys, the ring, and a unit for each processor in which a
 * packet is masked.
 *
 * A unit is an element of an array and not of one of its own for each processor, whose elements are
 * too short for a packet. The process that has it may write it, to wipe it at the end, but not read
 * it; whoever may read all memory of the kernel can.
 */
#ifndef NIGH_MASK_STATE_H
#define NIGH_MASK_STATE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../abi/mask.h"
#include "parse.h"

#define MASK_ROOM (2 * 65536) /* an offset and a length of 16 bits each lie in it */
#define MASK_SLOTS4 16	      /* slots of the caches, as powers of two; of IPv4 pairs of them */
#define MASK_SLOTS6 12
#define MASK_SLOTS_OTHERS 12
#define MASK_SLOTS_UPPER6 10
#define MASK_SUMS MASK_DEPTH /* checksums: no header has two */
#define MASK_BLOCKS 128	     /* of 16 bytes that are encrypted at once */

/* A number of 128 bits. */
struct mask_wide {
	union {
		struct {
			__u64 hi, lo;
		};
		__u64 half[2];
	};
};

struct mask_slot4 {
	__u32 epoch, address, mapped;
};

struct mask_slot6 {
	struct mask_wide address, mapped;
	__u32 epoch;
};

struct mask_upper4 {
	__u32 epoch, flips;
};

struct mask_upper6 {
	__u64 network, flips;
	__u32 epoch;
};

struct mask_slot {
	struct mask_wide value, result;
	__u32 epoch, whose;
};

/* A checksum that is to be computed when all headers are there. */
struct mask_sum {
	__u64 pseudo;
	__u32 at, from, to, zero_is_none;
};

/* What comes next in a packet. */
enum mask_next {
	NEXT_NOTHING,
	/* These are headers, of which a packet has MASK_DEPTH at most. */
	NEXT_ETHERNET,
	NEXT_TYPE, /* `protocol` is an EtherType */
	NEXT_IP,
	NEXT_LABELLED, /* below the last label of MPLS, where nothing identifies the header */
	NEXT_PROTOCOL, /* `protocol` is one of IP's */
	NEXT_PAYLOAD,
	/* These are the kinds found for such a header, or its parts. */
	NEXT_IPV4,
	NEXT_IPV4_OPTION,
	NEXT_IPV6,
	NEXT_EXTENSION,
	NEXT_ROUTING_ADDRESS,
	NEXT_TCP,
	NEXT_TCP_OPTION,
	NEXT_UDP,
	NEXT_GRE,
	NEXT_ICMP,
	NEXT_ICMPV6,
	NEXT_NEIGHBOUR_OPTION,
};

struct mask_unit {
	/* Given to user space in one piece; what is not written of the packet is zero. */
	struct mask_record record;
	__u8 out[MASK_ROOM];
	__u8 in[MASK_ROOM];
	__u8 blocks[MASK_BLOCKS * 16];
	__u64 pad[2];
	__u64 number; /* the packet's in its data set */
	__u64 taken;  /* packets of this processor */
	__u32 epoch, period;
	__u32 failed; /* a cipher did */
	__u32 busy;   /* a packet is in it */

	/* Registers of the operations: what goes in, what chooses a permutation, what comes out. */
	struct mask_wide value, tweak, result;

	/* The walk: its position, and what comes next. */
	__u32 at, next, depth, protocol;
	__u32 end;  /* of what belongs to the packet: padding and trailers do not */
	__u32 kept; /* the end of what is kept */
	/* The IP packet in which it is. */
	__u32 quoted;	 /* an ICMP error quotes it, so its end is missing */
	__u32 fragment;	 /* it is one */
	__u32 ip;	 /* where its header begins */
	__u32 ip_end;	 /* where its payload ends on the wire */
	__u64 addresses; /* the sum of its pseudo-header's, in the result */
	/* The options or addresses of a header, whose length is `header`. */
	__u32 option, options_end, header, goal;

	__u32 sums;
	struct mask_sum sum[MASK_SUMS];

	/* The filter's machine. */
	__u32 pc, a, x, accepted;
	__u32 memory[16];

	/* What was mapped last, and which of the upper bits Crypto-PAn flips. */
	struct mask_slot4 cache4[1 << MASK_SLOTS4][2];
	struct mask_slot6 cache6[1 << MASK_SLOTS6];
	struct mask_upper4 upper4[1 << 16];
	struct mask_upper6 upper6[1 << MASK_SLOTS_UPPER6];
	struct mask_slot others[1 << MASK_SLOTS_OTHERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space sets it to the number of processors */
	__uint(map_flags, BPF_F_WRONLY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct mask_unit));
} mask_units SEC(".maps");

/* Nothing, to erase with. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 65536);
} mask_nothing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MASK_PERIODS);
	__uint(map_flags, BPF_F_WRONLY);
	__type(key, __u32);
	__type(value, struct mask_period);
} mask_periods SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} mask_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mask_counts);
} mask_ledger SEC(".maps");

const volatile struct mask_settings mask_settings = {};

/* So that these are in the BTF. */
const volatile enum mask_limits mask_btf_limits = MASK_MOST;
const volatile enum mask_kind mask_btf_kind = 0;
const volatile enum mask_operation mask_btf_operation = 0;
const volatile enum mask_mapping mask_btf_mapping = 0;
const volatile enum mask_link mask_btf_link = 0;
const volatile enum mask_cipher_name mask_btf_cipher = 0;
const volatile enum mask_count mask_btf_count = 0;
const volatile struct mask_record mask_btf_record = {};
const volatile struct mask_key mask_btf_key = {};
const volatile struct mask_trial mask_btf_trial = {};

static __always_inline struct mask_unit *mask_unit(void)
{
	__u32 processor = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&mask_units, &processor);
}

/* An offset that is sure to lie in a unit's room, with as much again behind it. */
static __always_inline __u32 mask_offset(__u32 at)
{
	asm volatile("" : "+r"(at));
	return at & 0xffff;
}

/* A length that is not zero, as Linux 6.1 does not see it from a comparison. */
static __always_inline __u32 mask_length(__u32 length)
{
	return mask_offset(length - 1) + 1;
}

#endif
