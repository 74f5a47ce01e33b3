/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What IP carries: transports, ICMP with what it quotes, tunnels. Twin of crate mask's
 * machine/walk/transport.rs, whose rules these are.
 */
#ifndef NIGH_MASK_TRANSPORT_H
#define NIGH_MASK_TRANSPORT_H

#include "mask_ip.h"

#define IP_ICMP 1
#define IP_IPV4 4
#define IP_TCP 6
#define IP_UDP 17
#define IP_IPV6 41
#define IP_GRE 47
#define IP_ICMPV6 58
#define PORT_VXLAN 4789 /* RFC 7348, section 5 */

/* Notes that this checksum is to be computed; one of a fragment or a quote cannot be. */
static __always_inline void mask_note_transport(struct mask_unit *u, __u32 at, __u32 from,
						__u32 protocol, __u32 zero_is_none)
{
	__u64 pseudo = 0;

	if (u->fragment || u->quoted)
		return;
	if (protocol)
		pseudo = u->addresses + __builtin_bswap32(u->ip_end - from) +
			 __builtin_bswap16(protocol);
	mask_note(u, at, from, u->ip_end, pseudo, zero_is_none);
}

/* The next header after a protocol number. A fragment does not have all of a tunnel's packet.
 */
static __always_inline void mask_protocol(struct mask_unit *u)
{
	__u32 protocol = u->protocol;

	u->next = NEXT_NOTHING;
	if (protocol == IP_TCP)
		u->next = NEXT_TCP;
	else if (protocol == IP_UDP)
		u->next = NEXT_UDP;
	else if (protocol == IP_ICMP)
		u->next = NEXT_ICMP;
	else if (protocol == IP_ICMPV6)
		u->next = NEXT_ICMPV6;
	else if (u->fragment)
		return;
	else if (protocol == IP_IPV4 && mask_u8(u, u->at) >> 4 == 4)
		u->next = NEXT_IPV4;
	else if (protocol == IP_IPV6 && mask_u8(u, u->at) >> 4 == 6)
		u->next = NEXT_IPV6;
	else if (protocol == IP_GRE)
		u->next = NEXT_GRE;
}

static __always_inline void mask_tcp(struct mask_unit *u)
{
	__u32 at = u->at, header;

	u->next = NEXT_NOTHING;
	if (!mask_header(u, MASK_TCP, at, 20))
		return;
	mask_note_transport(u, at + 16, at, IP_TCP, 0);
	header = (mask_u8(u, at + 12) >> 4) * 4;
	if (header < 20)
		return;
	u->option = at + 20;
	u->options_end = at + header < u->end ? at + header : u->end;
	mask_keep_to(u, at + header);
	mask_go(u, header > 20 ? NEXT_TCP_OPTION : NEXT_PAYLOAD, at + header);
}

/* The option's kind of header, if it is one and something of it is kept; else MASK_KINDS. */
static __always_inline __u32 mask_tcp_kind(__u32 kind, __u32 length)
{
	__u32 option = MASK_KINDS;

	/* RFC 9293, section 3.2; RFC 7323, sections 2.2 and 3.2; RFC 2018, sections 2 and 3. */
	if (kind == 2 && length == 4)
		option = MASK_TCP_MSS;
	else if (kind == 3 && length == 3)
		option = MASK_TCP_WINDOW_SCALE;
	else if (kind == 4 && length == 2)
		option = MASK_TCP_SACK_PERMITTED;
	else if (kind == 5)
		option = MASK_TCP_SACK;
	else if (kind == 8 && length == 10)
		option = MASK_TCP_TIMESTAMPS;
	return mask_keeps(option) ? option : MASK_KINDS;
}

__noinline int mask_tcp_option(void)
{
	struct mask_unit *u = mask_unit();
	__u32 at, length, option, n;
	int kind, stated;

	if (!u)
		return 0;
	at = u->option;
	for (n = 0; n < 40; n++) {
		if (at >= u->options_end || u->in[mask_offset(at)] != OPTION_NOTHING)
			break;
		u->out[mask_offset(at++)] = OPTION_NOTHING;
	}
	kind = at < u->options_end ? mask_u8(u, at) : OPTION_END;
	stated = mask_u8(u, at + 1);
	length = stated;
	u->option = at + length;
	/* What is behind the last option gets no turn of its own. */
	if (kind <= OPTION_END || stated < 2 || u->option > u->options_end) {
		u->next = NEXT_PAYLOAD;
		return 0;
	}
	if (u->option == u->options_end)
		u->next = NEXT_PAYLOAD;
	option = mask_tcp_kind(kind, length);
	if (option == MASK_KINDS) {
		mask_fill(u, at, length);
	} else if (option == MASK_TCP_SACK) {
		mask_treat(MASK_TCP_SACK, at, 2);
		for (n = 0; n < 4; n++)
			if (n < (length - 2) / 8)
				mask_treat(MASK_TCP_SACK_BLOCK, at + 2 + 8 * n, 8);
	} else {
		mask_treat(option, at, length);
	}
	return 0;
}

/* RFC 7348, section 5: all but the network's number is as here, else it is another protocol. */
static __always_inline int mask_vxlan(struct mask_unit *u, __u32 at)
{
	__u64 header;

	if (at + 8 > u->end)
		return 0;
	header = __builtin_bswap64(LOAD64(u->in, mask_offset(at)));
	return (header & 0xffffffff000000ff) == 8ULL << 56 && mask_treat(MASK_VXLAN, at, 8);
}

static __always_inline void mask_udp(struct mask_unit *u)
{
	__u32 at = u->at, length;

	u->next = NEXT_NOTHING;
	if (!mask_header(u, MASK_UDP, at, UDP_HEADER))
		return;
	/* It may end before IP's payload does; an invalid length is replaced by that of IP's
	 * payload. */
	length = mask_u16(u, at + 4);
	if (length >= UDP_HEADER && length <= u->ip_end - at) {
		u->ip_end = at + length;
		mask_end_at(u, at + length);
	}
	if (mask_u16(u, at + 6) > 0)
		mask_note_transport(u, at + 6, at, IP_UDP, 1);
	if (mask_u16(u, at + 2) != PORT_VXLAN || u->fragment)
		mask_go(u, NEXT_PAYLOAD, at + UDP_HEADER);
	else if (mask_vxlan(u, at + UDP_HEADER))
		mask_go(u, NEXT_ETHERNET, at + UDP_HEADER + 8);
}

/* RFC 2784 and RFC 2890; other versions are removed. */
__noinline int mask_gre(void)
{
	struct mask_unit *u = mask_unit();
	__u32 at, length = 4;
	int flags;

	if (!u)
		return 0;
	at = u->at;
	u->next = NEXT_NOTHING;
	flags = mask_u16(u, at);
	if (flags < 0 || flags & 0x4fff || !mask_treat(MASK_GRE, at, 4))
		return 0;
	if (flags & 0x8000) {
		mask_keep_to(u, at + 8);
		mask_note_transport(u, at + 4, at, 0, 0);
		length += 4;
	}
	if (flags & 0x2000) {
		if (!mask_treat(MASK_GRE_KEY, at + length, 4))
			return 0;
		length += 4;
	}
	if (flags & 0x1000) {
		if (!mask_treat(MASK_GRE_SEQUENCE, at + length, 4))
			return 0;
		length += 4;
	}
	u->protocol = mask_u16(u, at + 2);
	mask_go(u, NEXT_TYPE, at + length);
	return 0;
}

/*
 * An error quotes a packet without its end. Some errors carry its length in words of `word` bytes,
 * and extensions behind it (RFC 4884, section 4); older ones with extensions have no length and
 * quote 128 bytes (section 5). `words` is negative if there is no length.
 */
static __always_inline void mask_quote(struct mask_unit *u, __u32 at, __u32 word, int words)
{
	if (words >= 0)
		mask_end_at(u, at + (words ? words * word : 128));
	if (u->fragment || at >= u->end)
		return;
	u->quoted = 1;
	mask_go(u, NEXT_IP, at);
}

__noinline int mask_icmp(void)
{
	struct mask_unit *u = mask_unit();
	int type, words;
	__u32 at;

	if (!u)
		return 0;
	at = u->at;
	u->next = NEXT_NOTHING;
	if (!mask_treat(MASK_ICMP, at, 4))
		return 0;
	mask_note_transport(u, at + 2, at, 0, 0);
	type = mask_u8(u, at);
	switch (type) {
	case 0:
	case 8:
		if (mask_treat(MASK_ICMP_ECHO, at + 4, 4))
			mask_go(u, NEXT_PAYLOAD, at + 8);
		return 0;
	case 5:
		if (mask_treat(MASK_ICMP_REDIRECT, at + 4, 4))
			mask_quote(u, at + 8, 4, -1);
		return 0;
	case 3:
	case 4:
	case 11:
	case 12:
		words = type == 4 ? -1 : mask_u8(u, at + 5);
		if (mask_treat(MASK_ICMP_ERROR, at + 4, 4))
			mask_quote(u, at + 8, 4, words);
	}
	return 0;
}

/* Messages of RFC 4443 and of neighbour discovery; of others type and code are kept. */
__noinline int mask_icmpv6(void)
{
	struct mask_unit *u = mask_unit();
	__u32 at, rest = MASK_KINDS, length = 4;
	int type, words;

	if (!u)
		return 0;
	at = u->at;
	u->next = NEXT_NOTHING;
	if (!mask_treat(MASK_ICMPV6, at, 4))
		return 0;
	mask_note_transport(u, at + 2, at, IP_ICMPV6, 0);
	type = mask_u8(u, at);
	switch (type) {
	case 1 ... 4:
		rest = MASK_ICMPV6_ERROR;
		break;
	case 128:
	case 129:
		rest = MASK_ICMPV6_ECHO;
		break;
	case 133:
		/* A router's solicitation has four bytes of nothing. */
		mask_keep_to(u, at + 8);
		break;
	case 134:
		rest = MASK_ROUTER_ADVERTISEMENT;
		length = 12;
		break;
	case 135:
	case 136:
		rest = MASK_NEIGHBOUR;
		length = 20;
		break;
	case 137:
		rest = MASK_NEIGHBOUR_REDIRECT;
		length = 36;
		break;
	default:
		return 0;
	}
	if (rest < MASK_KINDS && !mask_treat(rest, at + 4, length))
		return 0;
	if (type >= 133) {
		u->option = at + 4 + length;
		u->next = NEXT_NEIGHBOUR_OPTION;
	} else if (type >= 128) {
		mask_go(u, NEXT_PAYLOAD, at + 8);
	} else {
		words = type == 1 || type == 3 ? mask_u8(u, at + 4) : -1;
		mask_quote(u, at + 8, 8, words);
	}
	return 0;
}

/* An option of neighbour discovery (RFC 4861, section 4.6); of unknown ones type and length are
 * kept. */
__noinline int mask_neighbour_option(void)
{
	struct mask_unit *u = mask_unit();
	int words, kind;
	__u32 at;

	if (!u)
		return 0;
	at = u->option;
	u->next = NEXT_NOTHING;
	words = at < u->end ? mask_u8(u, at + 1) : 0;
	if (words < 1 || !mask_treat(MASK_NEIGHBOUR_OPTION, at, 8))
		return 0;
	kind = mask_u8(u, at);
	if ((kind == 1 || kind == 2) && words == 1) {
		if (!mask_treat(MASK_NEIGHBOUR_LINK, at, 8))
			return 0;
	} else if (kind == 3 && words == 4) {
		if (!mask_treat(MASK_NEIGHBOUR_PREFIX, at, 32))
			return 0;
	} else {
		mask_keep_to(u, at + words * 8);
	}
	u->option = at + words * 8;
	u->next = NEXT_NEIGHBOUR_OPTION;
	return 0;
}

#endif
