/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The gate's state: flows, refusals, fragments, the ring, the ledger, its settings and places.
 *
 * There are two tables of flows. `gate_decided` has those that user space has decided; nothing is
 * ever evicted from it. `gate_fresh` has the others, of which the ones that were not used for
 * longest are evicted for new ones; so a flood of new flows evicts undecided ones only. Sizes are
 * user space's to set before loading.
 */
#ifndef NIGH_GATE_STATE_H
#define NIGH_GATE_STATE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../abi/gate.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 262144);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct gate_key);
	__type(value, struct gate_flow);
} gate_decided SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct gate_key);
	__type(value, struct gate_flow);
} gate_fresh SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct gate_refusal_key);
	__type(value, struct gate_refusal);
} gate_refusals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct gate_fragment_key);
	__type(value, struct gate_fragment);
} gate_fragments SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} gate_ring SEC(".maps");

/*
 * Hosts that begin flows: when each will have been given all that it had of the ring, see
 * gate_has_share().
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct gate_host);
	__type(value, __u64);
} gate_shares SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GATE_HOOKS);
	__type(key, __u32);
	__type(value, struct gate_counts);
} gate_ledger SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gate_control);
} gate_control SEC(".maps");

/*
 * Interfaces that have the programs as filters, which are not pinned as links are. Programs do not
 * use this; the kernel takes out an interface that is deleted, in whichever network namespace.
 */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, GATE_INTERNALS);
	__type(key, __u32);
	__type(value, __u32);
} gate_filtered SEC(".maps");

/* So that these are in the BTF. */
const volatile enum gate_hook gate_btf_hook = 0;
const volatile enum gate_count gate_btf_count = 0;
const volatile enum gate_action gate_btf_action = 0;
const volatile enum gate_limits gate_btf_limits = GATE_NOBODY;
const volatile enum gate_manage gate_btf_manage = GATE_COPY;
const volatile enum gate_reason gate_btf_reason = 0;
const volatile enum gate_record_flag gate_btf_flag = GATE_PARTIAL;
const volatile enum gate_order gate_btf_order = 0;
const volatile enum gate_answer gate_btf_answer = 0;
const volatile struct gate_record gate_btf_record = {};
const volatile struct gate_request gate_btf_request = {};

#define SECOND 1000000000ULL

static __always_inline struct gate_counts *gate_counts(__u32 hook)
{
	return bpf_map_lookup_elem(&gate_ledger, &hook);
}

static __always_inline const struct gate_control *gate_settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&gate_control, &zero);
}

/* Has user space been silent for too long? */
static __always_inline int gate_alone(const struct gate_control *control, __u64 now)
{
	return (__s64)(now - control->heartbeat_ns) > GATE_HEARTBEAT_MS * (__s64)(SECOND / 1000);
}

/* Is that interface one of the internal ones? */
static __always_inline int gate_is_internal(const struct gate_control *control, __u32 ifindex)
{
	int i;

#pragma unroll
	for (i = 0; i < GATE_INTERNALS; i++)
		if (control->internal[i] == ifindex)
			return 1;
	return 0;
}

#endif
