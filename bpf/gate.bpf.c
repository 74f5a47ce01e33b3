// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The gate: passes, refuses, limits, copies out and holds packets of TCP and UDP flows between
 * internal hosts and the rest of the world.
 *
 *   packet -> decided flow?  pass | copied and passed | held | dropped | reset
 *          -> fresh flow?    first packets with payload copied, and its ends, passed
 *          -> refused before? dropped | reset
 *          -> a new fresh flow
 *
 * The programs are at both directions of the internal interfaces, where addresses are those that
 * internal hosts have and see, so both directions of a flow meet in one entry whatever NAT does
 * behind, and super-packets are whole. All else about a packet (routing, NAT, filters) stays the
 * kernel's: what passes continues as if no program were here.
 *
 * A packet from internal hosts whose flow has a limit is sent through another device that queues it
 * by class, and comes back behind this hook; one to internal hosts is given its class for the
 * interface's own queues.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "include/gate_copy.h"
#include "include/gate_order.h"
#include "include/gate_parse.h"
#include "include/gate_refuse.h"
#include "include/gate_state.h"

/*
 * linux/bpf.h, enum tcx_action_base; older headers lack it. A filter of clsact takes the same for
 * TC_ACT_UNSPEC (the next filter) and TC_ACT_SHOT.
 */
#define TCX_NEXT (-1)
#define TCX_DROP 2

/* What a host gets of a ring that is half full: packets at once, nanoseconds to the next. */
#define SHARE_BURST 64
#define SHARE_NS (SECOND / 1000)

static __always_inline int gate_done(struct gate_counts *counts, __u32 what, int verdict)
{
	if (what < GATE_COUNTS)
		counts->count[what]++;
	return verdict;
}

/* What its sender has sent and taken so far. */
static __always_inline void gate_follow(struct gate_side *side, const struct gate_side *other,
					const struct gate_packet *packet)
{
	__u32 end = packet->sequence + packet->payload_length;
	/* A server may speak before the first acknowledgement. */
	__u32 taken = other->tcp_flags & TCP_ACK ? other->taken : side->reach;

	if (unlikely(packet->fragmented))
		return;
	if (packet->flags & TCP_ACK)
		side->taken = packet->acknowledgement;
	/* Farther ahead no receiver takes it: nor does it hide here what comes again. */
	if (!side->tcp_flags || packet->flags & TCP_SYN & ~side->tcp_flags ||
	    (packet->payload_length && end - taken < GATE_TCP_WINDOW &&
	     (__s32)(end - side->reach) > 0))
		side->reach = end;
}

/*
 * May the receiver of this segment take bytes of it that the gate has seen before, which may have
 * been others?
 */
static __always_inline int gate_overlaps(const struct gate_packet *packet,
					 const struct gate_flow *flow)
{
	const struct gate_side *side = packet->from ? &flow->side[1] : &flow->side[0];
	const struct gate_side *other = packet->from ? &flow->side[0] : &flow->side[1];
	__u32 end = packet->sequence + packet->payload_length;

	return !(other->tcp_flags & TCP_ACK) ||
	       ((__s32)(packet->sequence - side->reach) < 0 && (__s32)(end - other->taken) > 0);
}

/* Counts a packet for its flow. */
static __always_inline void gate_account(struct gate_flow *flow, const struct gate_packet *packet,
					 __u64 packets, __u64 bytes)
{
	struct gate_side *side = packet->from ? &flow->side[1] : &flow->side[0];
	struct gate_side *other = packet->from ? &flow->side[0] : &flow->side[1];
	__u64 now = bpf_ktime_get_coarse_ns();

	__sync_fetch_and_add(&side->packets, packets);
	__sync_fetch_and_add(&side->bytes, bytes);
	if (flow->seen_ns != now)
		flow->seen_ns = now;
	gate_follow(side, other, packet);
	if (packet->flags & ~side->tcp_flags) {
		__sync_fetch_and_or(&side->tcp_flags, packet->flags);
		if (packet->flags & TCP_SYN)
			side->first = packet->sequence;
	}
	if (unlikely(flow->client == GATE_NOBODY))
		flow->client = (packet->flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK)
				   ? !packet->from
				   : packet->from;
}

/* The same for one that is still a frame of the kernel's, which may be a super-packet. */
static __always_inline void gate_account_frame(struct __sk_buff *skb, struct gate_flow *flow,
					       const struct gate_packet *packet)
{
	__u32 segments = skb->gso_segs, size = skb->gso_size;
	__u64 bytes = packet->length;

	if (size) {
		/* Packets from other machines, virtual ones too, must not carry our mark. */
		if (!segments)
			segments = (packet->payload_length + size - 1) / size;
		if (segments)
			bytes += (segments - 1) * (packet->payload - packet->network);
	}
	gate_account(flow, packet, segments ? segments : 1, bytes);
}

/* Lets a packet pass, through its class if it has one. */
static __always_inline int gate_pass(struct __sk_buff *skb, struct gate_counts *counts,
				     const struct gate_control *control, __u32 hook, __u32 limit,
				     __u32 what)
{
	if (unlikely(limit)) {
		__u32 queue = control->queue;

		skb->priority = GATE_CLASSES | limit;
		if (hook == GATE_FROM_INTERNAL && queue) {
			gate_done(counts, what == GATE_COUNTS ? what : GATE_REDIRECTED, 0);
			return queue == GATE_QUEUE_BEHIND ? TCX_NEXT : bpf_redirect(queue, 0);
		}
	}
	return gate_done(counts, what, TCX_NEXT);
}

/* Does the receiver of this refused packet get a reset too? Only for some packets: it doubles them.
 */
static __always_inline int gate_resets_receiver(const struct gate_packet *packet,
						struct gate_flow *flow)
{
	struct gate_side *side = packet->from ? &flow->side[1] : &flow->side[0];

	return side->resets < GATE_RESETS && __sync_fetch_and_add(&side->resets, 1) < GATE_RESETS;
}

/* Refuses a packet: of a refused flow, or of a new one like a flow that was refused before. */
static __always_inline int gate_refuse(struct __sk_buff *skb, struct gate_counts *counts,
				       const struct gate_packet *packet, struct gate_flow *flow,
				       __u32 hook, __u32 action)
{
	__u32 dropped = flow ? GATE_DROP_VERDICT : GATE_DROP_CACHE;
	__u32 reset = flow ? GATE_RESET_VERDICT : GATE_RESET_CACHE;

	if (action == GATE_RESET && packet->key.protocol == PROTOCOL_TCP) {
		int verdict =
		    gate_reset(skb, packet, hook, flow && gate_resets_receiver(packet, flow));

		if (verdict >= 0)
			return gate_done(counts, reset, verdict);
	} else if (action == GATE_RESET) {
		int verdict = gate_unreachable(skb, packet, hook);

		if (verdict >= 0)
			return gate_done(counts, GATE_UNREACHABLE, verdict);
	}
	return gate_done(counts, dropped, TCX_DROP);
}

/*
 * May one more packet of an undecided flow go into the ring? While it is less than half full, all
 * may. Then who began the flow gets 1,000 packets a second, so that a flood of new flows from one
 * host leaves room for those of others. CPUs that race may give a little more.
 */
static __always_inline int gate_has_share(const struct gate_packet *packet,
					  const struct gate_flow *flow, __u64 now)
{
	__u32 side = flow->client == GATE_NOBODY ? packet->from : flow->client;
	struct gate_host host = {};
	__u64 *until, from;

	if (bpf_ringbuf_query(&gate_ring, BPF_RB_AVAIL_DATA) <
	    bpf_ringbuf_query(&gate_ring, BPF_RB_RING_SIZE) / 2)
		return 1;
	host.address[0] = packet->key.address[side & 1][0];
	if (!host.address[0])
		host.address[1] = packet->key.address[side & 1][1];
	until = bpf_map_lookup_elem(&gate_shares, &host);
	from = until && (__s64)(*until - now) > 0 ? *until : now;
	if (from - now > SHARE_BURST * SHARE_NS)
		return 0;
	from += SHARE_NS;
	if (until)
		*until = from;
	else
		bpf_map_update_elem(&gate_shares, &host, &from, BPF_ANY);
	return 1;
}

/* Copies a packet that passes; what happens if the ring is full is configured. */
static __always_inline int gate_copy(struct __sk_buff *skb, struct gate_counts *counts,
				     const struct gate_packet *packet, const struct gate_flow *flow,
				     const struct gate_copying *how)
{
	int copied = gate_copy_out(skb, packet, flow, how);

	gate_done(counts, copied ? GATE_COPIED : GATE_MISSED, 0);
	return copied;
}

/* Takes a packet out of the kernel's path; user space has all of it. */
static __always_inline int gate_hold(struct __sk_buff *skb, struct gate_counts *counts,
				     const struct gate_packet *packet, const struct gate_flow *flow,
				     __u32 hook)
{
	struct gate_copying how = {.hook = hook, .reason = GATE_AWAITS, .length = skb->len};
	int copied = gate_copy(skb, counts, packet, flow, &how);

	return gate_done(counts, copied ? GATE_HELD : GATE_DROP_RING, TCX_DROP);
}

/*
 * Omits what nobody needs of a super-packet of TCP: what is skipped, and all but the beginning
 * where that is enough. Its checksum is right; that of other packets may not be and is verified
 * over the whole packet.
 */
static __always_inline void gate_shorten(const struct gate_packet *packet,
					 const struct gate_side *side, __u32 manage,
					 struct gate_copying *how)
{
	__u32 length = packet->payload_length, behind = packet->sequence - side->skip_to;
	__s32 skipped = -(__s32)behind;

	if (manage & GATE_SKIP && skipped > 0 && length) {
		/* A FIN or RST may be all that is left. */
		if (skipped >= (__s32)length)
			skipped = length - 1;
		how->begin = packet->payload + skipped;
		how->length = length - skipped;
	} else if (manage & GATE_BRIEF && !(manage & GATE_SKIP && behind < GATE_WINDOW) &&
		   how->length > GATE_FIRST_LONGEST) {
		how->length = GATE_FIRST_LONGEST;
	}
}

/* Beside an enum gate_manage: the packet overlaps what was seen before. */
#define GATE_OVERLAPS 0x100

/* A packet of a flow that may pass, and of whose side user space wants to see more. */
__noinline int gate_managed(struct __sk_buff *skb, const struct gate_packet *packet,
			    const struct gate_flow *flow, __u32 hook, __u32 manage)
{
	const struct gate_control *control = gate_settings();
	struct gate_counts *counts = gate_counts(hook);
	struct gate_copying how = {.hook = hook, .reason = GATE_MANAGED, .length = skb->len};
	const struct gate_side *side;
	__u32 marks, end;
	int tcp;

	if (!control || !counts || !packet || !flow)
		return TCX_NEXT;
	side = packet->from ? &flow->side[1] : &flow->side[0];
	marks = packet->flags & (TCP_SYN | TCP_FIN);
	tcp = packet->key.protocol == PROTOCOL_TCP && !packet->fragmented;

	/* Bare acknowledgements carry nothing to classify; an urgent pointer takes a byte out. */
	if (!packet->payload_length && !(packet->flags & (TCP_SYN | TCP_FIN | TCP_RST | TCP_URG)))
		goto pass;
	end = packet->sequence + packet->payload_length + (marks & TCP_SYN ? 1 : 0) +
	      (marks & TCP_FIN ? 1 : 0);
	/* A bare FIN reveals nothing; if it overtakes what is held, TCP reorders it. */
	if (manage & GATE_HOLD && packet->payload_length && !(packet->flags & TCP_RST) &&
	    (!tcp || manage & GATE_OVERLAPS || (__s32)(end - side->hold_from) > 0)) {
		if (!gate_alone(control, bpf_ktime_get_coarse_ns()))
			return gate_hold(skb, counts, packet, flow, hook);
		if (control->drop_on_failure)
			return gate_done(counts, GATE_DROP_FAILURE, TCX_DROP);
		goto pass;
	}
	/* The end of a side is reported even if its bytes are skipped. */
	if (!(manage & GATE_COPY) ||
	    (tcp && manage & GATE_SKIP && !(packet->flags & (TCP_FIN | TCP_RST | TCP_URG)) &&
	     (__s32)(end - side->skip_to) <= 0))
		goto pass;
	if (tcp && skb->gso_size)
		gate_shorten(packet, side, manage, &how);
	/* The verdict on a held packet must not miss this one: its sender retransmits it. */
	if (!gate_copy(skb, counts, packet, flow, &how) &&
	    (control->drop_on_failure || manage & GATE_HOLD) &&
	    !gate_alone(control, bpf_ktime_get_coarse_ns()))
		return gate_done(counts, GATE_DROP_RING, TCX_DROP);
pass:
	return gate_pass(skb, counts, control, hook, flow->limit, GATE_PASS_DECIDED);
}

/* Makes an entry for a new flow, if there is room. */
__noinline int gate_new(const struct gate_packet *packet, __u32 budget, __u32 ifindex, __u32 hook)
{
	struct gate_flow flow = {};
	struct gate_key key;

	if (!packet)
		return -1;
	/* On Linux 6.1 the keys of maps must lie on the stack. */
	key = packet->key;
	flow.began_ns = bpf_ktime_get_coarse_ns();
	flow.seen_ns = flow.began_ns;
	flow.budget = budget;
	flow.client = GATE_NOBODY;
	flow.internal = hook == GATE_FROM_INTERNAL ? packet->from : !packet->from;
	flow.ifindex = ifindex;
	return bpf_map_update_elem(&gate_fresh, &key, &flow, BPF_NOEXIST);
}

/* The verdict on a flow that begins with this packet, if one like it was refused before; else 0. */
__noinline int gate_refused_before(const struct gate_packet *packet)
{
	struct gate_refusal_key key;
	struct gate_refusal *refusal;

	if (!packet)
		return 0;
	gate_refusal_key(packet, &key);
	refusal = bpf_map_lookup_elem(&gate_refusals, &key);
	if (!refusal || (__s64)(refusal->until_ns - bpf_ktime_get_coarse_ns()) <= 0)
		return 0;
	__sync_fetch_and_add(&refusal->refused, 1);
	return refusal->action;
}

/*
 * Is this a new connection between the sockets of one that has ended? The server of one begins
 * none, unless its client has ended that: else it could have what follows taken for something new.
 */
static __always_inline int gate_ended(const struct gate_packet *packet,
				      const struct gate_flow *flow)
{
	const struct gate_side *other = packet->from ? &flow->side[0] : &flow->side[1];
	__u32 flags = flow->side[0].tcp_flags | flow->side[1].tcp_flags;

	if (packet->from != flow->client)
		flags = other->tcp_flags;
	return (packet->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && flags & (TCP_FIN | TCP_RST);
}

/* Does a connection without payload so far begin again, with other sequence numbers? */
static __always_inline int gate_tries_again(const struct gate_packet *packet,
					    const struct gate_flow *flow)
{
	const struct gate_side *side = packet->from ? &flow->side[1] : &flow->side[0];

	return (packet->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && !flow->spoke &&
	       side->tcp_flags & TCP_SYN && side->first != packet->sequence;
}

/* A packet of an undecided flow. */
__noinline int gate_undecided(struct __sk_buff *skb, const struct gate_packet *packet, __u32 hook)
{
	const struct gate_control *control = gate_settings();
	struct gate_counts *counts = gate_counts(hook);
	__u64 now = bpf_ktime_get_coarse_ns();
	struct gate_flow *flow;
	struct gate_key key;
	int first;

	if (!control || !counts || !packet)
		return TCX_NEXT;
	key = packet->key;
	flow = bpf_map_lookup_elem(&gate_fresh, &key);
	/*
	 * Decided since it was looked up: what is counted here is still taken over. A remnant of a
	 * connection before this one is not.
	 */
	if (unlikely(flow && flow->action) && !bpf_map_lookup_elem(&gate_decided, &key)) {
		bpf_map_delete_elem(&gate_fresh, &key);
		flow = NULL;
	}
	if (flow && unlikely(gate_ended(packet, flow)) &&
	    (!flow->spoke || gate_report_ended(packet, flow, skb->ifindex, hook))) {
		bpf_map_delete_elem(&gate_fresh, &key);
		flow = NULL;
	}
	if (flow && unlikely(flow->refused)) {
		gate_account_frame(skb, flow, packet);
		return gate_refuse(skb, counts, packet, flow, hook, flow->refused);
	}
	if (!flow && packet->fragmented != 2) {
		int action = gate_refused_before(packet);

		if (action)
			return gate_refuse(skb, counts, packet, NULL, hook, action);
	}
	if (gate_alone(control, now)) {
		if (control->drop_on_failure)
			return gate_done(counts, GATE_DROP_FAILURE, TCX_DROP);
		return gate_done(counts, GATE_PASS_FAILURE, TCX_NEXT);
	}
	if (!flow) {
		/* Another CPU may have been earlier. */
		gate_new(packet, control->budget, skb->ifindex, hook);
		flow = bpf_map_lookup_elem(&gate_fresh, &key);
		if (!flow) {
			if (packet->payload_length && (control->hold || control->drop_on_failure))
				return gate_done(counts, GATE_DROP_RING, TCX_DROP);
			return gate_done(counts, GATE_PASS_UNDECIDED, TCX_NEXT);
		}
	}
	if (unlikely(gate_tries_again(packet, flow))) {
		struct gate_side *side = packet->from ? &flow->side[1] : &flow->side[0];
		struct gate_side *other = packet->from ? &flow->side[0] : &flow->side[1];

		side->first = packet->sequence;
		side->reach = packet->sequence;
		__sync_fetch_and_and(&other->tcp_flags, ~TCP_SYN);
	}
	gate_account_frame(skb, flow, packet);
	/* A side with payload may have sent a file that ends with the stream. */
	if (!packet->payload_length && !(packet->flags & TCP_URG) &&
	    !(flow->spoke && packet->flags & (TCP_FIN | TCP_RST)))
		return gate_done(counts, GATE_PASS_UNDECIDED, TCX_NEXT);
	if (!flow->spoke)
		flow->spoke = 1;
	first = packet->fragmented != 2 && flow->copied < flow->budget;
	if ((control->hold || first) && !gate_has_share(packet, flow, now)) {
		gate_done(counts, GATE_MISSED, 0);
		if (control->hold || control->drop_on_failure)
			return gate_done(counts, GATE_DROP_RING, TCX_DROP);
		return gate_done(counts, GATE_PASS_UNDECIDED, TCX_NEXT);
	}
	if (control->hold)
		return gate_hold(skb, counts, packet, flow, hook);
	if (first) {
		struct gate_copying how = {.hook = hook, .reason = GATE_FIRST, .length = skb->len};

		how.number = __sync_fetch_and_add(&flow->copied, 1);
		if (how.length > GATE_FIRST_LONGEST)
			how.length = GATE_FIRST_LONGEST;
		/* What user space does not get is not one of those that it has seen. */
		if (how.number < flow->budget && !gate_copy(skb, counts, packet, flow, &how)) {
			__sync_fetch_and_add(&flow->copied, -1);
			if (control->drop_on_failure)
				return gate_done(counts, GATE_DROP_RING, TCX_DROP);
		}
	}
	return gate_done(counts, GATE_PASS_UNDECIDED, TCX_NEXT);
}

static __always_inline void gate_fragment_key(const struct gate_packet *packet,
					      struct gate_fragment_key *key)
{
	struct gate_refusal_key ends;

	gate_refusal_key(packet, &ends);
	key->source[0] = ends.source[0];
	key->source[1] = ends.source[1];
	key->target[0] = ends.target[0];
	key->target[1] = ends.target[1];
	key->id = packet->fragment;
	key->protocol = packet->key.protocol;
}

/* Stores the flow of a first fragment. */
__noinline int gate_keep_fragment(const struct gate_packet *packet)
{
	struct gate_fragment_key key = {};
	struct gate_fragment fragment = {};

	if (!packet)
		return 0;
	gate_fragment_key(packet, &key);
	fragment.key = packet->key;
	fragment.from = packet->from;
	return bpf_map_update_elem(&gate_fragments, &key, &fragment, BPF_ANY);
}

/* Gives a later fragment the flow of its first; 0 if that is not known. */
__noinline int gate_find_fragment(struct gate_packet *packet)
{
	struct gate_fragment_key key = {};
	const struct gate_fragment *fragment;

	if (!packet)
		return 0;
	gate_fragment_key(packet, &key);
	fragment = bpf_map_lookup_elem(&gate_fragments, &key);
	if (!fragment)
		return 0;
	packet->key = fragment->key;
	packet->from = fragment->from & 1;
	return 1;
}

/*
 * A new connection between the sockets of one that has ended: user space gets the old entry, and
 * its entry goes. It stays if there is no room for that.
 */
static __always_inline int gate_begins_anew(struct __sk_buff *skb, const struct gate_packet *packet,
					    const struct gate_flow *flow, __u32 hook)
{
	return gate_ended(packet, flow) && gate_report_ended(packet, flow, skb->ifindex, hook) &&
	       !bpf_map_delete_elem(&gate_decided, &packet->key);
}

/* Reads a frame's headers. A global function, as some below: the verifier checks it once. */
__noinline int gate_read(struct __sk_buff *skb, struct gate_packet *packet)
{
	enum gate_kind kind = GATE_KIND_SHORT;
	int try;

	if (!packet)
		return GATE_KIND_OTHER;
	for (try = 0; try < 2; try++) {
		void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
		__u32 length = skb->len;

		kind = gate_parse(data, end, length, packet);
		/* Headers may lie outside the frame's first part. */
		if (likely(kind != GATE_KIND_SHORT) || length <= (__u32)(end - data) ||
		    bpf_skb_pull_data(skb, length > GATE_DEEPEST ? GATE_DEEPEST : length))
			break;
	}
	return kind;
}

static __always_inline int gate(struct __sk_buff *skb, __u32 hook)
{
	struct gate_counts *counts = gate_counts(hook);
	const struct gate_control *control = gate_settings();
	struct gate_packet packet;
	struct gate_flow *flow;
	__u32 manage;
	int kind, ours;

	if (!counts || !control)
		return TCX_NEXT;
	ours = skb->mark == GATE_MARK;
	gate_done(counts, ours ? GATE_RELEASED : GATE_RECEIVED, 0);
	if (ours)
		skb->mark = 0;
	if (unlikely(control->bypass))
		return ours ? TCX_NEXT : gate_done(counts, GATE_PASS_BYPASS, TCX_NEXT);
	kind = gate_read(skb, &packet);
	if (unlikely(ours)) {
		if (kind != GATE_KIND_FLOW)
			return TCX_NEXT;
		flow = bpf_map_lookup_elem(&gate_decided, &packet.key);
		return gate_pass(skb, counts, control, hook, flow ? flow->limit : 0, GATE_COUNTS);
	}
	if (unlikely(kind != GATE_KIND_FLOW)) {
		if (kind == GATE_KIND_OTHER)
			return gate_done(counts, GATE_PASS_OTHER, TCX_NEXT);
		if (kind == GATE_KIND_SHORT)
			return gate_done(counts, GATE_DROP_FORM, TCX_DROP);
		if (!gate_find_fragment(&packet))
			return gate_done(counts, GATE_PASS_FRAGMENT, TCX_NEXT);
	}
	/* Between internal hosts: decided where it entered. */
	if (hook == GATE_TO_INTERNAL && skb->ingress_ifindex &&
	    unlikely(gate_is_internal(control, skb->ingress_ifindex))) {
		/* Nor does it queue in a class again. */
		if ((skb->priority & 0xffff0000) == GATE_CLASSES)
			skb->priority = 0;
		return gate_done(counts, GATE_PASS_INTERNAL, TCX_NEXT);
	}
	if (unlikely(packet.fragmented == 1))
		gate_keep_fragment(&packet);

	flow = bpf_map_lookup_elem(&gate_decided, &packet.key);
	if (!flow || unlikely(gate_begins_anew(skb, &packet, flow, hook)))
		return gate_undecided(skb, &packet, hook);
	manage = packet.from ? flow->side[1].manage : flow->side[0].manage;
	if (unlikely(manage & GATE_HOLD) && gate_overlaps(&packet, flow))
		manage |= GATE_OVERLAPS;
	gate_account_frame(skb, flow, &packet);
	if (unlikely(flow->internal == GATE_NOBODY)) {
		flow->internal = hook == GATE_FROM_INTERNAL ? packet.from : !packet.from;
		flow->ifindex = skb->ifindex;
	}
	if (unlikely(flow->action != GATE_PASS))
		return gate_refuse(skb, counts, &packet, flow, hook, flow->action);
	if (unlikely(manage))
		return gate_managed(skb, &packet, flow, hook, manage);
	return gate_pass(skb, counts, control, hook, flow->limit, GATE_PASS_DECIDED);
}

SEC("tc")
int gate_from_internal(struct __sk_buff *skb)
{
	return gate(skb, GATE_FROM_INTERNAL);
}

SEC("tc")
int gate_to_internal(struct __sk_buff *skb)
{
	/* Released: it enters by the interface that it entered by before. User space has no other
	 * means. */
	if (unlikely(skb->mark == GATE_MARK_BACK)) {
		skb->mark = GATE_MARK;
		return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
	}
	return gate(skb, GATE_TO_INTERNAL);
}

__noinline int gate_read_driver(struct xdp_md *ctx, struct gate_packet *packet)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (!packet)
		return GATE_KIND_OTHER;
	return gate_parse(data, end, bpf_xdp_get_buff_len(ctx), packet);
}

/*
 * Refuses where the driver hands the frame over, which costs least; a refusal that must be reported
 * to its sender, and all else, is passed to the program above.
 */
SEC("xdp.frags")
int gate_driver(struct xdp_md *ctx)
{
	const struct gate_control *control = gate_settings();
	struct gate_counts *counts = gate_counts(GATE_DRIVER);
	struct gate_refusal *refusal;
	struct gate_refusal_key key;
	struct gate_packet packet;
	struct gate_flow *flow;

	if (!counts || !control)
		return XDP_PASS;
	gate_done(counts, GATE_RECEIVED, 0);
	if (unlikely(control->bypass))
		return gate_done(counts, GATE_PASS_BYPASS, XDP_PASS);
	if (gate_read_driver(ctx, &packet) != GATE_KIND_FLOW)
		return gate_done(counts, GATE_PASS_OTHER, XDP_PASS);
	flow = bpf_map_lookup_elem(&gate_decided, &packet.key);
	if (flow) {
		if (flow->action != GATE_DROP || gate_ended(&packet, flow))
			return gate_done(counts, GATE_PASS_DECIDED, XDP_PASS);
		gate_account(flow, &packet, 1, packet.length);
		/* The others of its packet are found by it above. */
		if (packet.fragmented)
			gate_keep_fragment(&packet);
		return gate_done(counts, GATE_DROP_VERDICT, XDP_DROP);
	}
	gate_refusal_key(&packet, &key);
	refusal = bpf_map_lookup_elem(&gate_refusals, &key);
	if (!refusal || refusal->action != GATE_DROP ||
	    (__s64)(refusal->until_ns - bpf_ktime_get_coarse_ns()) <= 0 ||
	    bpf_map_lookup_elem(&gate_fresh, &packet.key))
		return gate_done(counts, GATE_PASS_UNDECIDED, XDP_PASS);
	__sync_fetch_and_add(&refusal->refused, 1);
	return gate_done(counts, GATE_DROP_CACHE, XDP_DROP);
}

/*
 * Is this packet to queue in a class? For a filter behind gate_from_internal, whose action sends
 * those through their device: an IFB device of Linux 6.1 drops what a program sends there.
 */
SEC("tc")
int gate_limited(struct __sk_buff *skb)
{
	return (skb->priority & 0xffff0000) == GATE_CLASSES ? -1 : 0;
}

/*
 * Changes a flow in the map, so that nothing is lost that is counted meanwhile. Run by user space
 * (BPF_PROG_TEST_RUN); returns an enum gate_answer.
 */
SEC("syscall")
int gate_order(struct gate_request *order)
{
	/* Keys of maps cannot lie in a context. */
	struct gate_request copy = *order, *request = &copy;
	struct gate_flow *flow, *fresh;

	switch (request->order) {
	case GATE_ORDER_DECIDE:
	case GATE_ORDER_BOTH:
		return gate_decide(request);
	case GATE_ORDER_MANAGE:
		flow = bpf_map_lookup_elem(&gate_decided, &request->key);
		if (!flow)
			return GATE_NO_FLOW;
		gate_manage_side(&flow->side[0], &request->interest[0]);
		gate_manage_side(&flow->side[1], &request->interest[1]);
		return GATE_DONE;
	case GATE_ORDER_BUDGET:
		flow = bpf_map_lookup_elem(&gate_fresh, &request->key);
		if (!flow)
			return GATE_NO_FLOW;
		if (flow->budget < request->budget)
			flow->budget = request->budget;
		return GATE_DONE;
	case GATE_ORDER_SETTLE:
		flow = bpf_map_lookup_elem(&gate_decided, &request->key);
		fresh = bpf_map_lookup_elem(&gate_fresh, &request->key);
		if (flow && fresh) {
			gate_take_over(flow, fresh);
			bpf_map_delete_elem(&gate_fresh, &request->key);
		}
		return GATE_DONE;
	}
	return GATE_NO_FLOW;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
