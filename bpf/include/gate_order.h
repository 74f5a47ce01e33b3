/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changes of a flow by order of user space, made in the map: what is counted meanwhile is not lost.
 */
#ifndef NIGH_GATE_ORDER_H
#define NIGH_GATE_ORDER_H

#include "gate_state.h"

/* What was counted for a fresh flow is moved to its decided entry. */
static __always_inline void gate_take_over(struct gate_flow *to, struct gate_flow *from)
{
	int i;

	from->action = to->action;
#pragma unroll
	for (i = 0; i < 2; i++) {
		struct gate_side *side = &to->side[i], *other = &from->side[i];

		__sync_fetch_and_add(&side->packets, __sync_lock_test_and_set(&other->packets, 0));
		__sync_fetch_and_add(&side->bytes, __sync_lock_test_and_set(&other->bytes, 0));
		__sync_fetch_and_or(&side->tcp_flags, other->tcp_flags);
		if ((__s32)(other->taken - side->taken) > 0)
			side->taken = other->taken;
		if ((__s32)(other->reach - side->reach) > 0)
			side->reach = other->reach;
	}
}

static __always_inline void gate_manage_side(struct gate_side *side,
					     const struct gate_interest *interest)
{
	side->skip_to = interest->skip_to;
	side->hold_from = interest->hold_from;
	barrier();
	side->manage = interest->manage;
}

/*
 * Gives a flow an entry in gate_decided, and with it what user space wants to see of its sides, so
 * that no packet goes on unseen in between.
 */
static __always_inline int gate_decide(struct gate_request *request)
{
	struct gate_flow *flow, *fresh, new = {};

	flow = bpf_map_lookup_elem(&gate_decided, &request->key);
	if (flow) {
		if (request->order == GATE_ORDER_BOTH) {
			gate_manage_side(&flow->side[0], &request->interest[0]);
			gate_manage_side(&flow->side[1], &request->interest[1]);
		}
		flow->label = request->label;
		flow->limit = request->limit;
		flow->action = request->action;
		return GATE_DONE;
	}
	fresh = bpf_map_lookup_elem(&gate_fresh, &request->key);
	if (fresh) {
		new.began_ns = fresh->began_ns;
		new.seen_ns = fresh->seen_ns;
		new.copied = fresh->copied;
		new.client = fresh->client;
		new.internal = fresh->internal;
		new.ifindex = fresh->ifindex;
		new.side[0].first = fresh->side[0].first;
		new.side[1].first = fresh->side[1].first;
		new.side[0].taken = fresh->side[0].taken;
		new.side[1].taken = fresh->side[1].taken;
		new.side[0].reach = fresh->side[0].reach;
		new.side[1].reach = fresh->side[1].reach;
		new.side[0].tcp_flags = fresh->side[0].tcp_flags;
		new.side[1].tcp_flags = fresh->side[1].tcp_flags;
	} else {
		new.began_ns = new.seen_ns = bpf_ktime_get_ns();
		new.client = new.internal = GATE_NOBODY;
	}
	new.label = request->label;
	new.limit = request->limit;
	new.action = request->action;
	if (request->order == GATE_ORDER_BOTH) {
		gate_manage_side(&new.side[0], &request->interest[0]);
		gate_manage_side(&new.side[1], &request->interest[1]);
	}
	if (bpf_map_update_elem(&gate_decided, &request->key, &new, BPF_NOEXIST)) {
		/* A refusal lasts for as long as its entry. */
		if (fresh)
			fresh->refused = request->action == GATE_PASS ? 0 : request->action;
		return GATE_FULL;
	}
	flow = bpf_map_lookup_elem(&gate_decided, &request->key);
	if (flow && fresh)
		gate_take_over(flow, fresh);
	return GATE_DONE;
}

#endif
