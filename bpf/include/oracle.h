/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state and settings of the oracle, and the ranking of a list of candidates.
 *
 *   candidate -> line of its /17 -> value of its /24 (-> block[its last byte]) = group
 *   group -> row of the source -> rank
 *
 * The list is then sorted by rank with a counting sort, which keeps the order of equals. Each step
 * is a loop of its own over all candidates: the first has nothing in it but the load of a word of
 * the line, so a processor has many of these in flight at once, and most miss its nearest
 * caches; the second finds the rest of the line there. Loops take several candidates a turn; what
 * that leaves over at the end of the list is given group 0, which has the last rank, so a sort
 * that keeps the order puts it behind the list.
 */
#ifndef NIGH_ORACLE_H
#define NIGH_ORACLE_H

#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../abi/oracle.h"
#include "arena.h"
#include "checksum.h"
#include "limit.h"
#include "parse.h"

/* Pages of 4,096 bytes: two copies of all tables. User space has the plan of it. */
#define ORACLE_ARENA_PAGES (1 << 17)

struct {
	__uint(type, MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ORACLE_ARENA_PAGES);
} oracle_arena SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct oracle_counts);
} oracle_ledger SEC(".maps");

#define ORACLE_LIST 512 /* candidates and more, to a power of two */

struct oracle_scratch {
	__u64 turn;			/* how far a loop is */
	__be32 from[ORACLE_LIST];	/* candidates as they came */
	__be32 to[ORACLE_LIST];		/* candidates by rank */
	__u32 is[ORACLE_LIST + 8];	/* a candidate's runs, then its value, then its rank */
	__u16 count[ORACLE_RANKS + 16]; /* bytes of those with this rank; zero between lists */
	__u16 next[ORACLE_RANKS + 16];	/* where in `to` the next one with this rank goes */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct oracle_scratch);
} oracle_scratch SEC(".maps");

struct oracle_config oracle_configs[2];
struct oracle_tables oracle_tables[2];
__u32 oracle_active; /* enum oracle_state */

__u64 oracle_buckets[2][LIMIT_CELLS] SEC(".bss.buckets");

const volatile struct limit_secret oracle_secret = {};
const volatile __u64 oracle_tick = 4000000 * 64; /* one jiffy in units of the limiter */

/* So that these are in the BTF. */
const volatile enum oracle_count oracle_btf_count = 0;
const volatile struct oracle_line oracle_btf_line = {};
const volatile enum oracle_limits oracle_btf_limits = ORACLE_CANDIDATES;
const volatile enum oracle_state oracle_btf_state = ORACLE_CONFIG;

static __always_inline void oracle_count(__u32 what)
{
	__u32 zero = 0;
	struct oracle_counts *counts = bpf_map_lookup_elem(&oracle_ledger, &zero);

	if (counts && what < ORACLE_COUNTS)
		counts->count[what]++;
}

/* Is one more packet of this source prefix within its rate? */
static __always_inline int oracle_within4(const struct oracle_config *config, __be32 source)
{
	__u32 prefix = source & config->mask4;

	return limit_take_either(oracle_buckets, limit_hash4(&oracle_secret, 0, prefix),
				 limit_hash4(&oracle_secret, 1, prefix),
				 bpf_jiffies64() * oracle_tick, config->source);
}

static __always_inline int oracle_within6(const struct oracle_config *config, __u64 high, __u64 low)
{
	high &= config->mask6[0];
	low &= config->mask6[1];
	return limit_take_either(oracle_buckets, limit_hash6(&oracle_secret, 0, high, low),
				 limit_hash6(&oracle_secret, 1, high, low),
				 bpf_jiffies64() * oracle_tick, config->source);
}

/* The runs of the /20 of an address, and eight bits of something else. */
static __always_inline __u32 oracle_runs(void *lines, __u32 address)
{
	__u64 part = address >> 12 & 7;

	return *(__u32 *)(lines + (address >> 15 << 6) + part * 3);
}

/*
 * The value of the /24 of an address: that of the last run of its /20, and as many runs back as
 * begin between the two. To count these, four copies of the 15 bits side by side show each bit once
 * at every fourth position, as 15 = -1 modulo 4; their sum, at most 15, is the upper four bits of a
 * multiplication.
 */
static __always_inline __u32 oracle_value(void *lines, __u32 dense, __u32 runs, __u32 address)
{
	__u64 back = (runs & 0x7fff) >> (address >> 8 & 15), last = runs >> 15 & 31;

	if (unlikely(runs & ORACLE_DENSE))
		return arena_u16(dense + ((runs & 0x7ffff) << 6) + (address >> 7 & 62));
	back = (back * 0x200040008001ULL & 0x111111111111111ULL) * 0x1111111111111111ULL >> 60;
	return *(__u16 *)(lines + (address >> 15 << 6) + ((last - back) << 1) +
			  offsetof(struct oracle_line, values));
}

/* The group from a value and an address. */
static __always_inline __u32 oracle_group(__u32 blocks, __u32 value, __u32 last_byte)
{
	if (unlikely(value >= ORACLE_FIRST_BLOCK))
		return arena_u16(blocks + ((value - ORACLE_FIRST_BLOCK) << 9) + (last_byte << 1));
	return value;
}

/* The address of the row for a source and metric; zero if there is none. */
static __always_inline __u32 oracle_row(const struct oracle_tables *tables, __u32 metric,
					__be32 source)
{
	__u32 address = __builtin_bswap32(source), rows, group;
	void *lines = arena_at(tables->lines);

	if (metric >= ORACLE_METRICS)
		return 0;
	rows = tables->rows[metric];
	if (!rows)
		return 0;
	group = oracle_value(lines, tables->dense, oracle_runs(lines, address), address);
	group = oracle_group(tables->blocks, group, address & 255);
	return arena_u32(rows + (group << 2));
}

/*
 * A loop over 0, step, 2 * step ... below `end`. Its counter is in memory and not in a register:
 * the verifier knows nothing about values read from there, so it need not check each turn
 * separately.
 */
#define EACH(scratch, i, end, step)                                                                \
	for (*(volatile __u64 *)&(scratch)->turn = 0;                                              \
	     (i = *(volatile __u64 *)&(scratch)->turn) < (end) && MAY_LOOP;                        \
	     *(volatile __u64 *)&(scratch)->turn = (i) + (step))

/* Candidates a turn: where the loads miss, and elsewhere. */
#define ORACLE_FAR 8
#define ORACLE_NEAR 4

/* Of the members of a list at a turn the compiler is to see no more than distances. */
#define AT(list, i, step)                                                                          \
	({                                                                                         \
		typeof(&(list)[0]) first = &(list)[(i) & (ORACLE_LIST - (step))];                  \
		asm volatile("" : "+r"(first));                                                    \
		first;                                                                             \
	})

#define ORACLE_SUMS 0x0001000100010001ULL /* one in each of the four 16-bit numbers of a word */

/*
 * Puts the first `count` candidates of this CPU's `from` in order into its `to`. A global function,
 * which the verifier checks once and not once for every path that leads here.
 */
__noinline int oracle_rank(__u32 which, __u32 row, __u32 count)
{
	const struct oracle_tables *tables = &oracle_tables[which & 1];
	void *lines = arena_at(tables->lines), *ranks = arena_at(row);
	__u32 dense = tables->dense, blocks = tables->blocks, zero = 0, i;
	struct oracle_scratch *scratch;
	__u64 before = 0;

	ARENA_USE(oracle_arena);
	scratch = bpf_map_lookup_elem(&oracle_scratch, &zero);
	if (!scratch)
		return 0;

	EACH(scratch, i, count, ORACLE_FAR)
	{
		__be32 *from = AT(scratch->from, i, ORACLE_FAR);
		__u32 *is = AT(scratch->is, i, ORACLE_FAR);
#pragma unroll
		for (int k = 0; k < ORACLE_FAR; k++)
			is[k] = oracle_runs(lines, __builtin_bswap32(from[k]));
	}

	EACH(scratch, i, count, ORACLE_FAR)
	{
		__be32 *from = AT(scratch->from, i, ORACLE_FAR);
		__u32 *is = AT(scratch->is, i, ORACLE_FAR);
#pragma unroll
		for (int k = 0; k < ORACLE_FAR; k++)
			is[k] = oracle_value(lines, dense, is[k], __builtin_bswap32(from[k]));
	}
#pragma unroll
	for (int k = 0; k < ORACLE_NEAR; k++)
		scratch->is[(count & (ORACLE_LIST - 1)) + k] = 0;

	EACH(scratch, i, count, ORACLE_NEAR)
	{
		__be32 *from = AT(scratch->from, i, ORACLE_NEAR);
		__u32 *is = AT(scratch->is, i, ORACLE_NEAR);
#pragma unroll
		for (int k = 0; k < ORACLE_NEAR; k++) {
			__u64 group = oracle_group(blocks, is[k], from[k] >> 24);
			__u32 rank = *(__u16 *)(ranks + 8 + (group << 1));

			is[k] = rank;
			rank &= ORACLE_RANKS * 2 - 2;
			*(__u16 *)((void *)scratch->count + rank) += 4;
		}
	}

	/*
	 * Four counts at a time: a multiplication by ORACLE_SUMS adds to each number those below
	 * it, as no sum is too long for 16 bits.
	 */
	EACH(scratch, i, *(__u16 *)ranks, 16)
	{
		__u32 at = i & (ORACLE_RANKS - 16);

#pragma unroll
		for (int k = 0; k < 16; k += 4) {
			__u64 *counts = (__u64 *)&scratch->count[at + k];
			__u64 four = *counts, sums = four * ORACLE_SUMS;

			*counts = 0;
			*(__u64 *)&scratch->next[at + k] = before + sums - four;
			before += (sums >> 48) * ORACLE_SUMS;
		}
	}

	EACH(scratch, i, count, ORACLE_NEAR)
	{
		__be32 *from = AT(scratch->from, i, ORACLE_NEAR);
		__u32 *is = AT(scratch->is, i, ORACLE_NEAR);
#pragma unroll
		for (int k = 0; k < ORACLE_NEAR; k++) {
			__u32 rank = is[k] & (ORACLE_RANKS * 2 - 2);
			__u16 *next = (void *)scratch->next + rank;
			__u32 to = *next;

			*next = to + 4;
			*(__be32 *)((void *)scratch->to + (to & (ORACLE_LIST * 4 - 4))) = from[k];
		}
	}
	return 1;
}

#endif
