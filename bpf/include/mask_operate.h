/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Instructions on a header: twin of crate mask's machine/operate.rs. */
#ifndef NIGH_MASK_OPERATE_H
#define NIGH_MASK_OPERATE_H

#include "mask_secrets.h"

/* The result of MASK_HASH, MASK_ENCRYPT and MASK_PERMUTE for `value`, into `result`. */
static __always_inline void mask_keyed(struct mask_unit *u,
				       const volatile struct mask_instruction *it)
{
	__u32 whose = (__u32)it->tag << 16 | it->operation << 8 | it->kept;
	struct mask_wide value = u->value;
	__u32 rest = it->bits - it->kept;
	struct mask_slot *slot;
	__u64 hi, lo;

	slot = &u->others[mask_slot6(value.hi, value.lo ^ (__u64)it->tag << 48, MASK_SLOTS_OTHERS)];
	if (slot->epoch == u->epoch && slot->whose == whose && slot->value.hi == value.hi &&
	    slot->value.lo == value.lo) {
		u->result = slot->result;
		return;
	}
	if (it->operation == MASK_HASH) {
		mask_number(DOMAIN_HASH, it->tag, value.hi, value.lo);
	} else {
		/* The bits that stay choose the permutation of the rest. */
		hi = rest > 64 ? mask_ones(rest - 64) : 0;
		lo = mask_ones(rest);
		u->tweak.hi = it->operation == MASK_PERMUTE ? value.hi & ~hi : 0;
		u->tweak.lo = it->operation == MASK_PERMUTE ? value.lo & ~lo : 0;
		u->value.hi = value.hi & hi;
		u->value.lo = value.lo & lo;
		if (rest)
			mask_permute(it->tag, rest);
		else
			u->result = u->value;
		u->result.hi |= u->tweak.hi;
		u->result.lo |= u->tweak.lo;
	}
	slot->value = value;
	slot->result = u->result;
	slot->whose = whose;
	slot->epoch = mask_epoch(u);
}

/* Runs an instruction on the header that begins there. */
static __always_inline void mask_execute(struct mask_unit *u,
					 const volatile struct mask_instruction *it, __u32 header)
{
	__u32 at = mask_offset(header + it->at), bytes = it->bytes, cut;
	__u64 number;

	/* The usual case, without numbers of 128 bits. */
	if (it->operation == MASK_PREFIX && bytes == 4) {
		STORE32(u->out, at,
			__builtin_bswap32(mask_prefix4(u, __builtin_bswap32(LOAD32(u->in, at)))));
		return;
	}
	u->value.hi = 0;
	switch (bytes) {
	case 16:
		u->value.hi = __builtin_bswap64(LOAD64(u->in, at));
		u->value.lo = __builtin_bswap64(LOAD64(u->in, at + 8));
		break;
	case 6:
		u->value.lo = __builtin_bswap64(LOAD64(u->in, at)) >> 16;
		break;
	case 4:
		u->value.lo = (__builtin_bswap32(LOAD32(u->in, at)) & it->mask) >> it->shift;
		break;
	case 2:
		u->value.lo = (__builtin_bswap16(LOAD16(u->in, at)) & it->mask) >> it->shift;
		break;
	default:
		u->value.lo = (u->in[at] & it->mask) >> it->shift;
	}
	switch (it->operation) {
	case MASK_CONSTANT:
		u->result.hi = 0;
		u->result.lo = it->constant;
		break;
	case MASK_XOR:
		u->result.hi = u->value.hi;
		u->result.lo = u->value.lo ^ it->constant;
		break;
	case MASK_SHIFT:
		u->result.hi = 0;
		u->result.lo = u->value.lo + it->constant;
		break;
	case MASK_RANDOM:
		/* This offset's in this packet. */
		number = u->number << 32;
		mask_number(DOMAIN_RANDOM, it->tag, u->number >> 32, number + header + it->at);
		break;
	case MASK_HASH:
	case MASK_ENCRYPT:
	case MASK_PERMUTE:
		mask_keyed(u, it);
		break;
	case MASK_PREFIX:
		mask_prefix6(u);
		break;
	case MASK_TRUNCATE:
		cut = it->bits - it->kept;
		u->result.hi = cut > 64 ? u->value.hi & ~mask_ones(cut - 64) : u->value.hi;
		u->result.lo = u->value.lo & ~mask_ones(cut);
		break;
	default:
		u->result = u->value;
	}
	switch (bytes) {
	case 16:
		STORE64(u->out, at, __builtin_bswap64(u->result.hi));
		STORE64(u->out, at + 8, __builtin_bswap64(u->result.lo));
		break;
	case 6:
		STORE32(u->out, at, __builtin_bswap32(u->result.lo >> 16));
		*(__u16 *)(u->out + at + 4) = __builtin_bswap16(u->result.lo);
		break;
	case 4:
		*(__u32 *)(u->out + at) |=
		    __builtin_bswap32((__u32)u->result.lo << it->shift & it->mask);
		break;
	case 2:
		*(__u16 *)(u->out + at) |=
		    __builtin_bswap16((__u32)u->result.lo << it->shift & it->mask);
		break;
	default:
		u->out[at] |= u->result.lo << it->shift & it->mask;
	}
}

/* Runs the first instructions of a kind on those fields that end before this offset. */
__noinline int mask_run(__u32 kind, __u32 at, __u32 end, __u32 count)
{
	const volatile struct mask_instruction *it;
	struct mask_unit *u = mask_unit();
	__u32 i;

	if (!u || kind >= MASK_KINDS)
		return 0;
	for (i = 0; i < MASK_MOST; i++) {
		if (i >= count)
			break;
		it = &mask_settings.headers[kind].list[i];
		if (at + it->at + it->bytes <= end)
			mask_execute(u, it, at);
	}
	return 0;
}

/*
 * Masks a header, perhaps cut, into the same offset of the result. Whether all of it is there.
 * Inlined in the steps that most packets take: for a constant kind the verifier knows the policy
 * and removes what that does not need.
 */
static __always_inline int mask_header(struct mask_unit *u, __u32 kind, __u32 at, __u32 length)
{
	const volatile struct mask_header *header = &mask_settings.headers[kind];
	__u32 end = at + length < u->end ? at + length : u->end, here = mask_offset(at), i;

	if (at > end)
		return 0;
	if (u->kept < end)
		u->kept = end;
	if (end != at + length || length < header->length) {
		/* Only the fields that are wholly there: of a cut header, and of one shorter than
		 * most. */
		mask_run(kind, at, end, header->count);
		return end == at + length;
	}
	for (i = 0; i < MASK_HEADER / 8; i++) {
		if (i >= header->words)
			break;
		/* Another kind may have written a part of the same header. Without volatile clang
		 * would take the bits for what they are here: zero. */
		*(__u64 *)(u->out + here + i * 8) |=
		    LOAD64(u->in, here + i * 8) & *(const volatile __u64 *)(header->kept + i * 8);
	}
	if (header->others)
		mask_run(kind, at, end, header->others);
	return 1;
}

/* The same, for all other steps. */
__noinline int mask_treat(__u32 kind, __u32 at, __u32 length)
{
	struct mask_unit *u = mask_unit();

	return u && kind < MASK_KINDS ? mask_header(u, kind, at, length) : 0;
}

/* Is anything of an option kept? */
static __always_inline int mask_keeps(__u32 option)
{
	return option < MASK_KINDS && mask_settings.headers[option].count;
}

#endif
