// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reflects unauthenticated STAMP test packets (RFC 8762, section 4.3.1) where the driver hands the
 * frame over, so that both of the reflector's timestamps are taken there.
 *
 *   frame -> our address and port? -> of a known session? -> right? -> its rate? -> reflected
 *            no: to the kernel        no: to the sockets     no: dropped, by reason
 *
 * A session is a source address and an SSID (RFC 8972, section 3); each counts what is reflected in
 * it. The packet is turned into its reply in place and keeps its length. What follows the base
 * packet is copied, as by a reflector without extensions: their U flags stay set. Sessions that
 * need extensions or authentication are not handled here but at the sockets, see
 * docs/decisions/152.
 *
 * Both timestamps are one reading of the clock: between them there would be less than what one
 * reading takes. The clock is TAI's, which the kernel keeps beside the system's; user space sets
 * its offset, and the clock's error and for how long that holds. After that, and when somebody has
 * stepped the clock since, replies mark the error as unknown.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi/stamp.h"
#include "include/checksum.h"
#include "include/limit.h"
#include "include/parse.h"

/* Addresses and ports of the reflector; the value is not used. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STAMP_SERVICES);
	__type(key, struct stamp_service);
	__type(value, __u32);
} stamp_services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STAMP_SESSIONS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct stamp_sender);
	__type(value, struct stamp_session);
} stamp_sessions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stamp_counts);
} stamp_ledger SEC(".maps");

struct stamp_clock stamp_clocks[2];
__u32 stamp_active; /* which of them is in force */

const volatile __u64 stamp_tick = 4000000 * 64; /* one jiffy in units of the limiter */

/* So that these are in the BTF. */
const volatile enum stamp_count stamp_btf_count = 0;
const volatile enum stamp_limits stamp_btf_limits = STAMP_SERVICES;

#define BASE 44 /* bytes of a base packet */
/* From 1900-01-01, where NTP's era begins, to 1970-01-01, in seconds (RFC 5905, section 6). */
#define NTP_ZERO 2208988800ULL
#define SECOND 1000000000ULL
#define TTL 255
#define UNKNOWN 0xff3f /* Error Estimate of an unknown clock, in network byte order */

/* Bits of the first eight bytes of an IPv4 header as a little-endian word. */
#define IPV4_PLAIN_MASK 0xff3f0000000000ffULL /* version, header length; more fragments, offset */
#define IPV4_PLAIN_BITS 0x0000000000000045ULL

static __always_inline int stamp_done(__u32 what, int verdict)
{
	__u32 zero = 0;
	struct stamp_counts *counts = bpf_map_lookup_elem(&stamp_ledger, &zero);

	if (counts && what < STAMP_COUNTS)
		counts->count[what]++;
	return verdict;
}

/* The system's time in NTP's format, in network byte order, of a reading of TAI's clock. */
static __always_inline __u64 stamp_time(const struct stamp_clock *clock, __u64 tai)
{
	__u64 ns = tai - clock->tai_ahead_ns;
	__u64 seconds = ns / SECOND + NTP_ZERO;
	__u64 fraction = (((ns % SECOND) << 32) + SECOND / 2) / SECOND;

	return __builtin_bswap64(seconds << 32 | fraction);
}

/* How far a reading of TAI's clock that was just taken may be off. */
static __always_inline __be16 stamp_error(const struct stamp_clock *clock, __u64 tai)
{
	__u64 boot = bpf_ktime_get_boot_ns();
	__u64 moved = tai - boot - clock->boot_behind_ns + STAMP_SLACK;

	return boot > clock->until_ns || moved > 2 * STAMP_SLACK ? UNKNOWN : clock->error;
}

/*
 * Counts a packet in its session: its number there, or -1 if it is over the rate. A number that was
 * seen before, in a packet that was sent later than all others, shows that the sender has
 * restarted.
 */
static __always_inline __s64 stamp_take(struct stamp_session *session, __u32 sequence, __u64 sent)
{
	__u64 now = bpf_jiffies64() * stamp_tick, next;
	__s64 number = -1;
	int later;

	bpf_spin_lock(&session->lock);
	later = (__s64)(sent - session->newest) > 0;
	if (!session->begun || (later && (__s32)(sequence - session->highest) <= 0)) {
		session->begun = 1;
		session->reflected = 0;
		session->highest = sequence;
		session->newest = sent;
	} else if ((__s32)(sequence - session->highest) > 0) {
		session->highest = sequence;
		if (later)
			session->newest = sent;
	}
	next = (session->bucket > now ? session->bucket : now) + session->rate.interval;
	if (next - now <= session->rate.tolerance) {
		session->bucket = next;
		number = session->reflected++;
	}
	bpf_spin_unlock(&session->lock);
	return number;
}

/* The sum of what is behind the base packet, whose end is `from`; whole words of 8, then the rest.
 */
static __always_inline __u64 stamp_rest(struct xdp_md *ctx, void *from, void *end, __u32 offset,
					__u32 length)
{
	__u64 sum = 0;
	__u32 blocks = length >> 6, i;

	if (blocks) {
		sum = csum_blocks(ctx, offset, blocks);
		from += (blocks & 0xff) << 6;
	}
	for (i = 0; i < 15; i++) {
		if (i >= (length & 63) >> 2 || from + 4 > end)
			break;
		sum += LOAD32(from, 0);
		from += 4;
	}
	if (length & 2 && from + 2 <= end) {
		sum += LOAD16(from, 0);
		from += 2;
	}
	if (length & 1 && from + 1 <= end)
		sum += *(__u8 *)from;
	return sum;
}

/* The sum of a base packet and its UDP header, without the checksum. */
static __always_inline __u64 stamp_base(void *udp)
{
	__u64 sum = (__u64)LOAD32(udp, 0) + LOAD16(udp, 4);
	int at;

#pragma unroll
	for (at = UDP_HEADER; at < UDP_HEADER + BASE; at += 4)
		sum += LOAD32(udp, at);
	return sum;
}

SEC("xdp")
int stamp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *l3, *udp;
	const struct stamp_clock *clock = &stamp_clocks[*(volatile __u32 *)&stamp_active & 1];
	struct stamp_service service = {};
	struct stamp_sender sender = {};
	struct stamp_session *session;
	__u32 offset, length, check, ports, ttl, header;
	__u64 head = 0, next = 0, pseudo, sum, rest, now, sent, tai;
	__be16 type;
	__s64 number;

	type = parse_link(data, end, &offset);
	l3 = data + offset;
	if (type == ETHERTYPE_IPV4) {
		if (l3 + IPV4_HEADER + UDP_HEADER > end)
			return stamp_done(STAMP_OTHER, XDP_PASS);
		head = LOAD64(l3, 0);
		next = LOAD64(l3, 8);
		if ((__u8)(next >> 8) != PROTOCOL_UDP)
			return stamp_done(STAMP_OTHER, XDP_PASS);
		LOAD16(service.address, 10) = 0xffff;
		LOAD16(sender.address, 10) = 0xffff;
		LOAD32(service.address, 12) = LOAD32(l3, 16);
		LOAD32(sender.address, 12) = LOAD32(l3, 12);
		ttl = (__u8)next;
		length = __builtin_bswap16((__u16)(head >> 16)) - IPV4_HEADER;
		header = IPV4_HEADER;
	} else if (type == ETHERTYPE_IPV6) {
		if (l3 + IPV6_HEADER + UDP_HEADER > end || ((__u8 *)l3)[6] != PROTOCOL_UDP)
			return stamp_done(STAMP_OTHER, XDP_PASS);
		__builtin_memcpy(sender.address, l3 + 8, 16);
		__builtin_memcpy(service.address, l3 + 24, 16);
		ttl = ((__u8 *)l3)[7];
		length = __builtin_bswap16(LOAD16(l3, 4));
		header = IPV6_HEADER;
	} else {
		return stamp_done(STAMP_OTHER, XDP_PASS);
	}
	/* Behind options the ports are others; then the packet is the kernel's as it should be. */
	udp = l3 + header;
	if (udp + UDP_HEADER > end)
		return stamp_done(STAMP_OTHER, XDP_PASS);
	ports = LOAD32(udp, 0);
	service.port = ports >> 16;
	if (!bpf_map_lookup_elem(&stamp_services, &service))
		return stamp_done(STAMP_OTHER, XDP_PASS);

	if (type == ETHERTYPE_IPV4 && (head & IPV4_PLAIN_MASK) != IPV4_PLAIN_BITS)
		return stamp_done(STAMP_PASS_FORM, XDP_PASS);
	/* A multicast MAC address is no single station's (RFC 1122, section 3.3.6). */
	if (LOAD64(data, 0) & 0x0001000000000001ULL || !(__u16)ports)
		return stamp_done(STAMP_PASS_FORM, XDP_PASS);
	if (__builtin_bswap16(LOAD16(udp, 4)) != length || length > CSUM_LONGEST ||
	    offset + header + length > (__u32)(end - data))
		return stamp_done(STAMP_PASS_FORM, XDP_PASS);
	if (udp + UDP_HEADER + 16 <= end && length >= UDP_HEADER + 16)
		sender.ssid = LOAD16(udp, UDP_HEADER + 14);
	session = bpf_map_lookup_elem(&stamp_sessions, &sender);
	if (!session)
		return stamp_done(STAMP_PASS_SENDER, XDP_PASS);
	if (length < UDP_HEADER + BASE || udp + UDP_HEADER + BASE > end)
		return stamp_done(STAMP_TOO_SHORT, XDP_DROP);

	/*
	 * The pseudo header's sum stays as it is when the addresses are swapped. A checksum that
	 * is this sum only is one that a host on this machine left to a network card, but
	 * there is none.
	 */
	if (type == ETHERTYPE_IPV4)
		pseudo = (__u64)LOAD32(l3, 12) + LOAD32(l3, 16);
	else
		pseudo = (__u64)LOAD32(l3, 8) + LOAD32(l3, 12) + LOAD32(l3, 16) + LOAD32(l3, 20) +
			 LOAD32(l3, 24) + LOAD32(l3, 28) + LOAD32(l3, 32) + LOAD32(l3, 36);
	pseudo += __builtin_bswap16(PROTOCOL_UDP) + LOAD16(udp, 4);
	check = LOAD16(udp, 6);
	rest = stamp_rest(ctx, udp + UDP_HEADER + BASE, end, offset + header + UDP_HEADER + BASE,
			  length - UDP_HEADER - BASE);
	if (check != csum_fold(pseudo)) {
		if (!check && type == ETHERTYPE_IPV6)
			return stamp_done(STAMP_BAD_CHECKSUM, XDP_DROP);
		if (check && !csum_valid(pseudo + stamp_base(udp) + check + rest))
			return stamp_done(STAMP_BAD_CHECKSUM, XDP_DROP);
	}
	if (type == ETHERTYPE_IPV4 &&
	    !csum_valid(csum_halves(head) + csum_halves(next) + LOAD32(l3, 16)))
		return stamp_done(STAMP_BAD_CHECKSUM, XDP_DROP);
	if (!((__u8 *)udp)[UDP_HEADER + 13])
		return stamp_done(STAMP_CORRUPT, XDP_DROP);
	sent = LOAD64(udp, UDP_HEADER + 4);
	number = stamp_take(session, __builtin_bswap32(LOAD32(udp, UDP_HEADER)),
			    __builtin_bswap64(sent));
	if (number < 0)
		return stamp_done(STAMP_OVER_RATE, XDP_DROP);

	/* RFC 8972, figure 2, from the copies of the sender's fields to its own. */
	tai = bpf_ktime_get_tai_ns();
	now = stamp_time(clock, tai);
	STORE32(udp, UDP_HEADER + 24, LOAD32(udp, UDP_HEADER));
	STORE64(udp, UDP_HEADER + 28, sent);
	STORE32(udp, UDP_HEADER + 36, (__u32)LOAD16(udp, UDP_HEADER + 12));
	STORE32(udp, UDP_HEADER + 40, ttl);
	STORE32(udp, UDP_HEADER, __builtin_bswap32((__u32)number));
	STORE64(udp, UDP_HEADER + 4, now);
	LOAD16(udp, UDP_HEADER + 12) = stamp_error(clock, tai);
	STORE64(udp, UDP_HEADER + 16, now);
	STORE32(udp, 0, ports >> 16 | ports << 16);
	/* A checksum is never sent as zero, which would say that there is none (RFC 768). */
	sum = pseudo + stamp_base(udp) + rest;
	check = (__u16)~csum_fold(sum);
	LOAD16(udp, 6) = check ? check : 0xffff;

	/* DSCP stays, as TWAMP has it (RFC 5357, section 4.2.1); ECN is of this direction only. */
	if (type == ETHERTYPE_IPV4) {
		__u32 word = (__u32)(head & 0xffff), plain = word & 0xfcff;

		check = csum_change((__u16)(next >> 16), (__u8)next, TTL);
		check = csum_change(check, word, plain);
		LOAD16(l3, 0) = plain;
		STORE32(l3, 8, check << 16 | PROTOCOL_UDP << 8 | TTL);
		sum = LOAD32(l3, 12);
		STORE64(l3, 12, sum << 32 | LOAD32(l3, 16));
	} else {
		((__u8 *)l3)[1] &= 0xcf;
		((__u8 *)l3)[7] = TTL;
		__builtin_memcpy(l3 + 8, service.address, 16);
		__builtin_memcpy(l3 + 24, sender.address, 16);
	}
	swap_macs(data);
	return stamp_done(STAMP_REFLECTED, XDP_TX);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
