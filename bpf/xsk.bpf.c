// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hands every frame of an interface to user space: AF_XDP (af_xdp.rst of the kernel's
 * documentation).
 *
 * Each receive queue has a socket in the map; a queue without one leaves its frames to the kernel.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 64); /* receive queues */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} xsk_sockets SEC(".maps");

SEC("xdp")
int xsk_take(struct xdp_md *ctx)
{
	return bpf_redirect_map(&xsk_sockets, ctx->rx_queue_index, XDP_PASS);
}

char _license[] SEC("license") = "Dual BSD/GPL";
