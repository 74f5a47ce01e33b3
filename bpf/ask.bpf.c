// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Asks the oracle from inside the kernel, for benchmarks: crates/datapath/src/ask.rs.
 *
 * ask_send is run by BPF_PROG_TEST_RUN with BPF_F_TEST_XDP_LIVE_FRAMES (Linux 5.18): the kernel
 * makes a frame, the program writes one of many requests over all of it, as frames come back here
 * in the form that they ended in, and XDP_TX sends it out of the interface that the context names.
 * ask_count is attached to the same interface; it counts replies and drops them. In its place
 * ask_again makes the next request of each, so that a few frames circle. They do not inspect the
 * content of replies: that is tested elsewhere.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "include/parse.h"

#define ASK_REQUESTS 1024
#define ASK_FRAME 1536

struct ask_request {
	__u8 frame[ASK_FRAME];
};

struct ask_request ask_requests[ASK_REQUESTS] SEC(".bss.requests");

const volatile __u32 ask_length = ASK_FRAME; /* of each of them */
const volatile __u32 ask_from = 0;	     /* the service's address and port, as on the wire */
const volatile __u16 ask_port = 0;
const volatile __u16 ask_flags = 0; /* the second half of a reply's first word, as on the wire */

__u64 ask_sent, ask_answered;

/* Writes the next request over a frame. */
static __always_inline int ask_next(struct xdp_md *ctx)
{
	__u32 length = ask_length;
	struct ask_request *request = &ask_requests[ask_sent & (ASK_REQUESTS - 1)];

	if (length < ETHERNET_HEADER || length > ASK_FRAME ||
	    bpf_xdp_store_bytes(ctx, 0, request->frame, length))
		return XDP_ABORTED;
	ask_sent++;
	return XDP_TX;
}

/* A reply of the whole length, over IPv4 without tags and options: counted. */
static __always_inline int ask_reply(struct xdp_md *ctx, int then)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	void *udp = data + ETHERNET_HEADER + IPV4_HEADER, *message = udp + UDP_HEADER;

	if (message + 4 > end || LOAD16(data, 12) != ETHERTYPE_IPV4 ||
	    LOAD32(data, ETHERNET_HEADER + 12) != ask_from || LOAD16(udp, 0) != ask_port)
		return XDP_PASS;
	if (end - data != ask_length || LOAD16(message, 2) != ask_flags)
		return XDP_DROP;
	__sync_fetch_and_add(&ask_answered, 1);
	return then;
}

SEC("xdp")
int ask_send(struct xdp_md *ctx)
{
	return ask_next(ctx);
}

SEC("xdp")
int ask_count(struct xdp_md *ctx)
{
	return ask_reply(ctx, XDP_DROP);
}

SEC("xdp")
int ask_again(struct xdp_md *ctx)
{
	int verdict = ask_reply(ctx, XDP_TX);

	return verdict == XDP_TX ? ask_next(ctx) : verdict;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
