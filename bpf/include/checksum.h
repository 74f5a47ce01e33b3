/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Internet checksum (RFC 1071) over packet memory, and its changes (RFC 1624).
 *
 * Sums are kept unfolded: 32-bit words as they lie in memory, added in 64 bits, where nothing can
 * overflow for any packet. As 2^16 = 1 modulo 65,535, such a sum is worth the same as that of its
 * 16-bit halves, in either byte order (RFC 1071 section 2 (B)), so a message with a right checksum
 * is one whose sum is a multiple of 65,535, and not zero.
 */
#ifndef NIGH_CHECKSUM_H
#define NIGH_CHECKSUM_H

#include <linux/types.h>
#include "parse.h"

/* The 16-bit one's complement sum that an unfolded sum is worth; zero only for zero. */
static __always_inline __u32 csum_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/*
 * Is this sum, checksum included, that of an undamaged message? Multiples of an odd number d are
 * those that, times d's inverse modulo 2^64, are at most (2^64 - 1) / d. One multiplication and one
 * comparison instead of the fold's nine instructions.
 */
static __always_inline int csum_valid(__u64 sum)
{
	return !(sum * 0xfffefffefffeffffULL >> 48);
}

/*
 * RFC 1624 section 3, equation 3: the checksum after a 16-bit word changed. Never turns a sum of
 * something into that of nothing, except where the whole message became zero.
 */
static __always_inline __u16 csum_change(__u16 check, __u16 from, __u16 to)
{
	__u32 sum = (__u32)(__u16)~check + (__u16)~from + to;

	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16) ~((sum & 0xffff) + (sum >> 16));
}

static __always_inline __u64 csum_halves(__u64 word)
{
	return (word & 0xffffffff) + (word >> 32);
}

#define CSUM_LONGEST 16383 /* bytes: messages up to this are summed, which holds jumbo frames */

/*
 * The sum of `blocks` blocks of 64 bytes that begin `offset` bytes into the frame. A global
 * function, which the verifier checks once and not once for every path that leads here; only long
 * messages pay for the call.
 */
__noinline __u64 csum_blocks(struct xdp_md *ctx, __u32 offset, __u32 blocks)
{
	void *end = (void *)(long)ctx->data_end;
	void *from = (void *)(long)ctx->data;
	__u64 even = 0, odd = 0;
	__u32 i;

	if (offset > 256)
		return 0;
	from += offset;
	for (i = 0; i < CSUM_LONGEST / 64; i++) {
		if (i >= blocks || from + 64 > end)
			break;
		even += LOAD32(from, 0);
		odd += LOAD32(from, 4);
		even += LOAD32(from, 8);
		odd += LOAD32(from, 12);
		even += LOAD32(from, 16);
		odd += LOAD32(from, 20);
		even += LOAD32(from, 24);
		odd += LOAD32(from, 28);
		even += LOAD32(from, 32);
		odd += LOAD32(from, 36);
		even += LOAD32(from, 40);
		odd += LOAD32(from, 44);
		even += LOAD32(from, 48);
		odd += LOAD32(from, 52);
		even += LOAD32(from, 56);
		odd += LOAD32(from, 60);
		from += 64;
	}
	return even + odd;
}

/*
 * The sum of a message's bytes from the fourth on, without whole blocks of 64. It has `left` bytes
 * behind its first eight, which are known to be there; `last` points to the last eight, known to be
 * there too. What remains behind whole words of eight is taken from `last` by shifting out what was
 * summed already, so any length takes the same few instructions.
 */
static __always_inline __u64 csum_short(void *message, void *last, void *end, __u32 left)
{
	__u64 sum = LOAD32(message, 4);
	void *from = message + 8;

	/* At most seven bytes: no need to take it apart. */
	sum += LOAD64(last, 0) >> (56 - 8 * (left & 7)) >> 8;
	if (left & 16) {
		if (from + 16 > end)
			return 0;
		sum += (__u64)LOAD32(from, 0) + LOAD32(from, 4);
		sum += (__u64)LOAD32(from, 8) + LOAD32(from, 12);
		from += 16;
	}
	if (left & 32) {
		if (from + 32 > end)
			return 0;
		sum += (__u64)LOAD32(from, 0) + LOAD32(from, 4);
		sum += (__u64)LOAD32(from, 8) + LOAD32(from, 12);
		sum += (__u64)LOAD32(from, 16) + LOAD32(from, 20);
		sum += (__u64)LOAD32(from, 24) + LOAD32(from, 28);
		from += 32;
	}
	if (left & 8) {
		if (from + 8 > end)
			return 0;
		sum += (__u64)LOAD32(from, 0) + LOAD32(from, 4);
	}
	return sum;
}

/* The same for any length; the first eight bytes end `offset` bytes into the frame. */
static __always_inline __u64 csum_message(struct xdp_md *ctx, void *message, void *last, void *end,
					  __u32 offset, __u32 left)
{
	__u64 sum = csum_short(message, last, end, left);

	if (left >= 64)
		sum += csum_blocks(ctx, offset + (left & 56), left >> 6);
	return sum;
}

#endif
