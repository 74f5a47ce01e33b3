// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The mask on an interface: packets are masked in the kernel, and only the result is given to user
 * space. Where the kernel has no cipher, other programs of this file copy them and user space masks
 * them; everything else is the same.
 *
 *   packet -> sample -> filter -> unit: in | walk, a program at each header | out -> ring
 *
 * The walk is a machine of small steps: each turn of one loop treats one header, one option or one
 * address, and selects the next step. So each step is a function that the verifier checks by
 * itself, and no call is deep; but those that most packets take are part of one turn. Its rules are
 * those of crate mask's machine/, and tests compare both byte by byte.
 */
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <bpf/bpf_helpers.h>

#include "include/mask_filter.h"
#include "include/mask_transport.h"

#define TCX_NEXT (-1) /* linux/bpf.h, enum tcx_action_base; older headers lack it */
#define MASK_TURNS 16384
#define MASK_SHORT 128 /* bytes of a result that are erased without a call */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline int mask_count(__u32 what)
{
	__u32 zero = 0;
	struct mask_counts *counts = bpf_map_lookup_elem(&mask_ledger, &zero);

	if (counts && what < MASK_COUNTS)
		counts->count[what]++;
	return TCX_NEXT;
}

/* The payload, if it is kept; of fragments and quotes it never is. */
static __always_inline void mask_payload(struct mask_unit *u)
{
	__u32 at = u->at, length = u->end - at;

	u->next = NEXT_NOTHING;
	if (!mask_settings.payload || u->quoted || u->fragment || at >= u->end)
		return;
	at = mask_offset(at);
	length = mask_offset(length);
	bpf_probe_read_kernel(u->out + at, length, u->in + at);
	u->kept = u->end;
}

/* Counts a header; whether there are too many. */
static __always_inline int mask_is_deep(struct mask_unit *u)
{
	return u->next <= NEXT_PAYLOAD && u->depth++ >= MASK_DEPTH;
}

/* One turn of the walk; 1 at its end. */
static long mask_turn(__u32 turn, void *unused)
{
	struct mask_unit *u = mask_unit();

	if (!u)
		return 1;
	if (mask_is_deep(u))
		return 1;
	/* What most packets have gets no turn of its own: each turn costs a call. */
	if (u->next == NEXT_ETHERNET) {
		mask_ethernet(u);
		if (mask_is_deep(u))
			return 1;
	}
	if (u->next == NEXT_TYPE)
		mask_type(u);
	if (u->next == NEXT_IPV4) {
		mask_ipv4(u);
		if (mask_is_deep(u))
			return 1;
	}
	if (u->next == NEXT_PROTOCOL)
		mask_protocol(u);
	switch (u->next) {
	case NEXT_NOTHING:
	case NEXT_IPV4: /* in a tunnel: another turn, as it is another header */
		break;
	case NEXT_PAYLOAD:
		mask_payload(u);
		break;
	case NEXT_IPV4_OPTION:
		mask_ipv4_option();
		break;
	case NEXT_IPV6:
		mask_ipv6();
		break;
	case NEXT_EXTENSION:
		mask_extension();
		break;
	case NEXT_ROUTING_ADDRESS:
		mask_routing_address();
		break;
	case NEXT_TCP:
		mask_tcp(u);
		break;
	case NEXT_TCP_OPTION:
		mask_tcp_option();
		break;
	case NEXT_UDP:
		mask_udp(u);
		break;
	case NEXT_GRE:
		mask_gre();
		break;
	case NEXT_ICMP:
		mask_icmp();
		break;
	case NEXT_ICMPV6:
		mask_icmpv6();
		break;
	case NEXT_NEIGHBOUR_OPTION:
		mask_neighbour_option();
		break;
	default:
		mask_link();
	}
	return u->next == NEXT_NOTHING || (u->next == NEXT_PAYLOAD && !mask_settings.payload);
}

/* The bytes of a checksum that are still to be added. */
struct mask_adding {
	__u64 sum;
	__u32 from, length;
};

/* Adds up to 512 bytes of what a checksum covers, as many as the kernel adds at once; 1 at the end.
 */
static long mask_add(__u32 turn, struct mask_adding *it)
{
	struct mask_unit *u = mask_unit();
	__u32 piece = it->length < 512 ? it->length & ~3U : 512;

	if (!u || !piece)
		return 1;
	barrier_var(piece);
	if (piece <= 512)
		it->sum += (__u32)bpf_csum_diff(NULL, 0, (void *)(u->out + mask_offset(it->from)),
						piece, 0);
	it->from += piece;
	it->length -= piece;
	return 0;
}

/* Fills in the nth checksum; what it covers beyond the result was removed, so it is zero. */
static __always_inline void mask_fill_in(struct mask_unit *u, __u32 n)
{
	struct mask_adding adding = {};
	const struct mask_sum *it;
	__u32 to, i;
	__u16 check;

	if (n >= MASK_SUMS)
		return;
	it = &u->sum[n];
	to = it->to < u->kept ? it->to : u->kept;
	if (it->from > to || it->at + 2 > u->kept)
		return;
	adding.sum = it->pseudo;
	adding.from = it->from;
	adding.length = to - it->from;
	if (to == u->kept && adding.length <= 64) {
		/* Most are of one header, behind which there is nothing. */
		for (i = 0; i < 8; i++) {
			if (i * 8 >= adding.length)
				break;
			adding.sum += csum_halves(LOAD64(u->out, mask_offset(it->from) + i * 8));
		}
	} else {
		bpf_loop(65536 / 512, mask_add, &adding, 0);
		/* Behind the end there may be more, if an inner packet ends before an outer one. */
		if (adding.length)
			adding.sum += LOAD32(u->out, mask_offset(adding.from)) &
				      (0xffffffff >> (32 - 8 * (adding.length & 3)));
	}
	check = ~csum_fold(adding.sum);
	if (!check && it->zero_is_none)
		check = 0xffff;
	*(__u16 *)(u->out + mask_offset(it->at)) = check;
}

/* Fills in all but the innermost one. */
static long mask_fill_in_outer(__u32 turn, void *unused)
{
	struct mask_unit *u = mask_unit();

	if (!u)
		return 1;
	mask_fill_in(u, u->sums - 2 - turn);
	return 0;
}

/* Masks the `captured` bytes that are in the unit. */
static __always_inline void mask_packet(struct mask_unit *u, __u32 link, __u32 captured)
{
	u->failed = 0;
	u->next = link == MASK_LINK_ETHERNET ? NEXT_ETHERNET : NEXT_IP;
	u->at = u->depth = u->kept = u->sums = 0;
	u->quoted = u->fragment = u->ip_end = 0;
	u->addresses = 0;
	u->end = captured;
	bpf_loop(MASK_TURNS, mask_turn, NULL, 0);
	/* The innermost comes first: outer ones cover it. Most packets have one. */
	if (u->sums)
		mask_fill_in(u, u->sums - 1);
	if (u->sums > 1)
		bpf_loop(u->sums - 1, mask_fill_in_outer, NULL, 0);
}

/* Gives the result to user space, if there is one, and erases it; the outcome. */
static __always_inline __u32 mask_give(struct mask_unit *u)
{
	__u32 zero = 0, kept = mask_offset(u->kept), outcome = MASK_TAKEN;
	void *nothing = bpf_map_lookup_elem(&mask_nothing, &zero);

	u->record.bytes = kept;
	if (u->failed)
		outcome = MASK_NO_KEY;
	else if (bpf_ringbuf_output(&mask_ring, &u->record, sizeof(u->record) + kept, 0))
		outcome = MASK_RING_FULL;
	if (kept <= MASK_SHORT)
		__builtin_memset(u->out, 0, MASK_SHORT);
	else if (nothing)
		bpf_probe_read_kernel(u->out, kept, nothing);
	return outcome;
}

/* Chooses the key of a time: that of the period that began last. */
static __always_inline int mask_choose(struct mask_unit *u, __u64 now)
{
	__u32 zero = 0, one = 1;
	const struct mask_period *first = bpf_map_lookup_elem(&mask_periods, &zero);
	const struct mask_period *second = bpf_map_lookup_elem(&mask_periods, &one);
	const struct mask_period *period = first;

	if (!first || !second)
		return 0;
	u->period = 0;
	if (second->epoch && second->begins_ns <= now &&
	    (!first->epoch || first->begins_ns > now || second->begins_ns > first->begins_ns)) {
		period = second;
		u->period = 1;
	}
	u->epoch = period->epoch;
	u->pad[0] = period->pad[0];
	u->pad[1] = period->pad[1];
	return period->epoch && period->begins_ns <= now;
}

/* Reads a frame into the unit, with the VLAN tag that the kernel has taken out of it. */
static __always_inline int mask_read(struct __sk_buff *skb, struct mask_unit *u, __u32 captured,
				     __u32 tagged)
{
	if (!tagged)
		return captured && !bpf_skb_load_bytes(skb, 0, u->in, mask_length(captured));
	*(__u16 *)(u->in + 12) = skb->vlan_proto;
	*(__u16 *)(u->in + 14) = __builtin_bswap16(skb->vlan_tci);
	if (captured <= 16)
		return captured && !bpf_skb_load_bytes(skb, 0, u->in, 12);
	return !bpf_skb_load_bytes(skb, 0, u->in, 12) &&
	       !bpf_skb_load_bytes(skb, 12, u->in + 16, mask_length(captured - 16));
}

/* Puts the packet as it is where its result would be. */
static __always_inline void mask_copy(struct mask_unit *u, __u32 captured)
{
	u->failed = 0;
	u->kept = captured;
	bpf_probe_read_kernel(u->out, mask_offset(captured), u->in);
}

/* Masks or copies one packet of an interface, if it is wanted; the outcome. */
static __always_inline __u32 mask_one(struct __sk_buff *skb, struct mask_unit *u, __u32 outgoing,
				      __u32 copies)
{
	__u32 tagged = mask_settings.link == MASK_LINK_ETHERNET && skb->vlan_present;
	__u32 length = skb->len + (tagged ? VLAN_TAG : 0), captured;
	__u64 now = bpf_ktime_get_tai_ns();
	__u32 outcome;

	if (mask_settings.sample != 0xffffffff && bpf_get_prandom_u32() > mask_settings.sample)
		return MASK_UNSAMPLED;
	captured = length < mask_settings.snap ? length : mask_settings.snap;
	if (!mask_read(skb, u, captured, tagged))
		return MASK_UNREAD;
	u->end = captured;
	u->record.at_ns = now;
	u->record.length = length;
	u->record.outgoing = outgoing;
	if (!mask_wanted(u))
		return MASK_FILTERED;
	if (!mask_choose(u, now))
		return MASK_NO_KEY;
	u->record.epoch = u->epoch;
	u->number = u->taken++ << 16 | bpf_get_smp_processor_id();
	if (copies)
		mask_copy(u, captured);
	else
		mask_packet(u, mask_settings.link, captured);
	outcome = mask_give(u);
	if (outcome == MASK_TAKEN && captured < length)
		mask_count(MASK_CUT);
	return outcome;
}

static __always_inline int mask_take(struct __sk_buff *skb, __u32 outgoing, __u32 copies)
{
	struct mask_unit *u = mask_unit();
	__u32 outcome;

	mask_count(MASK_SEEN);
	/* Softirqs are off, so it never is; two packets in one unit would be mixed. */
	if (!u || u->busy)
		return mask_count(MASK_UNREAD);
	u->busy = 1;
	outcome = mask_one(skb, u, outgoing, copies);
	u->busy = 0;
	return mask_count(outcome);
}

SEC("tc")
int mask_incoming(struct __sk_buff *skb)
{
	return mask_take(skb, 0, 0);
}

SEC("tc")
int mask_outgoing(struct __sk_buff *skb)
{
	return mask_take(skb, 1, 0);
}

/*
 * Where the kernel has no cipher, these copy packets for user space to mask. They are filters of
 * packet sockets, which get no packet themselves: so a copier goes with its process, as a link
 * does, where the kernel has no links for tc either.
 */
SEC("socket")
int mask_copy_incoming(struct __sk_buff *skb)
{
	mask_take(skb, 0, 1);
	return 0;
}

SEC("socket")
int mask_copy_outgoing(struct __sk_buff *skb)
{
	if (skb->pkt_type == PACKET_OUTGOING)
		mask_take(skb, 1, 1);
	return 0;
}

/* Treats the packet behind a struct mask_trial, so that a test can compare the result. */
static __always_inline int mask_try(struct __sk_buff *skb, __u32 copies)
{
	__u32 captured = skb->len - sizeof(struct mask_trial);
	struct mask_unit *u = mask_unit();
	struct mask_trial trial;

	if (!u || bpf_skb_load_bytes(skb, 0, &trial, sizeof(trial)))
		return mask_count(MASK_UNREAD);
	if (!captured || bpf_skb_load_bytes(skb, sizeof(trial), u->in, mask_length(captured)))
		return mask_count(MASK_UNREAD);
	u->end = u->record.length = captured;
	u->record.at_ns = 0;
	u->record.outgoing = 0;
	if (!mask_wanted(u))
		return mask_count(MASK_FILTERED);
	if (!mask_choose(u, bpf_ktime_get_tai_ns()))
		return mask_count(MASK_NO_KEY);
	u->record.epoch = u->epoch;
	u->number = trial.number;
	if (copies)
		mask_copy(u, captured);
	else
		mask_packet(u, trial.link, captured);
	return mask_count(mask_give(u));
}

SEC("tc")
int mask_trial(struct __sk_buff *skb)
{
	return mask_try(skb, 0);
}

SEC("tc")
int mask_copy_trial(struct __sk_buff *skb)
{
	return mask_try(skb, 1);
}

/* Puts a cipher in its slot; the kernel's error if it has none. */
SEC("syscall")
int mask_set_key(struct mask_key *key)
{
	__u32 index = key->period * MASK_CIPHERS + key->cipher;

	return cipher_set(&mask_ciphers, &index, key->key);
}
