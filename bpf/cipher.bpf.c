// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether this kernel has the cipher that the mask needs: both programs are loaded, and the first
 * one is run (crates/datapath/src/kernel.rs).
 */
#include "include/cipher.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A cipher, and a block that it encrypts. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cipher);
} cipher_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8[CIPHER_KEY]);
} cipher_block SEC(".maps");

/* The kernel's error if it does not make one. */
SEC("syscall")
int cipher_create(void *ctx)
{
	__u8 key[CIPHER_KEY] = {};
	__u32 zero = 0;

	return cipher_set(&cipher_map, &zero, key);
}

SEC("tc")
int cipher_use(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct cipher *cipher = bpf_map_lookup_elem(&cipher_map, &zero);
	void *block = bpf_map_lookup_elem(&cipher_block, &zero);

	return cipher && block && cipher_encrypt(cipher, block, CIPHER_KEY);
}
