/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the network header of an Ethernet frame is.
 *
 * Untagged, 802.1Q and 802.1ad (QinQ) frames, up to two tags: IEEE 802.3 section 3.1, IEEE 802.1Q
 * section 9. What is behind two tags and still a tag is left to the kernel. Crate `wire` reads the
 * same frames by the same rules; the captures in testdata/ go through both.
 */
#ifndef NIGH_PARSE_H
#define NIGH_PARSE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h> /* likely(), unlikely() */

#define ETHERTYPE(type) ((__be16)__builtin_bswap16(type))
#define ETHERTYPE_IPV4 ETHERTYPE(0x0800)
#define ETHERTYPE_IPV6 ETHERTYPE(0x86dd)
#define ETHERTYPE_8021Q ETHERTYPE(0x8100)
#define ETHERTYPE_8021AD ETHERTYPE(0x88a8)

#define ETHERNET_HEADER 14
#define VLAN_TAG 4
#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define ICMP_HEADER 8
#define UDP_HEADER 8

#define PROTOCOL_ICMP 1
#define PROTOCOL_UDP 17
#define PROTOCOL_FRAGMENT 44
#define PROTOCOL_ICMPV6 58

#define LOAD16(p, offset) (*(__u16 *)((__u8 *)(p) + (offset)))
#define LOAD32(p, offset) (*(__u32 *)((__u8 *)(p) + (offset)))
#define LOAD64(p, offset) (*(__u64 *)((__u8 *)(p) + (offset)))
#define STORE32(p, offset, value) (*(__u32 *)((__u8 *)(p) + (offset)) = (value))
#define STORE64(p, offset, value) (*(__u64 *)((__u8 *)(p) + (offset)) = (value))

/*
 * A value that was just checked to have no bits besides those of `mask`. Compilers check one copy
 * of a value and use another, and older verifiers do not know that the two are the same: this one
 * is within its bounds for every compiler and verifier.
 */
#define BOUNDED(value, mask)                                                                       \
	({                                                                                         \
		typeof(value) checked = (value);                                                   \
		barrier_var(checked);                                                              \
		checked &= (mask);                                                                 \
		checked;                                                                           \
	})

static __always_inline int is_tag(__be16 type)
{
	return type == ETHERTYPE_8021Q || type == ETHERTYPE_8021AD;
}

/*
 * Passes up to two tags. Returns the EtherType behind them and in *offset where the network header
 * begins; 0 for a frame that ends before.
 */
static __always_inline __be16 parse_link(void *data, void *end, __u32 *offset)
{
	__be16 type;

	*offset = ETHERNET_HEADER;
	if (data + ETHERNET_HEADER > end)
		return 0;
	type = LOAD16(data, 12);
	if (likely(!is_tag(type)))
		return type;
	*offset = ETHERNET_HEADER + VLAN_TAG;
	if (data + ETHERNET_HEADER + VLAN_TAG > end)
		return 0;
	type = LOAD16(data, 16);
	if (!is_tag(type))
		return type;
	*offset = ETHERNET_HEADER + 2 * VLAN_TAG;
	if (data + ETHERNET_HEADER + 2 * VLAN_TAG > end)
		return 0;
	return LOAD16(data, 20);
}

/* The frame returns to the station that it came from. */
static __always_inline void swap_macs(void *data)
{
	__u64 first = LOAD64(data, 0);
	__u32 second = LOAD32(data, 8);

	STORE64(data, 0, (first >> 48) | ((__u64)second << 16) | (first << 48));
	STORE32(data, 8, (__u32)(first >> 16));
}

/*
 * Addresses that must never be the source of a packet on the wire: 0.0.0.0/8 and 127.0.0.0/8 (RFC
 * 1122 section 3.2.1.3, RFC 6890 tables 1 and 4), multicast 224.0.0.0/4 and reserved 240.0.0.0/4
 * with the broadcast address (RFC 1112, RFC 6890 tables 15 and 16). Private, shared, link-local,
 * benchmarking and documentation space are left to the deny list: they are what laboratories and
 * enterprises use.
 */
static __always_inline int is_bogon4(__be32 source)
{
	__u8 first = (__u8)source; /* the first byte on the wire: little-endian */

	return first == 0 || first == 127 || first >= 224;
}

/*
 * Multicast ff00::/8 (RFC 4291 section 2.7) and everything that begins with 32 zero bits: the
 * unspecified and the loopback address, IPv4-compatible and IPv4-mapped ones (RFC 4291 sections
 * 2.5.2, 2.5.3, 2.5.5; RFC 6890 tables 17, 18, 20); nothing else is assigned there.
 */
static __always_inline int is_bogon6(__u64 high)
{
	return (__u32)high == 0 || (__u8)high == 0xff;
}

#endif
