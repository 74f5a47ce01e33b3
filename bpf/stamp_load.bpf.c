// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A load of STAMP test packets, for benchmarks of reflectors.
 *
 * stamp_ask is run by BPF_PROG_TEST_RUN with BPF_F_TEST_XDP_LIVE_FRAMES: a frame comes back here as
 * the reflector left it, so the whole packet is written each time, with the next
 * number. stamp_heard is attached to the same interface and takes the replies out of the traffic.
 */
#include "include/parse.h"
#include "include/checksum.h"

#define LENGTH 86 /* Ethernet, IPv4, UDP and the base packet */
#define NUMBER 42 /* where the packet's number is */
#define CHECK 40  /* where UDP's checksum is */

/* A valid packet with the number zero, filled up with zeros. */
const volatile __u8 stamp_frame[88] = {};
__u32 stamp_next;
__u64 stamp_replies;

SEC("xdp")
int stamp_ask(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const volatile __u64 *from = (const volatile __u64 *)stamp_frame;
	__u32 number = __builtin_bswap32(stamp_next++);
	__u64 sum;
	int at;

	if (data + LENGTH > end)
		return XDP_ABORTED;
#pragma unroll
	for (at = 0; at < LENGTH / 8; at++)
		STORE64(data, at * 8, from[at]);
	STORE32(data, 80, *(const volatile __u32 *)(stamp_frame + 80));
	LOAD16(data, 84) = *(const volatile __u16 *)(stamp_frame + 84);
	STORE32(data, NUMBER, number);
	sum = (__u64)(__u16)~LOAD16(data, CHECK) + number;
	LOAD16(data, CHECK) = (__u16)~csum_fold(sum);
	return XDP_TX;
}

SEC("xdp")
int stamp_heard(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	/* From the port to which the others go, over IPv4 without options. */
	if (data + LENGTH > end || LOAD16(data, 12) != ETHERTYPE_IPV4 ||
	    ((__u8 *)data)[23] != PROTOCOL_UDP ||
	    LOAD16(data, 34) != *(const volatile __u16 *)(stamp_frame + 36))
		return XDP_PASS;
	__sync_fetch_and_add(&stamp_replies, 1);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
