/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The echo responder: a request becomes its reply in place and leaves where it came in.
 *
 *   frame -> parse_link -> IPv4 or IPv6 header -> row of the destination address
 *            |                                    |  none: row "other", to the kernel
 *            v                                    v
 *            to the kernel              received + 1, then exactly one of
 *                                       passed, answered, drop[reason]
 *
 * The rules apply only to an ICMP message in an unfragmented packet without options or extension
 * headers; all else for our addresses is the kernel's. The order of the rules is the order of the
 * functions below, and of enum echo_drop.
 *
 * The reply keeps the request's type of service or traffic class and flow label, as Linux does
 * (RFC 1122 section 3.2.2.6 asks for the former; the latter keeps both directions of an anycast
 * flow on one path, RFC 7690), its identification and don't-fragment bit (unique because the
 * request's was, RFC 6864 section 4) and its length. TTL or hop limit is 64.
 *
 * There is no helper call on the path of an ordinary request: measured, a map lookup costs as much
 * as all the rest, a clock reading twice that. Configuration is a pair of structs in memory shared
 * with user space, which writes the idle one and then makes it active; a frame sees one of
 * them throughout. Time is the jiffy counter.
 */
#ifndef NIGH_ECHO_H
#define NIGH_ECHO_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "echo_state.h"
#include "parse.h"
#include "checksum.h"

#ifndef AF_INET
#define AF_INET 2
#define AF_INET6 10
#endif

/* What the rules use of a frame. */
struct echo_frame {
	struct xdp_md *ctx;
	void *data, *end;
	void *l3;
	__u32 offset; /* of l3 in the frame */
	const struct echo_config *config;
	struct echo_rows_of_cpu *rows;
	struct echo_row *row; /* of the destination, if that is ours */
	int probe;
};

/* Is this source refused by the allow and deny lists? */
static __noinline int echo_denied(const struct echo_config *config, __u64 high, __u64 low,
				  __u32 family)
{
	struct echo_list_key key = {.prefixlen = family == 6 ? 160 : 64};
	__u32 *refused;

	key.set = config->generation * 2 + (family == 6);
	__builtin_memcpy(key.address, &high, 8);
	__builtin_memcpy(key.address + 8, &low, 8);
	refused = bpf_map_lookup_elem(&echo_lists, &key);
	return refused ? *refused : !!(config->flags & ECHO_REFUSE_UNLISTED);
}

/*
 * The reply's route by the kernel's routing table. XDP_TX or XDP_REDIRECT with the MACs written, or
 * XDP_PASS where the kernel must decide (no neighbour yet, no route, too long for the interface, or
 * a tagged frame, which may leave through a VLAN device that only the kernel can put a tag on for).
 */
static __always_inline int echo_route(struct echo_frame *f, __u32 family)
{
	struct bpf_fib_lookup fib = {};

	if (f->offset != ETHERNET_HEADER)
		return XDP_PASS;
	fib.ifindex = f->ctx->ingress_ifindex;
	if (family == 6) {
		fib.family = AF_INET6;
		__builtin_memcpy(fib.ipv6_src, f->l3 + 24, 16);
		__builtin_memcpy(fib.ipv6_dst, f->l3 + 8, 16);
		fib.tot_len = IPV6_HEADER + __builtin_bswap16(LOAD16(f->l3, 4));
	} else {
		fib.family = AF_INET;
		fib.ipv4_src = LOAD32(f->l3, 16);
		fib.ipv4_dst = LOAD32(f->l3, 12);
		fib.tot_len = __builtin_bswap16(LOAD16(f->l3, 2));
	}
	if (bpf_fib_lookup(f->ctx, &fib, sizeof(fib), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return XDP_PASS;
	__builtin_memcpy(f->data, fib.dmac, 6);
	__builtin_memcpy(f->data + 6, fib.smac, 6);
	if (fib.ifindex == f->ctx->ingress_ifindex)
		return XDP_TX;
	return bpf_redirect(fib.ifindex, 0);
}

static __always_inline __u64 echo_hash4(int row, __u32 prefix)
{
	return limit_hash4(&echo_secret, row, prefix);
}

static __always_inline __u64 echo_hash6(int row, __u64 high, __u64 low)
{
	return limit_hash6(&echo_secret, row, high, low);
}

/* The limits in force: 0, or the one that refuses the packet. */
static __always_inline __u32 echo_limited(const struct echo_config *config, __u64 tick, __u64 hash0,
					  __u64 hash1)
{
	__u64 now = tick * echo_tick;

	if (config->flags & ECHO_SOURCE_RATE &&
	    !limit_take_either(echo_buckets, hash0, hash1, now, config->source))
		return ECHO_SOURCE_LIMIT;
	if (unlikely(config->flags & ECHO_NODE_RATE) &&
	    !limit_take(&echo_node_bucket, *(volatile __u64 *)&echo_node_bucket, now,
			&config->node))
		return ECHO_NODE_LIMIT;
	return 0;
}

#define DROP(reason)                                                                               \
	do {                                                                                       \
		f->row->drop[reason]++;                                                            \
		return XDP_DROP;                                                                   \
	} while (0)

#define PASS()                                                                                     \
	do {                                                                                       \
		f->row->passed++;                                                                  \
		return XDP_PASS;                                                                   \
	} while (0)

/* Bits of the first eight bytes of an IPv4 header as a little-endian word. */
#define IPV4_PLAIN_MASK 0xff3f0000000000ffULL /* version, header length; more fragments, offset */
#define IPV4_PLAIN_BITS 0x0000000000000045ULL

/* The fragment bits (RFC 791): more fragments, or an offset. */
#define IPV4_FRAGMENT_MASK 0xff3f000000000000ULL

/* All but the first rows of the ledger: the rules for an IPv4 packet to one of our addresses. */
static __always_inline int echo_judge4(struct echo_frame *f, int probe)
{
	const struct echo_config *config = f->config;
	void *icmp = f->l3 + IPV4_HEADER, *last;
	__u64 word0 = LOAD64(f->l3, 0), word1 = LOAD64(f->l3, 8), macs, rest = 0;
	__u32 source = LOAD32(f->l3, 12), target = LOAD32(f->l3, 16);
	__u32 total = __builtin_bswap16(LOAD16(f->l3, 2)), left, ttl, check, type;
	__u32 flags = config->flags, offset = f->offset + IPV4_HEADER + ICMP_HEADER, reason;

	if ((__u8)(word1 >> 8) != PROTOCOL_ICMP)
		PASS();
	if (unlikely((word0 & IPV4_PLAIN_MASK) != IPV4_PLAIN_BITS)) {
		if (word0 & IPV4_FRAGMENT_MASK) {
			if (flags & ECHO_DROP_FRAGMENTS)
				DROP(ECHO_FRAGMENT);
			PASS();
		}
		if ((word0 & 0xf) < 5)
			DROP(ECHO_BAD_LENGTH);
		PASS();
	}
	/* Also below the minimum: it wraps. */
	left = total - IPV4_HEADER - ICMP_HEADER;
	if (left > CSUM_LONGEST - ICMP_HEADER)
		DROP(ECHO_BAD_LENGTH);
	left = BOUNDED(left, CSUM_LONGEST);
	last = icmp + left;
	if (icmp + ICMP_HEADER > f->end || last + ICMP_HEADER > f->end)
		DROP(ECHO_BAD_LENGTH);
	type = LOAD32(icmp, 0);
	if ((__u8)type != 8)
		PASS();
	if (unlikely((__u8)(type >> 8)))
		DROP(ECHO_BAD_CODE);
	macs = LOAD64(f->data, 0);
	if (unlikely(macs & 0x0001000000000001ULL))
		DROP(ECHO_NOT_UNICAST);
	if (!probe) {
		if (unlikely(is_bogon4(source)) || unlikely(echo_has4(config, source)))
			DROP(ECHO_BOGON_SOURCE);
		if (unlikely(flags & ECHO_LISTS) && echo_denied(config, source, 0, 4))
			DROP(ECHO_DENIED);
	}
	check = type >> 16;
	if (likely(flags & ECHO_VERIFY)) {
		if (unlikely(!csum_valid(csum_halves(word0) + csum_halves(word1) + target)))
			DROP(ECHO_BAD_CHECKSUM_IP);
		rest = csum_message(f->ctx, icmp, last, f->end, offset, left);
		if (unlikely(!csum_valid(rest + type)))
			DROP(ECHO_BAD_CHECKSUM_ICMP);
	} else if (unlikely(check == 0xfff7)) {
		rest = csum_message(f->ctx, icmp, last, f->end, offset, left);
	}
	if (!probe && flags & (ECHO_SOURCE_RATE | ECHO_NODE_RATE)) {
		__u32 prefix = source & config->mask4;

		reason = echo_limited(config, bpf_jiffies64(), echo_hash4(0, prefix),
				      echo_hash4(1, prefix));
		if (reason)
			DROP(reason);
	}
	if (unlikely(flags & ECHO_FIB) && !probe) {
		int verdict = echo_route(f, 4);

		if (verdict == XDP_PASS)
			PASS();
		f->row->answered++;
		type |= verdict << 8; /* carried past the writing, where the code is 0 again */
	} else {
		f->row->answered++;
		swap_macs(f->data);
		type |= XDP_TX << 8;
	}

	/*
	 * The type's word changes from 8 to 0: one's complement addition of 8. Equation 3 of RFC
	 * 1624 makes 0 of what the addition makes 0xffff of, and is right unless the reply is all
	 * zeros.
	 */
	check = csum_change(check, 8, 0);
	if (unlikely(check == 0) && !rest)
		check = 0xffff;
	STORE32(icmp, 0, check << 16);

	/* TTL is the low byte of its word, the protocol does not change. */
	ttl = (__u8)word1;
	check = csum_change((__u16)(word1 >> 16), ttl, 64);
	STORE32(f->l3, 8, check << 16 | PROTOCOL_ICMP << 8 | 64);
	STORE64(f->l3, 12, (__u64)source << 32 | target);
	return (__u8)(type >> 8);
}

/* The same for IPv6. */
static __always_inline int echo_judge6(struct echo_frame *f, int probe)
{
	const struct echo_config *config = f->config;
	void *icmp = f->l3 + IPV6_HEADER, *last;
	__u64 source0 = LOAD64(f->l3, 8), source1 = LOAD64(f->l3, 16);
	__u64 target0 = LOAD64(f->l3, 24), target1 = LOAD64(f->l3, 32), macs, rest;
	__u32 length = __builtin_bswap16(LOAD16(f->l3, 4)), left, check, type;
	__u32 flags = config->flags, offset = f->offset + IPV6_HEADER + ICMP_HEADER, reason;
	__u8 next = *(__u8 *)(f->l3 + 6);

	if (next != PROTOCOL_ICMPV6) {
		if (next == PROTOCOL_FRAGMENT && flags & ECHO_DROP_FRAGMENTS &&
		    icmp + 8 <= f->end && *(__u8 *)icmp == PROTOCOL_ICMPV6)
			DROP(ECHO_FRAGMENT);
		PASS();
	}
	left = length - ICMP_HEADER;
	if (left > CSUM_LONGEST - ICMP_HEADER)
		DROP(ECHO_BAD_LENGTH);
	left = BOUNDED(left, CSUM_LONGEST);
	last = icmp + left;
	if (icmp + ICMP_HEADER > f->end || last + ICMP_HEADER > f->end)
		DROP(ECHO_BAD_LENGTH);
	type = LOAD32(icmp, 0);
	if ((__u8)type != 128)
		PASS();
	if (unlikely((__u8)(type >> 8)))
		DROP(ECHO_BAD_CODE);
	macs = LOAD64(f->data, 0);
	if (unlikely(macs & 0x0001000000000001ULL))
		DROP(ECHO_NOT_UNICAST);
	if (!probe) {
		if (unlikely(is_bogon6(source0)) ||
		    unlikely(echo_find6(config, source0, source1) != ECHO_NOT_OURS))
			DROP(ECHO_BOGON_SOURCE);
		if (unlikely(flags & ECHO_LISTS) && echo_denied(config, source0, source1, 6))
			DROP(ECHO_DENIED);
	}
	check = type >> 16;
	if (likely(flags & ECHO_VERIFY)) {
		/* The pseudo-header of RFC 8200 section 8.1. */
		rest = csum_halves(source0) + csum_halves(source1) + csum_halves(target0) +
		       csum_halves(target1) + __builtin_bswap32(length) +
		       __builtin_bswap32(PROTOCOL_ICMPV6) + type;
		rest += csum_message(f->ctx, icmp, last, f->end, offset, left);
		if (unlikely(!csum_valid(rest)))
			DROP(ECHO_BAD_CHECKSUM_ICMP);
	}
	if (!probe && flags & (ECHO_SOURCE_RATE | ECHO_NODE_RATE)) {
		__u64 high = source0 & config->mask6[0], low = source1 & config->mask6[1];

		reason = echo_limited(config, bpf_jiffies64(), echo_hash6(0, high, low),
				      echo_hash6(1, high, low));
		if (reason)
			DROP(reason);
	}
	if (unlikely(flags & ECHO_FIB) && !probe) {
		int verdict = echo_route(f, 6);

		if (verdict == XDP_PASS)
			PASS();
		f->row->answered++;
		type |= verdict << 8;
	} else {
		f->row->answered++;
		swap_macs(f->data);
		type |= XDP_TX << 8;
	}
	/* The type's word changes from 128 to 129; with the pseudo-header no sum is that of
	 * nothing. */
	check = csum_change(check, 128, 129);
	STORE32(icmp, 0, check << 16 | 129);
	*(__u8 *)(f->l3 + 7) = 64;
	STORE64(f->l3, 8, target0);
	STORE64(f->l3, 16, target1);
	STORE64(f->l3, 24, source0);
	STORE64(f->l3, 32, source1);
	return (__u8)(type >> 8);
}

/*
 * A packet to one of our link addresses is the probe if it is an echo request from that address to
 * itself with the secret identifier. It is handled as any request, but is no unknown peer: bogon
 * rules, lists and limits are not for it. All else is the kernel's, as without us.
 */
static __always_inline int echo_is_probe4(struct echo_frame *f)
{
	void *icmp = f->l3 + IPV4_HEADER;

	return icmp + ICMP_HEADER <= f->end && *(__u8 *)f->l3 == 0x45 &&
	       *(__u8 *)(f->l3 + 9) == PROTOCOL_ICMP && *(__u8 *)icmp == 8 &&
	       LOAD16(icmp, 4) == f->config->probe_id && LOAD32(f->l3, 12) == LOAD32(f->l3, 16);
}

static __always_inline int echo_is_probe6(struct echo_frame *f)
{
	void *icmp = f->l3 + IPV6_HEADER;

	return icmp + ICMP_HEADER <= f->end && *(__u8 *)(f->l3 + 6) == PROTOCOL_ICMPV6 &&
	       *(__u8 *)icmp == 128 && LOAD16(icmp, 4) == f->config->probe_id &&
	       LOAD64(f->l3, 8) == LOAD64(f->l3, 24) && LOAD64(f->l3, 16) == LOAD64(f->l3, 32);
}

/*
 * Finds the row of the address that a frame is for. Returns the family, 4 or 6, whose header is
 * then known to be there; 0 for a frame that is not for us.
 */
static __always_inline int echo_locate(struct echo_frame *f)
{
	__be16 type = parse_link(f->data, f->end, &f->offset);
	__u32 at = ECHO_NOT_OURS;
	int family = 0;

	f->l3 = f->data + f->offset;
	if (type == ETHERTYPE_IPV4) {
		if (f->l3 + IPV4_HEADER > f->end || (*(__u8 *)f->l3 & 0xf0) != 0x40)
			return 0;
		at = echo_find4(f->config, LOAD32(f->l3, 16)) & ~ECHO_ALL_LONG;
		if (at == ECHO_PROBED && !echo_is_probe4(f))
			return 0;
		family = 4;
	} else if (type == ETHERTYPE_IPV6) {
		if (f->l3 + IPV6_HEADER > f->end || (*(__u8 *)f->l3 & 0xf0) != 0x60)
			return 0;
		at = echo_find6(f->config, LOAD64(f->l3, 24), LOAD64(f->l3, 32));
		if (at == ECHO_PROBED && !echo_is_probe6(f))
			return 0;
		family = 6;
	}
	f->probe = at == ECHO_PROBED;
	if (f->probe) {
		f->row = &f->rows->row[ECHO_ROW_PROBE];
		return family;
	}
	if (at > ECHO_AT_LAST)
		return 0;
	f->row = echo_row(f->rows, at);
	return family;
}

static __always_inline int echo_judge(struct echo_frame *f, int family)
{
	f->row->received++;
	return family == 4 ? echo_judge4(f, f->probe) : echo_judge6(f, f->probe);
}

#define ECHO_SLOW_PATH -1

/*
 * The fast path: an ordinary request over IPv4, untagged, of less than 72 bytes of ICMP, which
 * nothing forbids to answer. It makes the checks of the slow path and answers; at the first check
 * that fails the frame, untouched and uncounted, goes to the slow path, which alone has the rules
 * for it.
 *
 * What is a call in C comes first, when there is nothing yet to be kept across it; header words are
 * read once for the checks and again for the answer instead of being kept. That leaves all in
 * registers. With `sampling` the frame is already known to be a sample.
 */
static __always_inline int echo_fast_path(struct xdp_md *ctx, struct echo_rows_of_cpu *rows,
					  int sampling)
{
	__u64 tick = bpf_jiffies64(), head, sum, rest, macs;
	const struct echo_config *config;
	__u32 word, at, left, check;
	struct echo_row *row;
	void *data, *end, *last;

	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + ETHERNET_HEADER + IPV4_HEADER + ICMP_HEADER > end)
		return ECHO_SLOW_PATH;
	if (LOAD16(data, 12) != ETHERTYPE_IPV4)
		return ECHO_SLOW_PATH;

	config = echo_config();
	word = LOAD32(data, 30);
	at = echo_find4(config, word);
	if (at > ECHO_AT_LAST)
		return ECHO_SLOW_PATH;
	row = echo_row(rows, at);
	if (!sampling && row->sampled_tick != tick)
		return ECHO_SLOW_PATH;

	head = LOAD64(data, 14); /* version to fragmentation */
	if ((head & IPV4_PLAIN_MASK) != IPV4_PLAIN_BITS)
		return ECHO_SLOW_PATH;
	left = __builtin_bswap16((__u32)head >> 16) - IPV4_HEADER - ICMP_HEADER;
	if (left >= 64)
		return ECHO_SLOW_PATH;
	left = BOUNDED(left, 63);
	sum = word + csum_halves(head);
	barrier_var(sum);
	head = LOAD64(data, 22); /* TTL, protocol, checksum, source */
	if ((head & 0xff00) != PROTOCOL_ICMP << 8)
		return ECHO_SLOW_PATH;
	sum += (__u32)head;
	word = head >> 32;
	sum += word;
	barrier_var(sum);
	if ((__u8)word - 1U > 222 || (__u8)word == 127 || echo_has4(config, word))
		return ECHO_SLOW_PATH;
	if (!csum_valid(sum))
		return ECHO_SLOW_PATH;

	last = data + ETHERNET_HEADER + IPV4_HEADER + left;
	if (last + ICMP_HEADER > end)
		return ECHO_SLOW_PATH;
	rest = csum_short(data + ETHERNET_HEADER + IPV4_HEADER, last, end, left);
	word = LOAD32(data, 34);
	/* Near the top the checksum's change carries: see the slow path. */
	if ((__u16)word != 8 || word >= 0xfff70000)
		return ECHO_SLOW_PATH;
	if (!csum_valid(rest + word))
		return ECHO_SLOW_PATH;

	barrier();
	macs = LOAD64(data, 0);
	if (macs & 0x0001000000000001ULL)
		return ECHO_SLOW_PATH;
	word = LOAD32(data, 22);
	check = (word >> 16) + (__u8)word - 64;
	if (check >= 0xffff)
		return ECHO_SLOW_PATH;
	if (config->flags & (ECHO_SOURCE_RATE | ECHO_NODE_RATE)) {
		__u32 prefix = LOAD32(data, 26) & config->mask4;
		__u32 reason = echo_limited(config, row->sampled_tick, echo_hash4(0, prefix),
					    echo_hash4(1, prefix));

		if (unlikely(reason)) {
			row->received++;
			row->drop[reason]++;
			return XDP_DROP;
		}
	}
	row->received++;
	row->answered++;
	barrier();

	STORE32(data, 22, check << 16 | PROTOCOL_ICMP << 8 | 64);
	/* 8 becomes 0, so the checksum grows by 8, in the order of bytes in memory. */
	STORE32(data, 34, LOAD32(data, 34) + (8 << 16) - 8);
	sum = LOAD64(data, 26);
	STORE64(data, 26, sum << 32 | sum >> 32);
	word = LOAD32(data, 8);
	STORE64(data, 0, (macs >> 48) | ((__u64)word << 16) | (macs << 48));
	STORE32(data, 8, (__u32)(macs >> 16));
	return XDP_TX;
}

/* The source prefix of a packet. */
static __always_inline struct echo_source echo_source(const struct echo_frame *f, int family)
{
	struct echo_source source = {.family = family};

	if (family == 4) {
		*(__u32 *)source.address = LOAD32(f->l3, 12) & f->config->mask4;
	} else {
		__u64 high = LOAD64(f->l3, 8) & f->config->mask6[0];
		__u64 low = LOAD64(f->l3, 16) & f->config->mask6[1];

		__builtin_memcpy(source.address, &high, 8);
		__builtin_memcpy(source.address + 8, &low, 8);
	}
	return source;
}

/* Counts and decides what the fast path leaves over, and takes samples. */
static __noinline int echo_slow_path(struct xdp_md *ctx)
{
	struct echo_frame f = {
	    .ctx = ctx,
	    .data = (void *)(long)ctx->data,
	    .end = (void *)(long)ctx->data_end,
	    .config = echo_config(),
	    .rows = echo_rows_of_cpu(),
	};
	struct echo_source source = {};
	int family, verdict = ECHO_SLOW_PATH;
	__u64 since = 0;

	if (!f.rows)
		return XDP_PASS;
	family = echo_locate(&f);
	if (!family) {
		f.rows->row[ECHO_ROW_OTHER].received++;
		f.rows->row[ECHO_ROW_OTHER].passed++;
		return XDP_PASS;
	}
	if (!f.probe && f.row->sampled_tick != bpf_jiffies64()) {
		source = echo_source(&f, family);
		f.row->sampled_tick = bpf_jiffies64();
		since = bpf_ktime_get_ns();
		verdict = echo_fast_path(ctx, f.rows, 1);
	}
	if (verdict == ECHO_SLOW_PATH)
		verdict = echo_judge(&f, family);
	if (since)
		echo_sample(f.row, &source, bpf_ktime_get_ns() - since);
	return verdict;
}

static __always_inline int echo_responder(struct xdp_md *ctx)
{
	struct echo_rows_of_cpu *rows = echo_rows_of_cpu();
	int verdict = rows ? echo_fast_path(ctx, rows, 0) : ECHO_SLOW_PATH;

	return verdict == ECHO_SLOW_PATH ? echo_slow_path(ctx) : verdict;
}

#endif
