/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bpf/oracle.bpf.c and crates/datapath/src/oracle share. The Rust side of these types is
 * generated from the program's BTF; sizes are asserted here and there. Integers are in host byte
 * order unless their comment says otherwise.
 */
#ifndef NIGH_ABI_ORACLE_H
#define NIGH_ABI_ORACLE_H

#include <linux/types.h>
#include "limit.h"

/* The outcome of a packet; the index into oracle_counts.count. */
enum oracle_count {
	ORACLE_OTHER,		 /* to the kernel: for no address and port of the service */
	ORACLE_ANSWERED,	 /* answered here */
	ORACLE_OVER_RATE,	 /* dropped here: the source prefix is over its rate */
	ORACLE_PASS_SENDER,	 /* to the sockets: a sender that cannot be answered from here */
	ORACLE_PASS_LENGTH,	 /* to the sockets: lengths that are not those of a plain request */
	ORACLE_PASS_FORM,	 /* to the sockets: a request that is not the plain one */
	ORACLE_PASS_SUM,	 /* to the sockets: a wrong header checksum, or an unfinished one */
	ORACLE_PASS_TABLE,	 /* to the sockets: there is no row for this source and metric */
	ORACLE_SOCKET_TAKEN,	 /* the filter of the sockets let it in */
	ORACLE_SOCKET_OVER_RATE, /* the filter of the sockets dropped it: over its rate */
	ORACLE_COUNTS,
};

struct oracle_counts {
	__u64 count[ORACLE_COUNTS];
};

enum oracle_limits {
	ORACLE_CANDIDATES = 363, /* IPv4 addresses in a request, at the most */
	ORACLE_METRICS = 12,	 /* bits of a servcode */
	ORACLE_SLOTS = 256,
	/* Values from here on are blocks of 256 addresses, those below are groups. */
	ORACLE_FIRST_BLOCK = 49152,
	/* Runs that a line has room for. */
	ORACLE_LINE_VALUES = 20,
	/* Ranks of a row, unknown included. */
	ORACLE_RANKS = 1024,
};

/* A slot of the perfect hash table of the service's addresses and ports, as on the wire. */
struct oracle_slot {
	__be32 address;
	__be16 port;
	__u16 used;
};

/* Settings. There are two of them; bit 0 of oracle_active says which one is in force. */
struct oracle_config {
	__u64 hash;
	struct limit_rate source[2]; /* the two rows of buckets */
	__u64 mask6[2];		     /* of a source prefix, as on the wire */
	__be32 mask4;
	__u16 limited; /* is there a limit? */
	__be16 ttl;
	struct oracle_slot slot[ORACLE_SLOTS];
};

/*
 * The values of the 128 /24s of a /17, in what a processor loads at once. A value is a group, or a
 * block from ORACLE_FIRST_BLOCK on; a run is /24s in a row of one value.
 */
struct oracle_line {
	/*
	 * Of each /20 three bytes, a little-endian number. Bit n from 0 to 14 marks that between
	 * its /24s n and n + 1 a run begins; bits 15 to 19 are the index of its last run in
	 * `values`.
	 */
	__u8 runs[24];
	__u16 values[ORACLE_LINE_VALUES];
};

/* In such a number: its other bits are the index into `dense` of the values of the /19. */
#define ORACLE_DENSE (1 << 23)

/*
 * Where tables lie in the arena. There are two of them; bit 1 of oracle_active says which one is in
 * force. All are addresses as in include/arena.h.
 *
 *   lines    2^17 of struct oracle_line, one for each /17
 *   dense    of 32 16-bit values, for the /24s of a /19 that has too many runs for its line
 *   blocks   of 256 16-bit groups, one for each address of a /24 with longer prefixes
 *   rows     for each metric, a 32-bit value for each group of a source: the address of its row, or
 *            zero; a row is the number of its ranks, unknown included, six bytes of nothing, then
 *            twice the 16-bit rank for each group. Group 0 is what has no route, and has
 * the last rank.
 */
struct oracle_tables {
	__be32 head; /* the first word of a reply: the metrics that there are */
	__u32 lines;
	__u32 dense;
	__u32 blocks;
	__u32 rows[ORACLE_METRICS]; /* zero: this metric is not here */
};

/* oracle_active */
enum oracle_state {
	ORACLE_CONFIG = 1,
	ORACLE_TABLES = 2,
	ORACLE_READY = 4, /* there are tables at all */
};

_Static_assert(sizeof(struct oracle_slot) == 8, "oracle_slot");
_Static_assert(sizeof(struct oracle_config) == 2112, "oracle_config");
_Static_assert(sizeof(struct oracle_line) == 64, "oracle_line");
_Static_assert(sizeof(struct oracle_tables) == 64, "oracle_tables");

#endif
