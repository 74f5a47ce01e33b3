/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Classic BPF, as the kernel runs it (Documentation/networking/filter.rst): packets are selected
 * before anything of them is masked or copied. Jumps lead forward only, so it ends.
 */
#ifndef NIGH_MASK_FILTER_H
#define NIGH_MASK_FILTER_H

#include <linux/bpf_common.h>

#include "mask_state.h"

#define FILTER_TAX 0x00
#define FILTER_A 0x10
#define FILTER_MOD 0x90
#define FILTER_XOR 0xa0

/* Reads a number of the packet in network order; whether the packet has it. */
static __always_inline int mask_filter_load(struct mask_unit *u, __u32 size, __u64 at, __u32 *value)
{
	__u32 bytes = size == BPF_W ? 4 : size == BPF_H ? 2 : 1, offset;

	if (at + bytes > u->end)
		return 0;
	offset = mask_offset(at);
	*value = size == BPF_W	 ? __builtin_bswap32(LOAD32(u->in, offset))
		 : size == BPF_H ? __builtin_bswap16(LOAD16(u->in, offset))
				 : u->in[offset];
	return 1;
}

static __always_inline int mask_filter_alu(struct mask_unit *u, __u32 operation, __u32 by)
{
	__u32 a = u->a;

	switch (operation) {
	case BPF_ADD:
		a += by;
		break;
	case BPF_SUB:
		a -= by;
		break;
	case BPF_MUL:
		a *= by;
		break;
	case BPF_DIV:
		if (!by)
			return 0;
		a /= by;
		break;
	case FILTER_MOD:
		if (!by)
			return 0;
		a %= by;
		break;
	case BPF_OR:
		a |= by;
		break;
	case BPF_AND:
		a &= by;
		break;
	case FILTER_XOR:
		a ^= by;
		break;
	case BPF_LSH:
		a = by < 32 ? a << by : 0;
		break;
	case BPF_RSH:
		a = by < 32 ? a >> by : 0;
		break;
	case BPF_NEG:
		a = -a;
		break;
	default:
		return 0;
	}
	u->a = a;
	return 1;
}

/* One instruction; 1 at the end. */
static long mask_filter_step(__u32 turn, void *unused)
{
	const volatile struct mask_filter *it;
	struct mask_unit *u = mask_unit();
	__u32 pc, code, k, by, is;

	if (!u)
		return 1;
	pc = u->pc++;
	if (pc >= MASK_FILTER || pc >= mask_settings.filters)
		return 1;
	it = &mask_settings.filter[pc];
	code = it->code;
	k = it->k;
	switch (BPF_CLASS(code)) {
	case BPF_LD:
		if (BPF_MODE(code) == BPF_IMM)
			u->a = k;
		else if (BPF_MODE(code) == BPF_MEM)
			u->a = u->memory[k & 15];
		else if (BPF_MODE(code) == BPF_LEN)
			u->a = u->record.length;
		else if (!mask_filter_load(u, BPF_SIZE(code),
					   (__u64)k + (BPF_MODE(code) == BPF_IND ? u->x : 0),
					   &u->a))
			return 1;
		return 0;
	case BPF_LDX:
		if (BPF_MODE(code) == BPF_IMM) {
			u->x = k;
		} else if (BPF_MODE(code) == BPF_MEM) {
			u->x = u->memory[k & 15];
		} else if (BPF_MODE(code) == BPF_LEN) {
			u->x = u->record.length;
		} else {
			/* The length of an IPv4 header. */
			if (!mask_filter_load(u, BPF_B, k, &by))
				return 1;
			u->x = (by & 15) * 4;
		}
		return 0;
	case BPF_ST:
		u->memory[k & 15] = u->a;
		return 0;
	case BPF_STX:
		u->memory[k & 15] = u->x;
		return 0;
	case BPF_ALU:
		return !mask_filter_alu(u, BPF_OP(code), BPF_SRC(code) == BPF_X ? u->x : k);
	case BPF_JMP:
		by = BPF_SRC(code) == BPF_X ? u->x : k;
		if (BPF_OP(code) == BPF_JA) {
			u->pc += k;
			return 0;
		}
		is = BPF_OP(code) == BPF_JEQ   ? u->a == by
		     : BPF_OP(code) == BPF_JGT ? u->a > by
		     : BPF_OP(code) == BPF_JGE ? u->a >= by
					       : (u->a & by) != 0;
		u->pc += is ? it->jt : it->jf;
		return 0;
	case BPF_RET:
		u->accepted = (code & 0x18) == FILTER_A ? u->a : k;
		return 1;
	default:
		if ((code & 0xf8) == FILTER_TAX)
			u->x = u->a;
		else
			u->a = u->x;
		return 0;
	}
}

/* Whether the packet is wanted. */
static __always_inline int mask_wanted(struct mask_unit *u)
{
	if (!mask_settings.filters)
		return 1;
	u->pc = u->a = u->x = u->accepted = 0;
	__builtin_memset(u->memory, 0, sizeof(u->memory));
	bpf_loop(MASK_FILTER, mask_filter_step, NULL, 0);
	return u->accepted != 0;
}

#endif
