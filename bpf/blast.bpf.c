// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The in-kernel engine of `nigh blast`.
 *
 * blast_send is run by BPF_PROG_TEST_RUN with BPF_F_TEST_XDP_LIVE_FRAMES (Linux 5.18): the kernel
 * makes a frame, the program makes it an echo request and XDP_TX sends it out of the interface that
 * the context names. The kernel uses a frame again as soon as it was freed, so a frame comes back
 * here in the form that the responder left it in: the whole head is written each time.
 *
 * blast_receive is attached to the same interface. It takes the replies out of the traffic, checks
 * each against what was sent, and counts. Everything else is passed on.
 *
 * blast_transmit counts how many of the frames the driver took: a full ring refuses some.
 *
 * Identifier and sequence of an echo are one 32-bit number here: plan.base plus the frame's index.
 * Behind them is the probe, 16 bytes: magic and nonce (8, in plan.head), then the time of sending.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "abi/blast.h"
#include "include/parse.h"

#define LOAD(type, at) (*(type *)(at))
#define SECOND 1000000000ULL

const volatile struct blast_plan plan;
/* What follows the probe, to compare replies with. */
const volatile __u8 rest[BLAST_REST];
/* The namespace and interface whose transmissions are counted. */
const volatile __u32 watched_namespace;
const volatile __u32 watched_interface;

struct blast_sent sent;
struct blast_transmitted transmitted;
/* For blast_receive: when second 0 began. */
__u64 start;

/* A bit for each index that was received. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* (plan.total + 63) / 64, set before loading */
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

/* For each thread that sends, the index after the highest one received: NextExp of RFC 4737. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BLAST_STREAMS);
	__type(key, __u32);
	__type(value, __u32);
} expected SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct blast_tally);
} tally SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct blast_histogram);
} histogram SEC(".maps");

/* Replies by the second in which their request was sent. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BLAST_SECONDS);
	__type(key, __u32);
	__type(value, __u64);
} by_second SEC(".maps");

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Adds 16-bit words as wider ones: the carries come round in fold(). */
static __always_inline __u64 add64(__u64 sum, __u64 words)
{
	return sum + (words & 0xffffffff) + (words >> 32);
}

SEC("xdp")
int blast_send(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	void *icmp = data + plan.icmp;
	__u64 index = sent.next;
	__be32 number;
	__u64 sum;
	__u32 i;

	if (data + plan.frame_len > end || plan.head_len > BLAST_HEAD)
		return XDP_ABORTED;

#pragma unroll
	for (i = 0; i < BLAST_HEAD; i += 8)
		if (i + 8 <= plan.head_len)
			LOAD(__u64, data + i) = LOAD(const volatile __u64, plan.head + i);
#pragma unroll
	for (i = 0; i < BLAST_HEAD; i += 2)
		if (i + 8 > plan.head_len && i + 2 <= plan.head_len)
			LOAD(__u16, data + i) = LOAD(const volatile __u16, plan.head + i);

	if ((index & plan.stamp_mask) == 0)
		sent.clock = bpf_ktime_get_ns();
	if (sent.clock >= sent.second_end) {
		sent.second = (sent.clock - sent.start) / SECOND;
		sent.second_end = sent.start + (sent.second + 1) * SECOND;
		if (sent.second >= BLAST_SECONDS)
			sent.second = BLAST_SECONDS - 1;
	}
	if (sent.second < BLAST_SECONDS)
		sent.by_second[sent.second]++;

	number = bpf_htonl(plan.base + plan.first + (__u32)index);
	LOAD(__be32, icmp + 4) = number;
	LOAD(__u64, icmp + 16) = sent.clock;
	sum = add64((__u64)plan.request_sum + number, sent.clock);
	LOAD(__u16, icmp + 2) = ~fold(sum);
	sent.next = index + 1;
	return XDP_TX;
}

/* log2 of a value of at least 1. */
static __always_inline __u32 log2(__u64 value)
{
	__u32 bit = 0;

	if (value >> 32) {
		value >>= 32;
		bit += 32;
	}
	if (value >> 16) {
		value >>= 16;
		bit += 16;
	}
	if (value >> 8) {
		value >>= 8;
		bit += 8;
	}
	if (value >> 4) {
		value >>= 4;
		bit += 4;
	}
	if (value >> 2) {
		value >>= 2;
		bit += 2;
	}
	return bit + (value >> 1);
}

static __always_inline void record_rtt(struct blast_tally *counts, __u64 rtt)
{
	struct blast_histogram *buckets;
	__u32 zero = 0, bucket = rtt, bit;

	if (rtt >= 64) {
		bit = log2(rtt);
		bucket = 64 + (bit - 6) * 32 + ((rtt >> (bit - 5)) & 31);
	}
	counts->rtt_sum += rtt;
	if (rtt < counts->rtt_min || counts->rtt_min == 0)
		counts->rtt_min = rtt;
	if (rtt > counts->rtt_max)
		counts->rtt_max = rtt;
	buckets = bpf_map_lookup_elem(&histogram, &zero);
	if (buckets && bucket < BLAST_BUCKETS)
		buckets->bucket[BOUNDED(bucket, BLAST_BUCKETS - 1)]++;
}

/* Whether the addresses, protocol and type are those of an answer to our requests. */
static __always_inline int is_answer(void *data, void *icmp)
{
	void *ip = data + (plan.ipv6 ? plan.icmp - 40 : plan.icmp - 20);
	const volatile __u8 *asked = plan.head + (plan.ipv6 ? plan.icmp - 40 : plan.icmp - 20);

	if (LOAD(__u16, ip - 2) != LOAD(const volatile __u16, asked - 2))
		return 0;
	if (plan.ipv6)
		return LOAD(__u8, ip + 6) == 58 && LOAD(__u8, icmp) == 129 &&
		       LOAD(__u64, ip + 8) == LOAD(const volatile __u64, asked + 24) &&
		       LOAD(__u64, ip + 16) == LOAD(const volatile __u64, asked + 32) &&
		       LOAD(__u64, ip + 24) == LOAD(const volatile __u64, asked + 8) &&
		       LOAD(__u64, ip + 32) == LOAD(const volatile __u64, asked + 16);
	return LOAD(__u8, ip) == 0x45 && LOAD(__u8, ip + 9) == 1 && LOAD(__u8, icmp) == 0 &&
	       (LOAD(__be16, ip + 6) & bpf_htons(0x3fff)) == 0 &&
	       LOAD(__be32, ip + 12) == LOAD(const volatile __be32, asked + 16) &&
	       LOAD(__be32, ip + 16) == LOAD(const volatile __be32, asked + 12);
}

/* Whether a reply is the request with another type: lengths, checksums and every byte of payload.
 */
static __always_inline int is_intact(void *data, void *end, void *icmp, __be32 number, __u64 stamp)
{
	void *ip = data + (plan.ipv6 ? plan.icmp - 40 : plan.icmp - 20);
	const volatile __u8 *asked = plan.head + (plan.ipv6 ? plan.icmp - 40 : plan.icmp - 20);
	__u64 expect = add64((__u64)plan.reply_sum + number, stamp);
	void *payload = data + plan.head_len;
	__u32 length = plan.frame_len - plan.head_len;
	__u64 sum = 0;
	__u32 at;

	if (data + plan.frame_len > end || length > BLAST_REST)
		return 0;
	if (plan.ipv6) {
		if (LOAD(__u16, ip + 4) != LOAD(const volatile __u16, asked + 4))
			return 0;
	} else {
		for (at = 0; at < 20; at += 4)
			sum += LOAD(__u32, ip + at);
		if (LOAD(__u16, ip + 2) != LOAD(const volatile __u16, asked + 2) ||
		    fold(sum) != 0xffff)
			return 0;
	}
	if (LOAD(__u8, icmp + 1) != 0 || LOAD(__u16, icmp + 2) != (__u16)~fold(expect) ||
	    LOAD(__u64, icmp + 8) != LOAD(const volatile __u64, plan.head + plan.icmp + 8))
		return 0;
	for (at = 0; at + 8 <= length; at += 8)
		if (LOAD(__u64, payload + at) != LOAD(const volatile __u64, rest + at))
			return 0;
	for (; at < length; at++)
		if (LOAD(__u8, payload + at) != rest[at])
			return 0;
	return 1;
}

SEC("xdp")
int blast_receive(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	void *icmp = data + plan.icmp;
	struct blast_tally *counts;
	__u64 *count, *word, stamp, bit;
	__u32 *next, index, slot, zero = 0;
	__be32 number;

	if (icmp + 24 > end || !is_answer(data, icmp))
		return XDP_PASS;
	number = LOAD(__be32, icmp + 4);
	index = bpf_ntohl(number) - plan.base;
	if (index >= plan.total)
		return XDP_PASS;
	counts = bpf_map_lookup_elem(&tally, &zero);
	slot = index / 64;
	word = bpf_map_lookup_elem(&seen, &slot);
	if (!counts || !word)
		return XDP_PASS;
	stamp = LOAD(__u64, icmp + 16);
	if (!is_intact(data, end, icmp, number, stamp)) {
		counts->corrupt++;
		return XDP_DROP;
	}

	bit = 1ULL << (index & 63);
	if (__sync_fetch_and_or(word, bit) & bit) {
		counts->duplicated++;
		return XDP_DROP;
	}
	counts->received++;

	/* Divisions are the most expensive instructions here: one is skipped with a single thread,
	 * the other while the second stays the same. */
	slot = plan.per_stream < plan.total ? index / plan.per_stream : 0;
	if (slot >= BLAST_STREAMS)
		slot = BLAST_STREAMS - 1;
	next = bpf_map_lookup_elem(&expected, &slot);
	if (next) {
		if (index < *next)
			counts->reordered++;
		else
			*next = index + 1;
	}

	if (stamp - start - counts->second * SECOND >= SECOND) {
		counts->second = (stamp - start) / SECOND;
		if (counts->second >= BLAST_SECONDS)
			counts->second = BLAST_SECONDS - 1;
	}
	slot = counts->second;
	count = bpf_map_lookup_elem(&by_second, &slot);
	if (count)
		++*count;

	if (((index - plan.first) & plan.stamp_mask) == 0)
		record_rtt(counts, bpf_ktime_get_ns() - stamp);
	return XDP_DROP;
}

/* As much of the kernel's types as blast_transmit needs; the loader finds the offsets. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(blast_transmit, const struct net_device *from, const struct net_device *to, int taken,
	     int refused, int error)
{
	if (to->ifindex != (int)watched_interface || from != to ||
	    to->nd_net.net->ns.inum != watched_namespace)
		return 0;
	__sync_fetch_and_add(&transmitted.taken, taken);
	__sync_fetch_and_add(&transmitted.refused, refused);
	return 0;
}

/* Passes every frame: a veth takes frames from XDP_TX only if its peer has a program. */
SEC("xdp")
int blast_pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
