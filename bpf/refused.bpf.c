// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs that no kernel takes, each for another reason, to test what errors say of it:
 * crates/datapath/src/load/tests.rs. One of them is loaded at a time.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8[4096]);
} refused_map SEC(".maps");

extern int nigh_no_such_function(void) __ksym __weak;
static long (*refused_no_such_helper)(void) = (void *)100000;

const volatile __u32 refused_rounds = 0;

/* Reads a packet without looking at its length, after rounds that the verifier goes through one by
 * one. */
SEC("xdp")
int refused_packet(struct xdp_md *ctx)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < refused_rounds; i++) {
		sum += i;
		asm volatile("" : "+r"(sum));
	}
	return sum + *(volatile __u8 *)(long)ctx->data;
}

SEC("xdp")
int refused_function(struct xdp_md *ctx)
{
	return nigh_no_such_function();
}

SEC("xdp")
int refused_helper(struct xdp_md *ctx)
{
	return refused_no_such_helper();
}

/* Nothing is wrong with this one but what the test does to its map. */
SEC("xdp")
int refused_lookup(struct xdp_md *ctx)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&refused_map, &key) ? XDP_PASS : XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
