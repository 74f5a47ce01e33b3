/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory shared with user space page by page (BPF_MAP_TYPE_ARENA, Linux 6.9), and loops of any
 * length (may_goto, Linux 6.9).
 *
 * An address in an arena is 32 bits wide: the low half of the address at which user space sees the
 * byte. The kernel adds the base, so a wrong address reads some other byte of the arena, or zero
 * where there is no page, and no bounds have to be proven. Clang learned of both after version 14;
 * here the instructions are written out.
 */
#ifndef NIGH_ARENA_H
#define NIGH_ARENA_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define MAP_TYPE_ARENA 33 /* BPF_MAP_TYPE_ARENA, which older headers lack */

/* Marks a register as holding an address in the arena: BPF_ADDR_SPACE_CAST from 1 to 0. */
#define ARENA_POINTER(pointer)                                                                     \
	asm volatile(".byte 0xbf;"                                                                 \
		     ".ifc %[reg], r0; .byte 0x00; .endif;"                                        \
		     ".ifc %[reg], r1; .byte 0x11; .endif;"                                        \
		     ".ifc %[reg], r2; .byte 0x22; .endif;"                                        \
		     ".ifc %[reg], r3; .byte 0x33; .endif;"                                        \
		     ".ifc %[reg], r4; .byte 0x44; .endif;"                                        \
		     ".ifc %[reg], r5; .byte 0x55; .endif;"                                        \
		     ".ifc %[reg], r6; .byte 0x66; .endif;"                                        \
		     ".ifc %[reg], r7; .byte 0x77; .endif;"                                        \
		     ".ifc %[reg], r8; .byte 0x88; .endif;"                                        \
		     ".ifc %[reg], r9; .byte 0x99; .endif;"                                        \
		     ".short 1; .long 1"                                                           \
		     : [reg] "+r"(pointer))

/* What is added to this pointer is added to the address. */
static __always_inline void *arena_at(__u64 address)
{
	void *pointer = (void *)address;

	ARENA_POINTER(pointer);
	return pointer;
}

static __always_inline __u32 arena_u16(__u64 address)
{
	return *(__u16 *)arena_at(address);
}

static __always_inline __u32 arena_u32(__u64 address)
{
	return *(__u32 *)arena_at(address);
}

/* A program may touch only the arena that it names. */
#define ARENA_USE(map) asm volatile("" ::"r"(&(map)))

/*
 * True; as a part of a loop's condition it lets the verifier check the loop until its state no
 * longer changes instead of at every turn. (After millions of turns it is false.)
 */
#define MAY_LOOP                                                                                   \
	({                                                                                         \
		__label__ leave, stay;                                                             \
		int may = 1;                                                                       \
		asm volatile goto("1: .byte 0xe5; .byte 0;"                                        \
				  ".long ((%l[leave] - 1b - 8) / 8) & 0xffff; .short 0" ::         \
				      :                                                            \
				  : leave);                                                        \
		goto stay;                                                                         \
	leave:                                                                                     \
		may = 0;                                                                           \
	stay:;                                                                                     \
		may;                                                                               \
	})

#endif
