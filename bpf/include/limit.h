/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Token buckets for an unbounded number of sources in a bounded table.
 *
 * A bucket is one 64-bit word, the theoretical arrival time of the generic cell rate algorithm
 * (ITU-T I.371 annex A, virtual scheduling): the time at which the bucket would be full again. A
 * packet conforms if that is not further ahead of now than the tolerance allows; each one that
 * passes moves it one interval ahead. It needs no refilling and no clean-up: a bucket in the past
 * is full.
 *
 * The table has two rows of LIMIT_CELLS buckets and no tags. A source prefix hashes to one bucket
 * in each row, by two independent keyed functions (multiply-add-shift, which is strongly universal:
 * Thorup, "High Speed Hashing for Integers and Strings", section 3). Each of the two has half of
 * the rate and half of the burst, and a packet is charged to the fuller one, so a source alone in
 * both has exactly its rate. A source that shares one of them with a heavy source still has the
 * other one: half of its rate. To starve it, both must be exhausted.
 *
 * What a flood from random sources can do: it spreads over all buckets, which together take in
 * LIMIT_CELLS * rate packets a second (two rows at half the rate). With 2^18 cells and 100/s that
 * is 26.2 million a second, more than a 10 Gbit/s link carries (14.88 million of 64 bytes). Below
 * it, the buckets of a quiet source stay open. Nothing is evicted, so a flood cannot push a
 * source's state out either.
 *
 * Several CPUs may charge one bucket: compare-and-swap, so no packet passes uncharged. A CPU that
 * loses LIMIT_TRIES times in a row refuses the packet: the limit is never exceeded.
 *
 * Time comes from the jiffy counter, as reading a clock costs more than the whole program: it
 * advances in steps of 1/CONFIG_HZ (1 to 10 ms). The mean rate is exact. A burst must hold what
 * arrives within one step, burst >= rate / HZ, or the rate is not reached: user space refuses less.
 * Its unit here is 1/64 of a nanosecond, so that intervals of millions a second are still exact to
 * 0.01 %; 64 bits of it last nine years of uptime.
 */
#ifndef NIGH_LIMIT_H
#define NIGH_LIMIT_H

#include <linux/types.h>
#include "../abi/limit.h"

#define LIMIT_BITS 18
#define LIMIT_CELLS (1 << LIMIT_BITS)
#define LIMIT_TRIES 8

/* Takes one packet from the bucket: 1 if it conforms. */
static __always_inline int limit_take(__u64 *cell, __u64 seen, __u64 now,
				      const struct limit_rate *rate)
{
	int try;

	for (try = 0; try < LIMIT_TRIES; try++) {
		__u64 next = (seen > now ? seen : now) + rate->interval;
		__u64 found;

		if (next - now > rate->tolerance)
			return 0;
		found = __sync_val_compare_and_swap(cell, seen, next);
		if (found == seen)
			return 1;
		seen = found;
	}
	return 0;
}

/* Takes one packet from the fuller of a source's two buckets. */
static __always_inline int limit_take_either(__u64 (*cells)[LIMIT_CELLS], __u64 hash0, __u64 hash1,
					     __u64 now, const struct limit_rate *rates)
{
	__u64 *first = &cells[0][hash0 >> (64 - LIMIT_BITS)];
	__u64 *second = &cells[1][hash1 >> (64 - LIMIT_BITS)];
	__u64 seen0 = *(volatile __u64 *)first;
	__u64 seen1 = *(volatile __u64 *)second;

	/* A lost race at the edge may find the fuller one exhausted: the other is tried too. */
	if (seen0 <= seen1)
		return limit_take(first, seen0, now, &rates[0]) ||
		       limit_take(second, seen1, now, &rates[1]);
	return limit_take(second, seen1, now, &rates[1]) ||
	       limit_take(first, seen0, now, &rates[0]);
}

/* The keyed hash of an IPv4 prefix, host bits cleared, for one row. */
static __always_inline __u64 limit_hash4(const volatile struct limit_secret *secret, int row,
					 __u32 prefix)
{
	return prefix * secret->multiplier[row][0] + secret->offset[row];
}

/* The same of an IPv6 prefix: the pair-multiply-shift of the paper's section 3.5. */
static __always_inline __u64 limit_hash6(const volatile struct limit_secret *secret, int row,
					 __u64 high, __u64 low)
{
	return (secret->multiplier[row][0] + (__u32)(high >> 32)) *
		   (secret->multiplier[row][1] + (__u32)high) +
	       (secret->multiplier[row][2] + (__u32)(low >> 32)) *
		   (secret->multiplier[row][3] + (__u32)low) +
	       secret->offset[row];
}

#endif
