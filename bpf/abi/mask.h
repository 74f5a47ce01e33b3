/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bpf/mask.bpf.c and crates/datapath/src/mask share. The Rust side of these types is generated
 * from the program's BTF; sizes are asserted here and there. Integers are in host byte order.
 */
#ifndef NIGH_ABI_MASK_H
#define NIGH_ABI_MASK_H

#include <linux/types.h>

enum mask_limits {
	MASK_MOST = 16,	    /* instructions of a kind of header */
	MASK_HEADER = 40,   /* bytes of the longest fixed part */
	MASK_DEPTH = 24,    /* headers of a packet, options not counted */
	MASK_SNAP = 65535,  /* bytes of a packet that are inspected */
	MASK_FILTER = 4096, /* instructions of a filter */
	MASK_PERIODS = 2,   /* keys: the current one and the next */
};

/* Kinds of headers, in the order of crate mask's layer::Kind. */
enum mask_kind {
	MASK_ETHERNET,
	MASK_VLAN,
	MASK_MPLS,
	MASK_ARP,
	MASK_IPV4,
	MASK_IPV4_ROUTE,
	MASK_IPV4_ROUTE_ADDRESS,
	MASK_IPV4_ROUTER_ALERT,
	MASK_IPV6,
	MASK_IPV6_OPTIONS,
	MASK_IPV6_ROUTING,
	MASK_IPV6_SEGMENTS,
	MASK_IPV6_ROUTING_ADDRESS,
	MASK_IPV6_FRAGMENT,
	MASK_TCP,
	MASK_TCP_MSS,
	MASK_TCP_WINDOW_SCALE,
	MASK_TCP_SACK_PERMITTED,
	MASK_TCP_SACK,
	MASK_TCP_SACK_BLOCK,
	MASK_TCP_TIMESTAMPS,
	MASK_UDP,
	MASK_ICMP,
	MASK_ICMP_ECHO,
	MASK_ICMP_REDIRECT,
	MASK_ICMP_ERROR,
	MASK_ICMPV6,
	MASK_ICMPV6_ECHO,
	MASK_ICMPV6_ERROR,
	MASK_ROUTER_ADVERTISEMENT,
	MASK_NEIGHBOUR,
	MASK_NEIGHBOUR_REDIRECT,
	MASK_NEIGHBOUR_OPTION,
	MASK_NEIGHBOUR_LINK,
	MASK_NEIGHBOUR_PREFIX,
	MASK_GRE,
	MASK_GRE_KEY,
	MASK_GRE_SEQUENCE,
	MASK_VXLAN,
	MASK_KINDS,
};

/* What an instruction makes of a field, as crate mask's program::Operation has it. */
enum mask_operation {
	MASK_KEEP,
	MASK_CONSTANT,
	MASK_XOR,
	MASK_SHIFT,
	MASK_RANDOM,
	MASK_HASH,
	MASK_ENCRYPT,
	MASK_PREFIX,
	MASK_TRUNCATE,
	MASK_PERMUTE,
};

/* How addresses are mapped so that prefixes are kept. */
enum mask_mapping {
	MASK_CRYPTO_PAN,
	MASK_IPCRYPT_PFX,
};

/* Where a packet begins. */
enum mask_link {
	MASK_LINK_ETHERNET,
	MASK_LINK_IP,
};

/* Ciphers of a period: one for numbers, and those of the mapping, of which Crypto-PAn has one. */
enum mask_cipher_name {
	MASK_NUMBERS,
	MASK_FIRST,
	MASK_SECOND,
	MASK_CIPHERS,
};

struct mask_instruction {
	__u8 at;	/* its first byte in the header */
	__u8 bytes;	/* 1, 2, 4, 6 or 16 */
	__u8 operation; /* enum mask_operation */
	__u8 kept;	/* bits that MASK_TRUNCATE and MASK_PERMUTE leave */
	__u8 bits;	/* its width */
	__u8 shift;	/* bits below it in its bytes, if these are four or fewer */
	__u16 tag;	/* which permutation or sequence of numbers */
	__u32 mask;	/* its bits, if its bytes are four or fewer */
	__u32 constant; /* of MASK_CONSTANT, MASK_XOR and MASK_SHIFT */
};
_Static_assert(sizeof(struct mask_instruction) == 16, "crates/datapath/src/mask asserts it too");

struct mask_header {
	__u8 kept[MASK_HEADER]; /* the bits that MASK_KEEP keeps of a header that is wholly there */
	__u32 words;		/* how many times eight bytes of these are to be inspected */
	__u32 others;		/* the first so many instructions do something else */
	__u32 count;		/* all of them */
	__u32 length;		/* bytes that they reach into */
	struct mask_instruction list[MASK_MOST];
};
_Static_assert(sizeof(struct mask_header) == 312, "crates/datapath/src/mask asserts it too");

/* An instruction of classic BPF: struct sock_filter of linux/filter.h. */
struct mask_filter {
	__u16 code;
	__u8 jt;
	__u8 jf;
	__u32 k;
};

struct mask_settings {
	struct mask_header headers[MASK_KINDS];
	struct mask_filter filter[MASK_FILTER];
	__u32 filters; /* instructions of the filter; without any all packets pass */
	__u32 payload; /* whether payload is kept */
	__u32 mapping; /* enum mask_mapping */
	__u32 link;    /* enum mask_link */
	__u32 snap;    /* bytes of a packet that are inspected */
	__u32 sample;  /* a packet is taken if a random number of 32 bits is at most this */
};

/* The key of a period, beside its ciphers. */
struct mask_period {
	__u64 begins_ns; /* CLOCK_TAI */
	__u64 pad[2];	 /* of Crypto-PAn, most significant half first */
	__u32 epoch;	 /* never 0, and another one for each key */
	__u32 reserved;
};

/* The request to the program that makes a cipher. */
struct mask_key {
	__u32 period; /* 0 or 1 */
	__u32 cipher; /* enum mask_cipher_name */
	__u8 key[16];
};

/* Before the bytes of a masked packet in the ring. */
struct mask_record {
	__u64 at_ns;  /* CLOCK_TAI, when it was taken */
	__u32 length; /* bytes on the wire */
	__u32 bytes;  /* bytes that follow */
	__u32 epoch;  /* of the key */
	__u32 outgoing;
};
_Static_assert(sizeof(struct mask_record) == 24, "crates/datapath/src/mask asserts it too");

/* The outcome of a packet; MASK_SEEN is the sum of all up to MASK_NO_KEY. */
enum mask_count {
	MASK_SEEN,
	MASK_TAKEN,	/* masked and given to user space */
	MASK_UNSAMPLED, /* not in the sample */
	MASK_FILTERED,	/* the filter does not want it */
	MASK_RING_FULL, /* lost: user space reads too slowly */
	MASK_UNREAD,	/* lost: the kernel did not give its bytes */
	MASK_NO_KEY,	/* lost: a cipher failed, or there is no key for its time */
	MASK_CUT,	/* beside: taken, but longer than what is inspected */
	MASK_COUNTS,
};

struct mask_counts {
	__u64 count[MASK_COUNTS];
};

/* Before a packet that a test gives to the program, to compare both engines. */
struct mask_trial {
	__u64 number; /* of the packet in its data set */
	__u32 link;   /* enum mask_link */
	__u32 reserved;
};
_Static_assert(sizeof(struct mask_trial) == 16, "crates/datapath/src/mask asserts it too");

#endif
