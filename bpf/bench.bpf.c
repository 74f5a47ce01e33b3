// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The cost of the responder, for BPF_PROG_TEST_RUN with many repetitions.
 *
 * A repetition gets the frame as the one before left it, so each program first writes the headers
 * of the request again, all of them and with the same code; what the programs do after that is
 * compared. The words are those in which headers are read: a processor hands a value that was just
 * written to a load of it only if one store wrote all of it, else it waits for the cache, and a
 * frame that comes from a driver was not just written.
 */
#include "include/echo.h"

/* The request's first 42 bytes, in the words below. */
struct bench_head {
	__u64 macs;
	__u32 macs_end;
	__u32 type;
	__u64 ip0, ip8;
	__u32 ip16;
	__u32 unused;
	__u64 icmp;
} bench_head;

static __always_inline int bench_request(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + 42 > end)
		return 0;
	STORE64(data, 0, bench_head.macs);
	STORE32(data, 8, bench_head.macs_end);
	LOAD16(data, 12) = bench_head.type;
	STORE64(data, 14, bench_head.ip0);
	STORE64(data, 22, bench_head.ip8);
	STORE32(data, 30, bench_head.ip16);
	STORE64(data, 34, bench_head.icmp);
	return 1;
}

/* Nothing. */
SEC("xdp")
int bench_empty(struct xdp_md *ctx)
{
	return XDP_TX;
}

/* Only the request made again. */
SEC("xdp")
int bench_remake(struct xdp_md *ctx)
{
	return bench_request(ctx) ? XDP_TX : XDP_DROP;
}

/* The minimum that returns a frame: its MAC addresses swapped. */
SEC("xdp")
int bench_bare(struct xdp_md *ctx)
{
	if (!bench_request(ctx))
		return XDP_DROP;

	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + ETHERNET_HEADER > end)
		return XDP_DROP;
	swap_macs(data);
	return XDP_TX;
}

/* The responder. */
SEC("xdp")
int bench_echo(struct xdp_md *ctx)
{
	if (!bench_request(ctx))
		return XDP_DROP;
	return echo_responder(ctx);
}

/* The minimum that answers an IPv4 echo request, without any check. */
SEC("xdp")
int bench_turn(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 source;

	if (data + 42 > end || LOAD16(data, 12) != ETHERTYPE_IPV4 || LOAD16(data, 34) != 8)
		return XDP_PASS;
	swap_macs(data);
	source = LOAD32(data, 26);
	STORE32(data, 26, LOAD32(data, 30));
	STORE32(data, 30, source);
	LOAD16(data, 34) = 0;
	LOAD16(data, 36) = csum_change(LOAD16(data, 36), 8, 0);
	return XDP_TX;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
