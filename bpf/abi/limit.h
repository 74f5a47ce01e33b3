/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The settings of include/limit.h from user space: crates/datapath/src/limit.rs.
 */
#ifndef NIGH_ABI_LIMIT_H
#define NIGH_ABI_LIMIT_H

#include <linux/types.h>

/* One bucket's parameters, see include/limit.h, in 1/64 of a nanosecond. */
struct limit_rate {
	__u64 interval;
	__u64 tolerance;
};

/* Secrets of this load of the program, so that nobody can choose sources that share a bucket. */
struct limit_secret {
	__u64 multiplier[2][4];
	__u64 offset[2];
};

_Static_assert(sizeof(struct limit_rate) == 16, "limit_rate");
_Static_assert(sizeof(struct limit_secret) == 80, "limit_secret");

#endif
