/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers, permutations and mappings of addresses under a key: twin of crate mask's
 * machine/secrets.rs and mapping/, bit for bit. AES is the kernel's (cipher.h); what it gave for
 * addresses and values seen before is remembered.
 */
#ifndef NIGH_MASK_SECRETS_H
#define NIGH_MASK_SECRETS_H

#include "cipher.h"
#include "mask_state.h"

/* The purpose of a number: the same value gives another number for each. */
enum mask_domain {
	DOMAIN_RANDOM = 1,
	DOMAIN_HASH,
	DOMAIN_TWEAK,
};

#define MASK_ROUNDS 8 /* of a permutation */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MASK_PERIODS *MASK_CIPHERS);
	__type(key, __u32);
	__type(value, struct cipher);
} mask_ciphers SEC(".maps");

/* The epoch of a result: none after a cipher has failed, so that it is not believed later. */
static __always_inline __u32 mask_epoch(const struct mask_unit *u)
{
	return u->failed ? 0 : u->epoch;
}

/* Encrypts the first `count` of the unit's blocks, each by itself. */
__noinline int mask_aes(__u32 cipher, __u32 count)
{
	struct mask_unit *u = mask_unit();
	struct cipher *slot;

	if (!u)
		return 0;
	cipher += u->period * MASK_CIPHERS;
	slot = bpf_map_lookup_elem(&mask_ciphers, &cipher);
	if (!slot || count > MASK_BLOCKS || !cipher_encrypt(slot, u->blocks, count * 16))
		u->failed = 1;
	return 0;
}

static __always_inline void mask_put(struct mask_unit *u, __u32 n, __u64 hi, __u64 lo)
{
	STORE64(u->blocks, n * 16, __builtin_bswap64(hi));
	STORE64(u->blocks, n * 16 + 8, __builtin_bswap64(lo));
}

static __always_inline struct mask_wide mask_block(struct mask_unit *u, __u64 hi, __u64 lo)
{
	struct mask_wide wide;

	mask_put(u, 0, hi, lo);
	mask_aes(MASK_NUMBERS, 1);
	wide.hi = __builtin_bswap64(LOAD64(u->blocks, 0));
	wide.lo = __builtin_bswap64(LOAD64(u->blocks, 8));
	return wide;
}

/* A number of 128 bits that depends only on the key and these values, into `result`. */
__noinline int mask_number(__u32 domain, __u32 tag, __u64 hi, __u64 lo)
{
	struct mask_unit *u = mask_unit();
	struct mask_wide wide;

	if (!u)
		return 0;
	wide = mask_block(u, hi, lo);
	u->result = mask_block(u, wide.hi, wide.lo ^ (domain << 16 | tag));
	return 0;
}

/* So many ones at the end of 64 bits. */
static __always_inline __u64 mask_ones(__u32 bits)
{
	return bits >= 64 ? ~0ULL : (1ULL << bits) - 1;
}

/*
 * `value`, of 1 to 128 bits, in the permutation that `tweak` chooses: a Feistel network of
 * alternating halves, of which none has more than 64 bits. It uses the unit's blocks by itself
 * and not by mask_number, since a program may not be deeper than eight calls.
 */
__noinline int mask_permute(__u32 tag, __u32 bits)
{
	struct mask_unit *u = mask_unit();
	__u64 left, right, left_mask, right_mask, salt;
	struct mask_wide value, tweak, wide;
	__u32 right_bits = bits / 2, round;

	if (!u || bits > 128)
		return 0;
	value = u->value;
	tweak = mask_block(u, u->tweak.hi, u->tweak.lo);
	tweak = mask_block(u, tweak.hi, tweak.lo ^ (DOMAIN_TWEAK << 16 | (__u64)tag));
	if (bits < 2) {
		/* The only permutations of one bit: it stays or flips. */
		u->result.hi = 0;
		u->result.lo = value.lo ^ (tweak.lo & bits);
		return 0;
	}
	left_mask = mask_ones(bits - right_bits);
	right_mask = mask_ones(right_bits);
	right = value.lo & right_mask;
	left = right_bits >= 64 ? value.hi
				: value.lo >> right_bits | value.hi << 1 << (63 - right_bits);
	left &= left_mask;
	for (round = 0; round < MASK_ROUNDS; round++) {
		salt = tweak.hi ^ (__u64)round << 56 ^ (__u64)bits << 48;
		if (round & 1) {
			wide = mask_block(u, salt, tweak.lo ^ left);
			right ^= wide.lo & right_mask;
		} else {
			wide = mask_block(u, salt, tweak.lo ^ right);
			left ^= wide.lo & left_mask;
		}
	}
	if (right_bits >= 64) {
		u->result.hi = left;
		u->result.lo = right;
	} else {
		u->result.hi = left >> 1 >> (63 - right_bits);
		u->result.lo = left << right_bits | right;
	}
	return 0;
}

/*
 * Adds to `result` a bit of each of the first `count` blocks, from this position on, counted from
 * the most significant: the first bit of a block, or the last. This loop and those below have no
 * branches, as the verifier would follow each at every turn.
 */
__noinline int mask_gather(__u32 start, __u32 count, __u32 last)
{
	__u32 byte = last ? 15 : 0, shift = last ? 0 : 7, i, n;
	struct mask_unit *u = mask_unit();
	__u64 bit;

	if (!u)
		return 0;
	barrier_var(byte);
	barrier_var(shift);
#pragma clang loop unroll(disable)
	for (i = 0; i < MASK_BLOCKS; i++) {
		if (i >= count)
			break;
		n = start + i;
		bit = u->blocks[i * 16 + (byte & 15)] >> (shift & 7) & 1;
		u->result.half[n >> 6 & 1] ^= bit << (~n & 63);
	}
	return 0;
}

/* Which of `count` bits of `value` Crypto-PAn flips, from this one on, into their positions of
 * `result`. */
__noinline int mask_crypto_pan(__u32 start, __u32 count)
{
	struct mask_unit *u = mask_unit();
	__u64 kept, is_lower, hi, lo;
	__u32 i, n;

	if (!u)
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < 64; i++) {
		if (i >= count)
			break;
		/* The first n bits of the value, then the pad from bit n on. */
		n = start + i;
		kept = ~(~0ULL >> (n & 63));
		is_lower = -(__u64)(n >> 6 & 1);
		hi = kept | is_lower;
		lo = kept & is_lower;
		mask_put(u, i, (u->value.hi & hi) | (u->pad[0] & ~hi),
			 (u->value.lo & lo) | (u->pad[1] & ~lo));
	}
	u->result.hi = u->result.lo = 0;
	mask_aes(MASK_FIRST, count);
	mask_gather(start, count, 0);
	return 0;
}

/* The blocks of ipcrypt-pfx: the first n bits of `value`, each time one more, at the end behind a
 * one; from none on, or from 96, which is where an IPv4 address begins. */
__noinline int mask_prefixes(__u32 is_ipv4)
{
	struct mask_unit *u = mask_unit();
	struct mask_wide rest, block = {.lo = 1};
	__u32 i, count = MASK_BLOCKS;

	if (!u)
		return 0;
	rest = u->value;
	if (is_ipv4) {
		block.hi = 1ULL << 32 | rest.hi >> 32;
		block.lo = rest.hi << 32 | rest.lo >> 32;
		rest.hi = rest.lo << 32;
		count = 32;
	}
#pragma clang loop unroll(disable)
	for (i = 0; i < MASK_BLOCKS; i++) {
		if (i >= count)
			break;
		mask_put(u, i, block.hi, block.lo);
		block.hi = block.hi << 1 | block.lo >> 63;
		block.lo = block.lo << 1 | rest.hi >> 63;
		rest.hi = rest.hi << 1 | rest.lo >> 63;
		rest.lo <<= 1;
	}
	return 0;
}

/* Which bits of `value` ipcrypt-pfx flips, of an IPv4 address the last 32: the sum of two ciphers
 * of the same blocks. */
__noinline int mask_ipcrypt_pfx(__u32 is_ipv4)
{
	__u32 start = is_ipv4 ? 96 : 0, cipher;
	struct mask_unit *u = mask_unit();

	if (!u)
		return 0;
	u->result.hi = u->result.lo = 0;
	for (cipher = MASK_FIRST; cipher <= MASK_SECOND; cipher++) {
		mask_prefixes(is_ipv4);
		mask_aes(cipher, 128 - start);
		mask_gather(start, 128 - start, 1);
	}
	return 0;
}

/* The mapping of an IPv4 address that was not mapped before, into `result`. */
__noinline int mask_fresh4(__u32 address)
{
	struct mask_unit *u = mask_unit();
	struct mask_upper4 *upper;

	if (!u)
		return 0;
	if (mask_settings.mapping == MASK_IPCRYPT_PFX) {
		u->value.hi = 0;
		u->value.lo = 0xffffULL << 32 | address;
		mask_ipcrypt_pfx(1);
		u->result.lo = (address ^ u->result.lo) & 0xffffffff;
		return 0;
	}
	u->value.hi = (__u64)address << 32;
	u->value.lo = 0;
	upper = &u->upper4[address >> 16 & 0xffff];
	if (upper->epoch != u->epoch) {
		mask_crypto_pan(0, 16);
		upper->flips = u->result.hi >> 32;
		upper->epoch = mask_epoch(u);
	}
	mask_crypto_pan(16, 16);
	u->result.lo = address ^ upper->flips ^ u->result.hi >> 32;
	return 0;
}

static __always_inline __u32 mask_slot6(__u64 hi, __u64 lo, __u32 slots)
{
	return (hi ^ (lo << 32 | lo >> 32)) * 0x9e3779b97f4a7c15ULL >> (64 - slots);
}

/* The same of the IPv6 address in `value`. */
__noinline int mask_fresh6(void)
{
	struct mask_unit *u = mask_unit();
	struct mask_upper6 *upper;
	struct mask_wide value;

	if (!u)
		return 0;
	value = u->value;
	if (mask_settings.mapping == MASK_IPCRYPT_PFX) {
		/* One that holds an IPv4 address is mapped like this one. */
		mask_ipcrypt_pfx(!value.hi && value.lo >> 32 == 0xffff);
		u->result.hi ^= value.hi;
		u->result.lo ^= value.lo;
		return 0;
	}
	upper = &u->upper6[mask_slot6(0, value.hi, MASK_SLOTS_UPPER6)];
	if (upper->epoch != u->epoch || upper->network != value.hi) {
		mask_crypto_pan(0, 64);
		upper->flips = u->result.hi;
		upper->network = value.hi;
		upper->epoch = mask_epoch(u);
	}
	mask_crypto_pan(64, 64);
	u->result.hi = value.hi ^ upper->flips;
	u->result.lo ^= value.lo;
	return 0;
}

static __always_inline int mask_is_of(const struct mask_slot4 *slot, __u32 address, __u32 epoch)
{
	return slot->address == address && slot->epoch == epoch;
}

/* Of the two addresses of a slot the one that came last is the first. */
static __always_inline __u32 mask_prefix4(struct mask_unit *u, __u32 address)
{
	struct mask_slot4 *slots = u->cache4[(address * 0x9e3779b1U) >> (32 - MASK_SLOTS4)];
	struct mask_slot4 slot;

	if (mask_is_of(&slots[0], address, u->epoch))
		return slots[0].mapped;
	slot = slots[1];
	if (!mask_is_of(&slot, address, u->epoch)) {
		mask_fresh4(address);
		slot.address = address;
		slot.mapped = u->result.lo;
		slot.epoch = mask_epoch(u);
	}
	slots[1] = slots[0];
	slots[0] = slot;
	return slot.mapped;
}

/* Maps `value` into `result`. */
static __always_inline void mask_prefix6(struct mask_unit *u)
{
	struct mask_wide value = u->value;
	struct mask_slot6 *slot = &u->cache6[mask_slot6(value.hi, value.lo, MASK_SLOTS6)];

	if (slot->address.hi != value.hi || slot->address.lo != value.lo ||
	    slot->epoch != u->epoch) {
		mask_fresh6();
		slot->address = value;
		slot->mapped = u->result;
		slot->epoch = mask_epoch(u);
	}
	u->result = slot->mapped;
}

#endif
