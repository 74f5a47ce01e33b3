/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Refuses a packet and notifies its sender.
 *
 * A TCP segment is refused by turning it into the reset that a host answers with where there is no
 * such connection (RFC 9293, section 3.10.7.1):
 *
 *   with ACK     <SEQ=SEG.ACK><CTL=RST>
 *   without      <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>
 *
 * A datagram is turned into the ICMP port unreachable that answers it (RFC 792; RFC 4443, section
 * 3.1), with the headers of the datagram in it. So are no more than some a jiffy, as RFC 4443,
 * section 2.4 (f) wants it; others are dropped.
 *
 * It goes to its sender: one from internal hosts leaves by the interface that it came from; one to
 * internal hosts comes in there, as if the internal host had sent it, so that the kernel translates
 * its addresses as it does all others of that connection. Either is marked, and passes when it is
 * seen again.
 *
 * The receiver of a refused segment is notified too, as it may have nothing to send and would wait:
 * the segment goes on to it as a reset without payload. Its sequence number is what the receiver
 * expects; if it is not, the receiver answers that (RFC 5961, section 3.2), and has its reset by
 * that answer.
 *
 * No error is sent for multicast or for a source that is no host (RFC 1122, sections 3.2.2 and
 * 4.2.3.10; RFC 4443, section 2.4 (e)).
 */
#ifndef NIGH_GATE_REFUSE_H
#define NIGH_GATE_REFUSE_H

#include "checksum.h"
#include "gate_copy.h"

#define GATE_TTL 64

struct gate_ports {
	__be16 from;
	__be16 to;
};

/* A TCP header without options, and what is summed before it. */
struct gate_segment {
	__u64 source[2];
	__u64 target[2];
	__be32 length;
	__be32 protocol;
	struct gate_ports ports;
	__be32 sequence;
	__be32 acknowledgement;
	__be16 flags; /* and the header's length */
	__be16 window;
	__be16 check;
	__be16 urgent;
};

/* Headers of a datagram that are quoted: IPv6's and UDP's at the most. */
#define GATE_QUOTE (IPV6_HEADER + UDP_HEADER)

struct gate_error {
	__u8 type;
	__u8 code;
	__be16 check;
	__be16 zero;
	__be16 field; /* where UDP's checksum was */
	__u32 quote[GATE_QUOTE / 4];
};

/* What is built here; the stack is too small for it. */
struct gate_scratch {
	struct gate_segment segment;
	struct gate_error error;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gate_scratch);
} gate_scratch SEC(".maps");

static __always_inline struct gate_scratch *gate_room(void)
{
	__u32 zero = 0;
	struct gate_scratch *scratch = bpf_map_lookup_elem(&gate_scratch, &zero);

	if (scratch)
		__builtin_memset(scratch, 0, sizeof(*scratch));
	return scratch;
}

static __always_inline __u64 gate_sum(const __u32 *words, int count)
{
	__u64 sum = 0;
	int i;

	/* What is summed was written as words of other sizes. */
	barrier();
#pragma unroll
	for (i = 0; i < count; i++)
		sum += words[i];
	return sum;
}

/* From a socket of the packet's flow to the other. */
static __always_inline void gate_ends(const struct gate_packet *packet, int source,
				      struct gate_segment *segment)
{
	if (!source) {
		segment->source[0] = packet->key.address[0][0];
		segment->source[1] = packet->key.address[0][1];
		segment->target[0] = packet->key.address[1][0];
		segment->target[1] = packet->key.address[1][1];
		segment->ports.from = packet->key.port[0];
		segment->ports.to = packet->key.port[1];
	} else {
		segment->source[0] = packet->key.address[1][0];
		segment->source[1] = packet->key.address[1][1];
		segment->target[0] = packet->key.address[0][0];
		segment->target[1] = packet->key.address[0][1];
		segment->ports.from = packet->key.port[1];
		segment->ports.to = packet->key.port[0];
	}
}

/* An IPv4 header without options. */
static __always_inline int gate_store4(struct __sk_buff *skb, __u32 at,
				       const struct gate_segment *segment, __u32 length,
				       __u32 protocol)
{
	__u32 header[5] = {
	    __builtin_bswap32(0x45000000 | length),
	    __builtin_bswap32(0x4000),
	    __builtin_bswap32(GATE_TTL << 24 | protocol << 16),
	    segment->source[1] >> 32,
	    segment->target[1] >> 32,
	};

	header[2] |= (__u32)(__u16)~csum_fold(gate_sum(header, 5)) << 16;
	return bpf_skb_store_bytes(skb, at, header, sizeof(header), 0);
}

static __always_inline int gate_store6(struct __sk_buff *skb, __u32 at,
				       const struct gate_segment *segment, __u32 length,
				       __u32 protocol)
{
	__u64 header[5] = {
	    __builtin_bswap64(6ULL << 60 | (__u64)length << 16 | protocol << 8 | GATE_TTL),
	    segment->source[0],
	    segment->source[1],
	    segment->target[0],
	    segment->target[1],
	};

	return bpf_skb_store_bytes(skb, at, header, sizeof(header), 0);
}

__noinline int gate_store_macs(struct __sk_buff *skb)
{
	__u8 from[12], to[12];

	if (bpf_skb_load_bytes(skb, 0, from, sizeof(from)))
		return -1;
	__builtin_memcpy(to, from + 6, 6);
	__builtin_memcpy(to + 6, from, 6);
	return bpf_skb_store_bytes(skb, 0, to, sizeof(to), 0);
}

/* Sends what a packet was turned into to its sender. */
static __always_inline int gate_send_back(struct __sk_buff *skb, __u32 hook)
{
	skb->mark = GATE_MARK;
	return bpf_redirect(skb->ifindex, hook == GATE_TO_INTERNAL ? BPF_F_INGRESS : 0);
}

__u64 gate_jiffy;	 /* in which ICMP errors were counted last */
__u64 gate_unreachables; /* how many there were */

/* May an ICMP error be sent now? CPUs that begin a jiffy at one time may send some more. */
static __always_inline int gate_may_send_error(void)
{
	__u64 now = bpf_jiffies64();

	if (gate_jiffy != now) {
		gate_jiffy = now;
		gate_unreachables = 0;
	}
	return __sync_fetch_and_add(&gate_unreachables, 1) < GATE_UNREACHABLES;
}

/* The first byte that differs by family. */
static __always_inline __u8 gate_first_byte(const struct gate_packet *packet, int socket)
{
	__u64 high = packet->key.address[0][0], low = packet->key.address[0][1];

	if (socket) {
		high = packet->key.address[1][0];
		low = packet->key.address[1][1];
	}
	return packet->four ? low >> 32 : high;
}

/* Does the packet go to one host, and come from one? */
static __always_inline int gate_is_between_hosts(struct __sk_buff *skb,
						 const struct gate_packet *packet)
{
	__u8 group = packet->four ? 224 : 255, mac = 1;
	__u8 from = gate_first_byte(packet, packet->from);

	if (bpf_skb_load_bytes(skb, 0, &mac, sizeof(mac)) || mac & 1)
		return 0;
	if (from >= group || gate_first_byte(packet, !packet->from) >= group)
		return 0;
	/* 0.0.0.0/8; of IPv6 the unspecified address is the one to look for (RFC 4291). */
	if (packet->four)
		return from;
	return packet->from ? packet->key.address[1][0] || packet->key.address[1][1]
			    : packet->key.address[0][0] || packet->key.address[0][1];
}

/* Turns a datagram into its port unreachable. -1: there is none, and the packet may be damaged. */
__noinline int gate_unreachable(struct __sk_buff *skb, const struct gate_packet *packet, __u32 hook)
{
	struct gate_scratch *scratch = gate_room();
	struct gate_segment *segment;
	struct gate_error *error;
	__u32 length, partial, four;
	__u64 sum;

	if (!packet || !scratch || packet->key.protocol != PROTOCOL_UDP || !packet->plain ||
	    packet->fragmented || !gate_is_between_hosts(skb, packet) || !gate_may_send_error())
		return -1;
	segment = &scratch->segment;
	error = &scratch->error;
	four = packet->four;
	if (four) {
		length = ICMP_HEADER + IPV4_HEADER + UDP_HEADER;
		if (bpf_skb_load_bytes(skb, packet->network, error->quote,
				       IPV4_HEADER + UDP_HEADER))
			return -1;
	} else {
		length = ICMP_HEADER + GATE_QUOTE;
		if (bpf_skb_load_bytes(skb, packet->network, error->quote, GATE_QUOTE))
			return -1;
	}
	/* To its headers, all in one piece, and larger again. */
	if (bpf_skb_change_tail(skb, packet->transport + UDP_HEADER, 0))
		return -1;
	partial = gate_partial(skb, packet);
	if (bpf_skb_pull_data(skb, packet->transport + UDP_HEADER) ||
	    bpf_skb_change_tail(skb, packet->transport + length, 0))
		return -1;
	gate_ends(packet, !packet->from, segment);
	error->type = four ? 3 : 1;
	error->code = four ? 3 : 4;
	sum = gate_sum((const __u32 *)error, sizeof(*error) / 4);
	if (!four) {
		segment->length = __builtin_bswap32(length);
		segment->protocol = __builtin_bswap32(PROTOCOL_ICMPV6);
		sum += gate_sum((const __u32 *)segment, 10);
	}
	error->check = ~csum_fold(sum);
	/*
	 * An unfinished checksum will be finished: the sum of all this is put in that field, less
	 * what the field has now. So the field has the sum of the pseudo header, and will have
	 * none.
	 */
	if (partial && !four)
		error->field = csum_fold(gate_sum((const __u32 *)segment, 10));
	if (four) {
		if (gate_store4(skb, packet->network, segment, IPV4_HEADER + length,
				PROTOCOL_ICMP) ||
		    bpf_skb_store_bytes(skb, packet->transport, error,
					ICMP_HEADER + IPV4_HEADER + UDP_HEADER, 0))
			return -1;
	} else if (gate_store6(skb, packet->network, segment, length, PROTOCOL_ICMPV6) ||
		   bpf_skb_store_bytes(skb, packet->transport, error, sizeof(*error), 0)) {
		return -1;
	}
	if (gate_store_macs(skb))
		return -1;
	return gate_send_back(skb, hook);
}

/* Puts a segment's headers into the packet; it has no more than room for them. */
static __always_inline int gate_put(struct __sk_buff *skb, const struct gate_packet *packet,
				    struct gate_segment *segment, __u32 flags, __u32 partial)
{
	__u64 sum;

	segment->flags = __builtin_bswap16((TCP_HEADER / 4) << 12 | flags);
	segment->length = __builtin_bswap32(TCP_HEADER);
	segment->protocol = __builtin_bswap32(PROTOCOL_TCP);
	segment->check = 0;
	/* What is before an IPv4 address in its IPv6 form is 0 in sums: twice 0xffff. */
	sum = gate_sum((const __u32 *)segment, 10);
	if (partial)
		segment->check = csum_fold(sum);
	else
		segment->check = ~csum_fold(sum + gate_sum((const __u32 *)segment + 10, 5));
	if (packet->four) {
		if (gate_store4(skb, packet->network, segment, IPV4_HEADER + TCP_HEADER,
				PROTOCOL_TCP))
			return -1;
	} else if (gate_store6(skb, packet->network, segment, TCP_HEADER, PROTOCOL_TCP)) {
		return -1;
	}
	return bpf_skb_store_bytes(skb, packet->transport, &segment->ports, TCP_HEADER, 0);
}

/*
 * Turns a segment into its reset; before that its receiver has one if `both` is set. -1: there is
 * none, and the packet may be damaged.
 */
__noinline int gate_reset(struct __sk_buff *skb, const struct gate_packet *packet, __u32 hook,
			  __u32 both)
{
	struct gate_scratch *scratch = gate_room();
	struct gate_segment *segment;
	__u32 flags, partial;

	/* Resets are not answered. What has options or extension headers is not worth a reset. */
	if (!packet || !scratch || packet->key.protocol != PROTOCOL_TCP ||
	    packet->flags & TCP_RST || !packet->plain || packet->fragmented ||
	    !gate_is_between_hosts(skb, packet))
		return -1;
	segment = &scratch->segment;
	if (bpf_skb_change_tail(skb, packet->transport + TCP_HEADER, 0))
		return -1;
	partial = gate_partial(skb, packet);
	/* Without an acknowledgement it begins a connection, which its receiver does not have. */
	if (both && packet->flags & TCP_ACK) {
		gate_ends(packet, packet->from, segment);
		segment->sequence = __builtin_bswap32(packet->sequence);
		segment->acknowledgement = __builtin_bswap32(packet->acknowledgement);
		if (gate_put(skb, packet, segment, TCP_RST | TCP_ACK, partial))
			return -1;
		skb->mark = GATE_MARK;
		/* If there is no memory for it, the next one may have some. */
		bpf_clone_redirect(skb, skb->ifindex,
				   hook == GATE_FROM_INTERNAL ? BPF_F_INGRESS : 0);
	}
	gate_ends(packet, !packet->from, segment);
	segment->sequence = segment->acknowledgement = 0;
	if (packet->flags & TCP_ACK) {
		segment->sequence = __builtin_bswap32(packet->acknowledgement);
		flags = TCP_RST;
	} else {
		__u32 next = packet->sequence + packet->payload_length;

		next += !!(packet->flags & TCP_SYN) + !!(packet->flags & TCP_FIN);
		segment->acknowledgement = __builtin_bswap32(next);
		flags = TCP_RST | TCP_ACK;
	}
	if (gate_put(skb, packet, segment, flags, partial) || gate_store_macs(skb))
		return -1;
	return gate_send_back(skb, hook);
}

#endif
