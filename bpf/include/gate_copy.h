/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies frames out over the ring. A record's size must be known when programs are verified, so
 * there are some, and each frame takes the smallest that holds it.
 */
#ifndef NIGH_GATE_COPY_H
#define NIGH_GATE_COPY_H

#include "gate_parse.h"
#include "gate_state.h"

#define GATE_RECORD_SMALL 256
#define GATE_RECORD_MIDDLE 2048
#define GATE_RECORD_LARGE 16384

/* At most so much of a first packet is copied, headers included. */
#define GATE_FIRST_LONGEST (GATE_RECORD_MIDDLE - sizeof(struct gate_record))

/* What the copy is for. */
struct gate_copying {
	__u32 hook;
	__u32 reason;
	__u32 number;
	__u32 length; /* at most so much of the frame, behind begin */
	__u32 begin;  /* where in the frame the copy begins: 0, or within the payload */
};

/* Where the checksum of the transport header is. */
static __always_inline __u32 gate_check_at(const struct gate_packet *packet)
{
	return packet->transport + (packet->key.protocol == PROTOCOL_TCP ? 16 : 6);
}

/*
 * Is the frame's transport checksum still to be finished by a network card (CHECKSUM_PARTIAL)? The
 * kernel does not show it. But it leaves such a checksum alone when a word changes that the pseudo
 * header does not have, and updates any other, which is undone here.
 */
static __always_inline int gate_partial(struct __sk_buff *skb, const struct gate_packet *packet)
{
	__u32 at = gate_check_at(packet);
	__u16 before, after;

	if (bpf_skb_load_bytes(skb, at, &before, sizeof(before)) ||
	    bpf_l4_csum_replace(skb, at, 0, 1, sizeof(before)) ||
	    bpf_skb_load_bytes(skb, at, &after, sizeof(after)))
		return 0;
	return before == after || bpf_skb_store_bytes(skb, at, &before, sizeof(before), 0);
}

/*
 * What is known of the frame's transport checksum. Of what was put together from several frames,
 * and of what its card has verified, it is right; of a fragment it is unknown.
 */
static __always_inline __u8 gate_checksum(struct __sk_buff *skb, const struct gate_packet *packet)
{
	if (packet->fragmented)
		return GATE_FRAGMENT;
	if (skb->gso_size || bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) >= 0)
		return 0;
	if (gate_partial(skb, packet))
		return GATE_PARTIAL;
	return GATE_UNVERIFIED;
}

static __always_inline int gate_record(struct __sk_buff *skb, const struct gate_packet *packet,
				       const struct gate_flow *flow, const struct gate_copying *how,
				       const __u32 size)
{
	struct gate_record *record = bpf_ringbuf_reserve(&gate_ring, size, 0);
	const struct gate_side *receiver = packet->from ? &flow->side[0] : &flow->side[1];
	__u32 length = how->length, begin = how->begin, skipped = 0, last;

	if (!record)
		return 0;
	if (begin)
		skipped = begin - packet->payload;
	record->key = packet->key;
	record->at_ns = bpf_ktime_get_boot_ns();
	record->length = skb->len;
	record->copied = length;
	record->payload = begin ? 0 : packet->payload;
	record->payload_length = packet->payload_length - skipped;
	record->sequence = packet->sequence + skipped;
	record->acknowledgement = packet->acknowledgement;
	record->ifindex = skb->ifindex;
	record->first[0] = flow->side[0].first;
	record->first[1] = flow->side[1].first;
	record->number = how->number;
	record->label = flow->label;
	record->gso_size = skb->gso_size;
	record->transport = packet->transport;
	record->vlan_tci = skb->vlan_tci;
	record->vlan_protocol = skb->vlan_present ? skb->vlan_proto : 0;
	record->tcp_flags = packet->flags;
	record->from = packet->from;
	record->client = flow->client;
	record->internal = flow->internal;
	record->reason = how->reason;
	record->hook = how->hook;
	record->action = flow->action;
	record->taken = receiver->taken;
	/*
	 * The index of the last byte has one bound where the length has two, of which older
	 * verifiers do not see the lower one. It is in one register for the comparison and the
	 * call.
	 */
	last = length - 1;
	asm volatile("" : "+r"(last));
	if (last >= size - sizeof(*record))
		goto discard;
	asm volatile("" : "+r"(last));
	if (bpf_skb_load_bytes(skb, begin, record->data, last + 1))
		goto discard;
	record->flags =
	    gate_checksum(skb, packet) | (receiver->tcp_flags & TCP_ACK ? GATE_TAKEN : 0);
	bpf_ringbuf_submit(record, 0);
	return 1;
discard:
	bpf_ringbuf_discard(record, 0);
	return 0;
}

/* Copies a frame out; 0 if there is no room. */
__noinline int gate_copy_out(struct __sk_buff *skb, const struct gate_packet *packet,
			     const struct gate_flow *flow, const struct gate_copying *how)
{
	__u32 needed;

	if (!packet || !flow || !how)
		return 0;
	needed = how->length + sizeof(struct gate_record);
	if (needed <= GATE_RECORD_SMALL)
		return gate_record(skb, packet, flow, how, GATE_RECORD_SMALL);
	if (needed <= GATE_RECORD_MIDDLE)
		return gate_record(skb, packet, flow, how, GATE_RECORD_MIDDLE);
	if (needed <= GATE_RECORD_LARGE)
		return gate_record(skb, packet, flow, how, GATE_RECORD_LARGE);
	return gate_record(skb, packet, flow, how, GATE_RECORD_LARGEST);
}

/* Reports the end of a flow with its state to user space; 0 if there is no room. */
static __always_inline int gate_report_ended(const struct gate_packet *packet,
					     const struct gate_flow *flow, __u32 ifindex,
					     __u32 hook)
{
	struct gate_record *record = bpf_ringbuf_reserve(&gate_ring, GATE_RECORD_SMALL, 0);

	if (!record)
		return 0;
	__builtin_memset(record, 0, sizeof(*record));
	record->key = packet->key;
	record->at_ns = bpf_ktime_get_boot_ns();
	record->length = sizeof(*flow);
	record->copied = sizeof(*flow);
	record->payload = sizeof(*flow);
	record->ifindex = ifindex;
	record->label = flow->label;
	record->from = packet->from;
	record->client = flow->client;
	record->internal = flow->internal;
	record->reason = GATE_ENDED;
	record->hook = hook;
	record->action = flow->action;
	__builtin_memcpy(record->data, flow, sizeof(*flow));
	bpf_ringbuf_submit(record, 0);
	return 1;
}

#endif
