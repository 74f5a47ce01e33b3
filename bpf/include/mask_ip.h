/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk down a packet: links and IP, with their options. Twin of crate mask's machine/walk.rs
 * and machine/walk/ip.rs, whose rules these are.
 */
#ifndef NIGH_MASK_IP_H
#define NIGH_MASK_IP_H

#include "checksum.h"
#include "mask_operate.h"

#define TYPE_IPV4 0x0800
#define TYPE_ARP 0x0806
#define TYPE_BRIDGED 0x6558 /* an Ethernet frame in GRE (RFC 7637, section 3.2) */
#define TYPE_VLAN 0x8100
#define TYPE_IPV6 0x86dd
#define TYPE_MPLS 0x8847
#define TYPE_MPLS_MULTICAST 0x8848
#define TYPE_SERVICE_VLAN 0x88a8

/* Options of IPv4 (RFC 791, section 3.1; RFC 2113). */
#define OPTION_END 0
#define OPTION_NOTHING 1
#define OPTION_RECORD_ROUTE 7
#define OPTION_LOOSE_ROUTE 131
#define OPTION_STRICT_ROUTE 137
#define OPTION_ROUTER_ALERT 148

/* Extension headers of IPv6 (IANA's list) of which the walk knows what is in them. */
#define EXTENSION_HOP_BY_HOP 0
#define EXTENSION_ROUTING 43
#define EXTENSION_FRAGMENT 44
#define EXTENSION_DESTINATION 60

/* Bytes of the packet; -1 where it does not have them. */
static __always_inline int mask_u8(struct mask_unit *u, __u32 at)
{
	return at < u->end ? u->in[mask_offset(at)] : -1;
}

static __always_inline int mask_u16(struct mask_unit *u, __u32 at)
{
	return at + 2 <= u->end ? __builtin_bswap16(LOAD16(u->in, mask_offset(at))) : -1;
}

static __always_inline void mask_keep_to(struct mask_unit *u, __u32 end)
{
	end = end < u->end ? end : u->end;
	u->kept = u->kept > end ? u->kept : end;
}

/* The end of what belongs to the packet, if it is nearer than it was. */
static __always_inline void mask_end_at(struct mask_unit *u, __u32 end)
{
	u->end = u->end < end ? u->end : end;
}

static __always_inline void mask_go(struct mask_unit *u, __u32 next, __u32 at)
{
	u->next = next;
	u->at = at;
}

/* An address of 4 bytes, or two of 16 in a row, of the result. */
static __always_inline __u64 mask_sum4(struct mask_unit *u, __u32 at)
{
	return LOAD32(u->out, mask_offset(at));
}

static __always_inline __u64 mask_sum16(struct mask_unit *u, __u32 at)
{
	at = mask_offset(at);
	return csum_halves(LOAD64(u->out, at)) + csum_halves(LOAD64(u->out, at + 8));
}

/* Notes that a checksum is to be computed over the result. */
static __always_inline void mask_note(struct mask_unit *u, __u32 at, __u32 from, __u32 to,
				      __u64 pseudo, __u32 zero_is_none)
{
	struct mask_sum *sum;

	if (u->sums >= MASK_SUMS)
		return;
	sum = &u->sum[u->sums++];
	sum->at = at;
	sum->from = from;
	sum->to = to;
	sum->pseudo = pseudo;
	sum->zero_is_none = zero_is_none;
}

/*
 * Whether this is IPv4, where no header identifies it: its checksum is right and all of it is
 * there. IPv6 has no checksum: its length is exactly what is there.
 */
static __always_inline int mask_is_ipv4(struct mask_unit *u, __u32 at)
{
	__u32 header = (mask_u8(u, at) & 15) * 4, i;
	int total = mask_u16(u, at + 2);
	__u64 sum = 0;

	if (header < IPV4_HEADER || at + header > u->end)
		return 0;
	for (i = 0; i < 15; i++)
		if (i * 4 < header)
			sum += LOAD32(u->in, mask_offset(at) + i * 4);
	return csum_fold(sum) == 0xffff && total >= (int)header && at + total <= u->end;
}

static __always_inline int mask_is_ipv6(struct mask_unit *u, __u32 at)
{
	int payload = mask_u16(u, at + 4);

	return payload > 0 && at + IPV6_HEADER + payload == u->end;
}

/* IP behind its EtherType. */
static __always_inline void mask_type(struct mask_unit *u)
{
	int version = mask_u8(u, u->at) >> 4;

	if (u->protocol == TYPE_IPV4)
		u->next = version == 4 ? NEXT_IPV4 : NEXT_NOTHING;
	else if (u->protocol == TYPE_IPV6)
		u->next = version == 6 ? NEXT_IPV6 : NEXT_NOTHING;
}

static __always_inline void mask_ethernet(struct mask_unit *u)
{
	__u32 at = u->at;

	u->next = NEXT_NOTHING;
	if (!mask_header(u, MASK_ETHERNET, at, 14))
		return;
	u->protocol = mask_u16(u, at + 12);
	mask_go(u, NEXT_TYPE, at + 14);
}

/* The next header after a label, an EtherType or a protocol number. */
__noinline int mask_link(void)
{
	struct mask_unit *u = mask_unit();
	__u32 next, type, at;
	int version;

	if (!u)
		return 0;
	next = u->next;
	at = u->at;
	u->next = NEXT_NOTHING;
	type = next == NEXT_TYPE ? u->protocol : 0;
	if (type == TYPE_BRIDGED) {
		mask_ethernet(u);
		return 0;
	}
	if (type == TYPE_VLAN || type == TYPE_SERVICE_VLAN) {
		if (mask_treat(MASK_VLAN, at, 4)) {
			u->protocol = mask_u16(u, at + 2);
			mask_go(u, NEXT_TYPE, at + 4);
		}
		return 0;
	}
	if (type == TYPE_MPLS || type == TYPE_MPLS_MULTICAST) {
		if (mask_treat(MASK_MPLS, at, 4)) {
			u->protocol = TYPE_MPLS;
			mask_go(u, mask_u16(u, at + 2) & 0x0100 ? NEXT_LABELLED : NEXT_TYPE,
				at + 4);
		}
		return 0;
	}
	if (type == TYPE_ARP) {
		/* Of others than Ethernet and IPv4 only the structure is kept. */
		if (mask_u16(u, at) == 1 && mask_u16(u, at + 2) == TYPE_IPV4 &&
		    mask_u16(u, at + 4) == 0x0604)
			mask_treat(MASK_ARP, at, 28);
		else if (mask_u16(u, at) >= 0 &&
			 (mask_u16(u, at) != 1 ||
			  (mask_u16(u, at + 2) >= 0 &&
			   (mask_u16(u, at + 2) != TYPE_IPV4 || mask_u16(u, at + 4) >= 0))))
			mask_treat(MASK_ARP, at, 6);
		return 0;
	}
	if (next == NEXT_TYPE)
		return 0;
	version = mask_u8(u, at) >> 4;
	if (next == NEXT_LABELLED && !(version == 4   ? mask_is_ipv4(u, at)
				       : version == 6 ? mask_is_ipv6(u, at)
						      : 0))
		return 0;
	if (version == 4)
		u->next = NEXT_IPV4;
	else if (version == 6)
		u->next = NEXT_IPV6;
	return 0;
}

/* Nothing changes the header any more, and its missing bytes are zero in the result. */
static __always_inline void mask_ipv4_checksum(struct mask_unit *u, __u32 at, __u32 header)
{
	__u64 sum = 0;
	__u32 i;

	at = mask_offset(at);
	for (i = 0; i < 15; i++) {
		if (i * 4 >= header)
			break;
		sum += LOAD32(u->out, at + i * 4);
	}
	*(__u16 *)(u->out + at + 10) = ~csum_fold(sum);
}

/* Behind the options: where the packet goes in the end is the last address of a source route. */
static __always_inline void mask_ipv4_end(struct mask_unit *u)
{
	__u32 at = u->ip;
	int fragment = mask_u16(u, at + 6);

	u->next = NEXT_NOTHING;
	mask_ipv4_checksum(u, at, u->header);
	u->fragment = (fragment & 0x3fff) != 0;
	u->addresses = mask_sum4(u, at + 12) + mask_sum4(u, u->goal - 4);
	if (u->end < at + u->header || fragment & 0x1fff)
		return;
	u->protocol = mask_u8(u, at + 9);
	mask_go(u, NEXT_PROTOCOL, at + u->header);
}

static __always_inline void mask_ipv4(struct mask_unit *u)
{
	__u32 at = u->at, header;
	int first = mask_u8(u, at), total;

	u->next = NEXT_NOTHING;
	header = (first & 15) * 4;
	if (first < 0 || header < IPV4_HEADER)
		return;
	total = mask_u16(u, at + 2);
	if (total >= 0) {
		/* A super-packet without a length is longer than what is inspected. */
		if (total < (int)header)
			return;
		u->ip_end = at + total;
		mask_end_at(u, at + total);
	}
	if (!mask_header(u, MASK_IPV4, at, IPV4_HEADER))
		return;
	u->ip = at;
	u->header = header;
	u->goal = at + 20;
	u->option = at + IPV4_HEADER;
	u->options_end = at + header < u->end ? at + header : u->end;
	mask_keep_to(u, at + header);
	if (header > IPV4_HEADER)
		u->next = NEXT_IPV4_OPTION;
	else
		mask_ipv4_end(u);
}

static __always_inline void mask_fill(struct mask_unit *u, __u32 at, __u32 length)
{
	__u32 i;

	at = mask_offset(at);
	for (i = 0; i < 40; i++) {
		if (i >= length)
			break;
		u->out[at + i] = OPTION_NOTHING;
		barrier(); /* no memset, which there is none of */
	}
}

__noinline int mask_ipv4_option(void)
{
	struct mask_unit *u = mask_unit();
	__u32 at, length, count, n;
	int kind, stated;

	if (!u)
		return 0;
	at = u->option;
	kind = at < u->options_end ? mask_u8(u, at) : OPTION_END;
	stated = kind == OPTION_NOTHING ? 1 : mask_u8(u, at + 1);
	length = stated;
	/* An invalid length ends the options, as it does for a router. */
	if (kind <= OPTION_END || stated < 1 || at + length > u->options_end ||
	    (kind != OPTION_NOTHING && length < 2)) {
		mask_ipv4_end(u);
		return 0;
	}
	u->option = at + length;
	if ((kind == OPTION_RECORD_ROUTE || kind == OPTION_LOOSE_ROUTE ||
	     kind == OPTION_STRICT_ROUTE) &&
	    length >= 3 && mask_keeps(MASK_IPV4_ROUTE)) {
		mask_treat(MASK_IPV4_ROUTE, at, 3);
		count = (length - 3) / 4;
		for (n = 0; n < 9; n++)
			if (n < count)
				mask_treat(MASK_IPV4_ROUTE_ADDRESS, at + 3 + 4 * n, 4);
		/* The result's own: its checksums are right for itself. */
		if (kind != OPTION_RECORD_ROUTE && count > 0 &&
		    u->out[mask_offset(at + 2)] <= length)
			u->goal = at + 3 + 4 * count;
	} else if (kind == OPTION_ROUTER_ALERT && length == 4 &&
		   mask_keeps(MASK_IPV4_ROUTER_ALERT)) {
		mask_treat(MASK_IPV4_ROUTER_ALERT, at, 4);
	} else {
		mask_fill(u, at, length);
	}
	return 0;
}

__noinline int mask_ipv6(void)
{
	struct mask_unit *u = mask_unit();
	int length;
	__u32 at;

	if (!u)
		return 0;
	at = u->at;
	u->next = NEXT_NOTHING;
	length = mask_u16(u, at + 4);
	if (length >= 0) {
		u->ip_end = at + IPV6_HEADER + length;
		mask_end_at(u, u->ip_end);
	}
	if (!mask_treat(MASK_IPV6, at, IPV6_HEADER))
		return 0;
	u->ip = at;
	u->fragment = 0;
	u->addresses = mask_sum16(u, at + 8) + mask_sum16(u, at + 24);
	u->protocol = mask_u8(u, at + 6);
	mask_go(u, NEXT_EXTENSION, at + IPV6_HEADER);
	return 0;
}

/* Fills options of an extension header, of 2,046 bytes at most, with padding (RFC 8200,
 * section 4.2). */
static __always_inline void mask_pad(struct mask_unit *u, __u32 at, __u32 end)
{
	__u32 i, room;

	for (i = 0; i < 8; i++) {
		if (at + 2 > end) /* Pad1 is a zero. */
			break;
		room = end - at < 257 ? end - at : 257;
		u->out[mask_offset(at)] = 1;
		u->out[mask_offset(at + 1)] = room - 2;
		at += room;
	}
}

/*
 * A routing header (RFC 8200, section 4.4; RFC 8754, section 2), whose last address is where the
 * packet goes in the end; unknown ones are removed but for their structure. Whether the walk goes
 * on.
 */
static __always_inline int mask_routing(struct mask_unit *u, __u32 at, __u32 length)
{
	int kind = mask_u8(u, at + 2), left = mask_u8(u, at + 3);
	__u32 room = (length - 8) / 16, count = 0, goal = 0;

	if (kind < 0 || left < 0 || !mask_treat(MASK_IPV6_ROUTING, at, length))
		return 0;
	if (kind == 0 || kind == 2) {
		count = room;
		goal = room - 1;
	} else if (kind == 4) {
		/* Segments are in reverse order; what follows the last one becomes padding. */
		count = mask_u8(u, at + 4) + 1;
		if (count > room)
			return 0;
		mask_treat(MASK_IPV6_SEGMENTS, at, 5);
	}
	u->option = at + 8;
	u->options_end = at + 8 + 16 * count;
	u->goal = left > 0 && count ? at + 8 + 16 * goal : 0;
	return 1;
}

/* An extension header (RFC 8200, section 4), and the addresses of a routing header. */
__noinline int mask_extension(void)
{
	struct mask_unit *u = mask_unit();
	int more, next, field;
	__u32 at, kind, length;

	if (!u)
		return 0;
	at = u->at;
	kind = u->protocol;
	u->next = NEXT_NOTHING;
	switch (kind) {
	case EXTENSION_FRAGMENT:
		length = 8;
		break;
	case EXTENSION_HOP_BY_HOP:
	case EXTENSION_ROUTING:
	case EXTENSION_DESTINATION:
		more = mask_u8(u, at + 1);
		if (more < 0)
			return 0;
		length = (more + 1) * 8;
		break;
	case 51:  /* authentication, which could not be checked against a changed packet */
	case 135: /* mobility, HIP and Shim6, whose formats are their own */
	case 139:
	case 140:
		return 0;
	default:
		u->next = NEXT_PROTOCOL;
		return 0;
	}
	next = mask_u8(u, at);
	if (next < 0)
		return 0;
	u->protocol = next;
	if (kind == EXTENSION_FRAGMENT) {
		if (!mask_treat(MASK_IPV6_FRAGMENT, at, 8))
			return 0;
		field = mask_u16(u, at + 2);
		if (field & 0xfff9)
			u->fragment = 1;
		if (field & 0xfff8)
			return 0;
	} else if (kind == EXTENSION_ROUTING) {
		if (!mask_routing(u, at, length))
			return 0;
		mask_go(u, NEXT_ROUTING_ADDRESS, at + length);
		return 0;
	} else {
		if (!mask_treat(MASK_IPV6_OPTIONS, at, length))
			return 0;
		mask_pad(u, at + 2, at + length);
	}
	mask_go(u, NEXT_EXTENSION, at + length);
	return 0;
}

__noinline int mask_routing_address(void)
{
	struct mask_unit *u = mask_unit();

	if (!u)
		return 0;
	if (u->option < u->options_end) {
		mask_treat(MASK_IPV6_ROUTING_ADDRESS, u->option, 16);
		u->option += 16;
		return 0;
	}
	if (u->goal)
		u->addresses = mask_sum16(u, u->ip + 8) + mask_sum16(u, u->goal);
	u->next = NEXT_EXTENSION;
	return 0;
}

#endif
