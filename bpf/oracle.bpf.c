// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Answers the plain request of Proxidor (docs/oracle.md) where the driver hands the frame over, and
 * keeps the rate of each source prefix there and at the sockets.
 *
 *   frame -> our address and port? -> the plain request? -> a row? -> its rate? -> ranked, sent
 * back no: to the kernel        no: to the sockets       no: dropped
 *
 * The plain request is an unfragmented UDP datagram over IPv4 without options that asks for one
 * metric, brings no authentication and no source, and holds one TLV of 1 to 363 IPv4 addresses. Its
 * reply is a permutation of it with other bits in the first and third word of the header, so the
 * UDP checksum follows from the request's (RFC 1624, equation 3): it is carried, not verified. One
 * that was wrong is wrong in the reply, and none stays none. All that is not plain, errors too, is
 * the sockets'; so is what could not be answered here exactly as there.
 *
 * The packet is charged when nothing but the ranking is left to do, so what is passed to the
 * sockets is charged once as well, by their filter.
 */
#include "include/oracle.h"

/* Bits of the first eight bytes of an IPv4 header as a little-endian word. */
#define IPV4_PLAIN_MASK 0xff3f0000000000ffULL /* version, header length; more fragments, offset */
#define IPV4_PLAIN_BITS 0x0000000000000045ULL

/* Proxidor's fixed header and TLV header. */
#define PROXIDOR_HEADER 12
#define PROXIDOR_TLV 4
#define PROXIDOR_IPV4 1
/* Version, Q, opcode and the three flags of the first word, in network byte order: all zero. */
#define PROXIDOR_PLAIN_MASK __builtin_bswap32(0xf000ff00)

#define PLAIN_HEADERS (IPV4_HEADER + UDP_HEADER + PROXIDOR_HEADER + PROXIDOR_TLV)

static __always_inline int oracle_done(__u32 what, int verdict)
{
	oracle_count(what);
	return verdict;
}

/* Is this one of the service's addresses and ports? */
static __always_inline int oracle_serves(const struct oracle_config *config, __be32 address,
					 __be16 port)
{
	__u64 key = (__u64)port << 32 | address;
	const struct oracle_slot *slot = &config->slot[(__u8)((key * config->hash) >> 56)];

	return slot->address == address && slot->port == port && slot->used;
}

/* Which metric a servcode asks for; ORACLE_METRICS if none or several. */
static __always_inline __u32 oracle_metric(__u32 servcode)
{
	__u32 metric = 0;

	if (likely(!servcode))
		return 0;
	if (servcode & (servcode - 1))
		return ORACLE_METRICS;
	if (servcode >> 8)
		metric += 8;
	if (servcode >> (metric + 4))
		metric += 4;
	if (servcode >> (metric + 2))
		metric += 2;
	if (servcode >> (metric + 1))
		metric += 1;
	return metric;
}

/* RFC 1624, equation 3, for words of up to 32 bits and several changes at once. */
static __always_inline __u16 csum_changed(__u16 check, __u64 change)
{
	return (__u16)~csum_fold((__u16)~check + change);
}

SEC("xdp")
int oracle(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *l3, *udp;
	__u32 active = *(volatile __u32 *)&oracle_active;
	const struct oracle_config *config = &oracle_configs[active & ORACLE_CONFIG];
	const struct oracle_tables *tables = &oracle_tables[(active & ORACLE_TABLES) >> 1];
	__u32 offset, total, length, count, word, source, target, ports, check, row, zero = 0;
	struct oracle_scratch *scratch;
	__u64 head, next, sum;

	ARENA_USE(oracle_arena);
	if (parse_link(data, end, &offset) != ETHERTYPE_IPV4)
		return oracle_done(ORACLE_OTHER, XDP_PASS);
	l3 = data + offset;
	udp = l3 + IPV4_HEADER;
	if (udp + UDP_HEADER > end)
		return oracle_done(ORACLE_OTHER, XDP_PASS);
	head = LOAD64(l3, 0);
	next = LOAD64(l3, 8);
	source = LOAD32(l3, 12);
	target = LOAD32(l3, 16);
	ports = LOAD32(udp, 0);
	if ((head & IPV4_PLAIN_MASK) != IPV4_PLAIN_BITS || (__u8)(next >> 8) != PROTOCOL_UDP ||
	    !oracle_serves(config, target, ports >> 16))
		return oracle_done(ORACLE_OTHER, XDP_PASS);

	if (l3 + PLAIN_HEADERS + 4 > end)
		return oracle_done(ORACLE_PASS_LENGTH, XDP_PASS);
	total = __builtin_bswap16((__u16)(head >> 16));
	length = __builtin_bswap16(LOAD16(udp, 4));
	/* Bytes of candidates; too few wrap. */
	count = total - PLAIN_HEADERS;
	if (length + IPV4_HEADER != total || count & 3 || count - 4 > 4 * ORACLE_CANDIDATES - 4 ||
	    offset + total > (__u32)(end - data))
		return oracle_done(ORACLE_PASS_LENGTH, XDP_PASS);

	word = LOAD32(udp, 8);
	if (word & PROXIDOR_PLAIN_MASK || LOAD16(udp, 18) || LOAD16(udp, 20) != PROXIDOR_IPV4)
		return oracle_done(ORACLE_PASS_FORM, XDP_PASS);
	if (__builtin_bswap16(LOAD16(udp, 22)) != count + PROXIDOR_TLV)
		return oracle_done(ORACLE_PASS_LENGTH, XDP_PASS);

	if (LOAD64(data, 0) & 0x0001000000000001ULL || is_bogon4(source) || !(__u16)ports ||
	    oracle_serves(config, source, (__u16)ports))
		return oracle_done(ORACLE_PASS_SENDER, XDP_PASS);

	/*
	 * A checksum that is only the sum of the pseudo header: the sender is on this machine and
	 * left the rest to a network card, but there is none. The kernel accepts that, the client
	 * would not.
	 */
	check = LOAD16(udp, 6);
	sum = (__u64)source + target + __builtin_bswap16(PROTOCOL_UDP) + LOAD16(udp, 4);
	if (!csum_valid(csum_halves(head) + csum_halves(next) + target) || check == csum_fold(sum))
		return oracle_done(ORACLE_PASS_SUM, XDP_PASS);

	row = 0;
	if (likely(active & ORACLE_READY))
		row = oracle_row(tables, oracle_metric(__builtin_bswap16((__u16)word)), source);
	scratch = bpf_map_lookup_elem(&oracle_scratch, &zero);
	if (!row || !scratch)
		return oracle_done(ORACLE_PASS_TABLE, XDP_PASS);
	if (config->limited && !oracle_within4(config, source))
		return oracle_done(ORACLE_OVER_RATE, XDP_DROP);

	/* The headers, while pointers into the frame are valid. */
	STORE32(udp, 0, ports >> 16 | ports << 16);
	if (check) {
		sum = (__u64)~word + tables->head + (__u16)~LOAD16(udp, 16) + config->ttl;
		check = csum_changed(check, sum);
		LOAD16(udp, 6) = check ? check : 0xffff;
	}
	STORE32(udp, 8, tables->head);
	LOAD16(udp, 16) = config->ttl;
	/* Type of service 0, as from a socket; TTL 64. */
	sum = (__u16) ~(head & 0xff00) + (__u16) ~(__u8)next + 64;
	check = csum_changed((__u16)(next >> 16), sum);
	*(__u8 *)(l3 + 1) = 0;
	STORE32(l3, 8, check << 16 | PROTOCOL_UDP << 8 | 64);
	STORE64(l3, 12, (__u64)source << 32 | target);
	swap_macs(data);

	count = BOUNDED(count - 4, ORACLE_LIST * 4 - 4) + 4;
	/* Both calls can fail only where the length is not what was just seen. */
	offset += PLAIN_HEADERS;
	if (bpf_xdp_load_bytes(ctx, offset, scratch->from, count))
		return XDP_ABORTED;
	if (!oracle_rank((active & ORACLE_TABLES) >> 1, row, count >> 2) ||
	    bpf_xdp_store_bytes(ctx, offset, scratch->to, count))
		return XDP_ABORTED;
	return oracle_done(ORACLE_ANSWERED, XDP_TX);
}

/* Attached to the sockets (SO_ATTACH_BPF): what is over its rate is dropped before it is queued. */
SEC("socket")
int oracle_limit(struct __sk_buff *skb)
{
	__u32 active = *(volatile __u32 *)&oracle_active;
	const struct oracle_config *config = &oracle_configs[active & ORACLE_CONFIG];
	int within = 1;

	if (config->limited && skb->protocol == ETHERTYPE_IPV4) {
		__be32 source;

		within = bpf_skb_load_bytes_relative(skb, 12, &source, sizeof(source),
						     BPF_HDR_START_NET) ||
			 oracle_within4(config, source);
	} else if (config->limited) {
		__u64 source[2];

		within = bpf_skb_load_bytes_relative(skb, 8, source, sizeof(source),
						     BPF_HDR_START_NET) ||
			 oracle_within6(config, source[0], source[1]);
	}
	oracle_count(within ? ORACLE_SOCKET_TAKEN : ORACLE_SOCKET_OVER_RATE);
	return within ? -1 : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
