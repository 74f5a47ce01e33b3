/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bpf/blast.bpf.c and crates/datapath/src/blast.rs share. The Rust side of these types is
 * generated from the program's BTF; sizes are asserted here and there. Integers are in host byte
 * order unless their comment says otherwise.
 */
#ifndef NIGH_ABI_BLAST_H
#define NIGH_ABI_BLAST_H

#include <linux/types.h>

/* Room for Ethernet, two tags, IPv6, ICMP and the probe: 14 + 8 + 40 + 8 + 16. */
#define BLAST_HEAD 88
/* The longest payload behind the probe: more than fits in a page with XDP. */
#define BLAST_REST 4096
/* Seconds of a run that are counted one by one; later ones go into the last. */
#define BLAST_SECONDS 3600
/* Threads that send, each a contiguous range of indices. */
#define BLAST_STREAMS 64
/* Round-trip times in nanoseconds: exact below 64, then 32 buckets to a power of two. */
#define BLAST_BUCKETS 2048

/* What is sent and what is expected back. Constant while a program is loaded. */
struct blast_plan {
	__u8 head[BLAST_HEAD]; /* the request up to the end of the probe */
	__u32 head_len;	       /* bytes of it; even */
	__u32 icmp;	       /* offset of the ICMP header */
	__u32 frame_len;       /* bytes of the frame, without check sequence */
	__u32 base;	       /* identifier and sequence of index 0 as one number */
	__u32 total;	       /* indices of the run: 0 to total - 1 */
	__u32 first;	       /* first index of the thread that sends */
	__u32 per_stream;      /* indices of a thread; the last thread's may be more */
	__u32 stamp_mask;      /* a frame whose index has none of these bits reads the clock */
	__u32 ipv6;	       /* 1, or 0 for IPv4 */
	__u16 request_sum;     /* of the ICMP message (and pseudo header), identifier, sequence, */
	__u16 reply_sum;       /* timestamp and checksum 0; words as loaded from the packet */
};

/* Of the program that sends. */
struct blast_sent {
	__u64 start; /* ktime at which second 0 begins; written before the first run */
	__u64 clock; /* last reading */
	__u64 second;
	__u64 second_end;
	__u64 next; /* frames made so far: index relative to plan.first */
	__u64 by_second[BLAST_SECONDS];
};

/* Of the program that counts what the driver took. */
struct blast_transmitted {
	__u64 taken;
	__u64 refused;
};

/* Of the program that receives, on one CPU. */
struct blast_tally {
	__u64 received;
	__u64 duplicated;
	__u64 reordered;
	__u64 corrupt;
	__u64 rtt_sum;
	__u64 rtt_min; /* 0: none yet */
	__u64 rtt_max;
	__u64 second; /* of the last reply's request, since `start` */
};

struct blast_histogram {
	__u64 bucket[BLAST_BUCKETS];
};

_Static_assert(sizeof(struct blast_plan) == BLAST_HEAD + 40, "blast_plan");
_Static_assert(sizeof(struct blast_tally) == 64, "blast_tally");

#endif
