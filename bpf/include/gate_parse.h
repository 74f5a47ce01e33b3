/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which flow a frame belongs to: Ethernet with up to two tags, IPv4 (RFC 791), IPv6 with up to six
 * extension headers (RFC 8200), TCP (RFC 9293, section 3.1), UDP (RFC 768), fragments of both.
 *
 * Only the headers need be in reach (data to end). What the frame holds behind its packet, such as
 * Ethernet's padding, is no payload.
 */
#ifndef NIGH_GATE_PARSE_H
#define NIGH_GATE_PARSE_H

#include "../abi/gate.h"
#include "parse.h"

#define PROTOCOL_TCP 6
#define PROTOCOL_HOP_BY_HOP 0
#define PROTOCOL_ROUTING 43
#define PROTOCOL_AUTHENTICATION 51
#define PROTOCOL_DESTINATION 60

#define TCP_HEADER 20
#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16
#define TCP_URG 32

#define GATE_EXTENSIONS 6
/* The last byte of headers that is read, so that offsets have a bound. */
#define GATE_DEEPEST 2048

enum gate_kind {
	GATE_KIND_FLOW,	    /* TCP or UDP; also the first fragment of such a packet */
	GATE_KIND_FRAGMENT, /* a later fragment: no ports */
	GATE_KIND_OTHER,    /* no flow */
	GATE_KIND_SHORT,    /* the headers are not in reach, too many, or wrong */
};

struct gate_packet {
	struct gate_key key; /* of a later fragment: source and target, no ports */
	__u32 network;	     /* where its headers begin */
	__u32 transport;
	__u32 payload;
	__u32 length; /* of the IP packet */
	__u32 payload_length;
	__u32 sequence;
	__u32 acknowledgement;
	__be32 fragment; /* its identification */
	__u8 fragmented; /* 1: the first fragment, 2: a later one */
	__u8 four;	 /* IPv4 */
	__u8 plain;	 /* neither options nor extension headers */
	__u8 from;	 /* which side of the key sent it */
	__u32 flags;	 /* TCP's */
};

/* What goes before an IPv4 address in the second half of its IPv6 form, as it lies in memory. */
#define GATE_MAPPED 0xffff0000ULL

/* Is a/p before b/q, bytewise? */
static __always_inline int gate_lower(const __u64 a[2], __be16 p, const __u64 b[2], __be16 q)
{
	if (a[0] != b[0])
		return __builtin_bswap64(a[0]) < __builtin_bswap64(b[0]);
	if (a[1] != b[1])
		return __builtin_bswap64(a[1]) < __builtin_bswap64(b[1]);
	return __builtin_bswap16(p) <= __builtin_bswap16(q);
}

/*
 * Tiny fragments, whose flow is unknown and which the receiver reassembles all the
 * same: firsts that end before the ports and flags are there are GATE_KIND_SHORT, and so are later
 * ones that begin within TCP's header (RFC 1858, RFC 3128; RFC 7112 of IPv6). This is `fragmented`
 * of such a one for a moment.
 */
#define GATE_TINY 3

static __always_inline int gate_is_extension(int next)
{
	return next == PROTOCOL_HOP_BY_HOP || next == PROTOCOL_ROUTING ||
	       next == PROTOCOL_AUTHENTICATION || next == PROTOCOL_DESTINATION ||
	       next == PROTOCOL_FRAGMENT;
}

/*
 * Stores where something begins in the packet, and reads it again; 0 if it is beyond `most`. What
 * comes by many branches is one number to the verifier after that, of which it knows no more than
 * its bound; else it would look at all that follows once for each branch.
 */
static __always_inline int gate_join(__u32 *memory, __u32 *at, __u32 most)
{
	*memory = *at;
	barrier();
	*at = *memory;
	if (*at > most)
		return 0;
	/* Used is what was compared, and not a copy whose bound is unknown. */
	asm volatile("" : "+r"(*at));
	return 1;
}

/* Passes the extension headers; what is behind them, or -1. *at moves. */
static __always_inline int gate_extensions(void *data, void *end, int next, __u32 *at,
					   struct gate_packet *packet)
{
	__u32 offset = *at, i;

	for (i = 0; i < GATE_EXTENSIONS; i++) {
		void *header;

		if (!gate_is_extension(next))
			break;
		if (!gate_join(&packet->transport, &offset, GATE_DEEPEST))
			return -1;
		header = data + offset;
		if (header + 8 > end)
			return -1;
		packet->plain = 0;
		if (next == PROTOCOL_FRAGMENT) {
			packet->fragment = LOAD32(header, 4);
			/* Offset and more-fragments bit (RFC 8200, section 4.5). */
			packet->fragmented = LOAD16(header, 2) & ETHERTYPE(0xfff9) ? 1 : 0;
			if (LOAD16(header, 2) & ETHERTYPE(0xfff8))
				packet->fragmented =
				    (LOAD16(header, 2) & ETHERTYPE(0xfff8)) == ETHERTYPE(8)
					? GATE_TINY
					: 2;
			next = *(__u8 *)header;
			offset += 8;
			if (packet->fragmented >= 2)
				break;
			continue;
		}
		if (next == PROTOCOL_AUTHENTICATION)
			offset += (((__u8 *)header)[1] + 2) * 4; /* RFC 4302, section 2.2 */
		else
			offset += (((__u8 *)header)[1] + 1) * 8;
		next = *(__u8 *)header;
	}
	/* A later fragment's next header is behind it only in the first. */
	if (packet->fragmented < 2 && gate_is_extension(next))
		return -1;
	*at = offset;
	return next;
}

/*
 * Reads a frame's headers; `wire` is the frame's length. To be used in global functions: the
 * verifier tracks what is in a packet that is on the stack.
 */
static __always_inline enum gate_kind gate_parse(void *data, void *end, __u32 wire,
						 struct gate_packet *packet)
{
	__u64 source[2], target[2];
	__u32 offset, at, headers;
	__be16 type, from, to;
	void *l3, *l4;
	int protocol;

	type = parse_link(data, end, &offset);
	if (!gate_join(&packet->network, &offset, ETHERNET_HEADER + 2 * VLAN_TAG))
		return GATE_KIND_SHORT;
	l3 = data + offset;
	packet->fragmented = 0;
	packet->plain = 1;
	if (type == ETHERTYPE_IPV4) {
		__u32 header;

		if (l3 + IPV4_HEADER > end)
			return GATE_KIND_SHORT;
		header = (*(__u8 *)l3 & 15) * 4;
		packet->length = __builtin_bswap16(LOAD16(l3, 2));
		if (*(__u8 *)l3 >> 4 != 4 || header < IPV4_HEADER)
			return GATE_KIND_SHORT;
		packet->plain = header == IPV4_HEADER;
		packet->four = 1;
		source[0] = target[0] = 0;
		source[1] = GATE_MAPPED | (__u64)LOAD32(l3, 12) << 32;
		target[1] = GATE_MAPPED | (__u64)LOAD32(l3, 16) << 32;
		protocol = ((__u8 *)l3)[9];
		if (LOAD16(l3, 6) & ETHERTYPE(0x3fff)) {
			packet->fragmented = LOAD16(l3, 6) & ETHERTYPE(0x1fff) ? 2 : 1;
			if ((LOAD16(l3, 6) & ETHERTYPE(0x1fff)) == ETHERTYPE(1))
				packet->fragmented = GATE_TINY;
			packet->fragment = LOAD16(l3, 4);
		}
		at = offset + header;
	} else if (type == ETHERTYPE_IPV6) {
		if (l3 + IPV6_HEADER > end)
			return GATE_KIND_SHORT;
		if (*(__u8 *)l3 >> 4 != 6)
			return GATE_KIND_SHORT;
		packet->length = __builtin_bswap16(LOAD16(l3, 4));
		if (packet->length)
			packet->length += IPV6_HEADER;
		packet->four = 0;
		source[0] = LOAD64(l3, 8);
		source[1] = LOAD64(l3, 16);
		target[0] = LOAD64(l3, 24);
		target[1] = LOAD64(l3, 32);
		protocol = ((__u8 *)l3)[6];
		at = offset + IPV6_HEADER;
		if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP) {
			protocol = gate_extensions(data, end, protocol, &at, packet);
			if (protocol < 0)
				return GATE_KIND_SHORT;
		}
	} else {
		return type ? GATE_KIND_OTHER : GATE_KIND_SHORT;
	}
	if (!gate_join(&packet->transport, &at, GATE_DEEPEST))
		return GATE_KIND_SHORT;
	if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP)
		return GATE_KIND_OTHER;
	if (unlikely(packet->fragmented == GATE_TINY)) {
		if (protocol == PROTOCOL_TCP)
			return GATE_KIND_SHORT;
		packet->fragmented = 2;
	}
	/* Super-packets of more than 64 KB have length 0 (or a jumbo payload option). */
	if (!packet->length)
		packet->length = wire - offset;
	if (at - offset > packet->length || offset + packet->length > wire)
		return GATE_KIND_SHORT;
	packet->payload = at;
	packet->payload_length = packet->length - (at - offset);
	packet->flags = 0;
	packet->sequence = 0;
	packet->acknowledgement = 0;
	*(__u32 *)&packet->key.protocol = protocol;
	if (packet->fragmented == 2) {
		packet->from = 0;
		packet->key.address[0][0] = source[0];
		packet->key.address[0][1] = source[1];
		packet->key.address[1][0] = target[0];
		packet->key.address[1][1] = target[1];
		packet->key.port[0] = 0;
		packet->key.port[1] = 0;
		return GATE_KIND_FRAGMENT;
	}
	l4 = data + at;
	if (l4 + UDP_HEADER > end)
		return GATE_KIND_SHORT;
	from = LOAD16(l4, 0);
	to = LOAD16(l4, 2);
	headers = UDP_HEADER;
	if (protocol == PROTOCOL_TCP) {
		if (l4 + TCP_HEADER > end)
			return GATE_KIND_SHORT;
		packet->sequence = __builtin_bswap32(LOAD32(l4, 4));
		packet->acknowledgement = __builtin_bswap32(LOAD32(l4, 8));
		headers = (((__u8 *)l4)[12] >> 4) * 4;
		packet->flags = ((__u8 *)l4)[13];
		if (headers < TCP_HEADER)
			return GATE_KIND_SHORT;
	}
	if (headers > packet->payload_length)
		return GATE_KIND_SHORT;
	packet->payload += headers;
	packet->payload_length -= headers;
	if (gate_lower(source, from, target, to)) {
		packet->from = 0;
		packet->key.address[0][0] = source[0];
		packet->key.address[0][1] = source[1];
		packet->key.address[1][0] = target[0];
		packet->key.address[1][1] = target[1];
		packet->key.port[0] = from;
		packet->key.port[1] = to;
	} else {
		packet->from = 1;
		packet->key.address[0][0] = target[0];
		packet->key.address[0][1] = target[1];
		packet->key.address[1][0] = source[0];
		packet->key.address[1][1] = source[1];
		packet->key.port[0] = to;
		packet->key.port[1] = from;
	}
	return GATE_KIND_FLOW;
}

/* The socket of the packet's sender and of its receiver. */
static __always_inline void gate_refusal_key(const struct gate_packet *packet,
					     struct gate_refusal_key *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	if (packet->from) {
		key->source[0] = packet->key.address[1][0];
		key->source[1] = packet->key.address[1][1];
		key->target[0] = packet->key.address[0][0];
		key->target[1] = packet->key.address[0][1];
		key->port = packet->key.port[0];
	} else {
		key->source[0] = packet->key.address[0][0];
		key->source[1] = packet->key.address[0][1];
		key->target[0] = packet->key.address[1][0];
		key->target[1] = packet->key.address[1][1];
		key->port = packet->key.port[1];
	}
	key->protocol = packet->key.protocol;
}

#endif
