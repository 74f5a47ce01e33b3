/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state and settings of the echo responder: the ledger, samples, lists, buckets, and the pair
 * of configurations with the lookup of an address in them. The rules that use it are in echo.h.
 *
 * User space writes the idle configuration and then makes it active. The addresses
 * are in a hash table without collisions, for which user space has searched the multiplier.
 */
#ifndef NIGH_ECHO_STATE_H
#define NIGH_ECHO_STATE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../abi/echo.h"
#include "limit.h"
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct echo_rows_of_cpu);
} echo_ledger SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct echo_latency);
} echo_latency SEC(".maps");

/* Packets by source prefix: estimates from the samples. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct echo_source);
	__type(value, __u64);
} echo_top SEC(".maps");

/* Value 1: sources whose longest match this is are refused. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 131072);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct echo_list_key);
	__type(value, __u32);
} echo_lists SEC(".maps");

struct echo_config echo_configs[2];
__u32 echo_active; /* 0 or ECHO_CONFIG_SIZE: where the configuration in force begins */

__u64 echo_buckets[2][LIMIT_CELLS] SEC(".bss.buckets");
__u64 echo_node_bucket SEC(".bss.buckets");

const volatile struct limit_secret echo_secret = {};
const volatile __u64 echo_tick = 4000000 * 64; /* one jiffy in units of the limiter */

/* So that these are in the BTF. */
const volatile enum echo_drop echo_btf_drop = 0;
const volatile enum echo_rows echo_btf_rows = 0;
const volatile enum echo_flag echo_btf_flag = ECHO_VERIFY;
const volatile enum echo_at echo_btf_at = ECHO_NOT_OURS;

static __always_inline const struct echo_config *echo_config(void)
{
	__u32 at = *(volatile __u32 *)&echo_active & ECHO_CONFIG_SIZE;

	return (const struct echo_config *)((__u8 *)echo_configs + at);
}

static __always_inline struct echo_rows_of_cpu *echo_rows_of_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&echo_ledger, &zero);
}

#define ECHO_AT_LAST ((ECHO_ROWS - ECHO_ROW_FIRST - 1) * ECHO_ROW_SIZE)

/* The row at an offset of at most ECHO_AT_LAST. */
static __always_inline struct echo_row *echo_row(struct echo_rows_of_cpu *rows, __u32 at)
{
	return (struct echo_row *)((__u8 *)&rows->row[ECHO_ROW_FIRST] + BOUNDED(at, ECHO_AT_MASK));
}

/* The offset of a service address's row, from the first of them on; else one of enum echo_at. */
static __always_inline __u32 echo_find4(const struct echo_config *config, __be32 address)
{
	const struct echo_slot4 *slot = &config->slot4[(__u8)((address * config->hash4) >> 56)];

	return slot->address == address ? slot->at : ECHO_NOT_OURS;
}

/* Is this one of our addresses? (Or zero, which an empty slot has too.) */
static __always_inline int echo_has4(const struct echo_config *config, __be32 address)
{
	return config->slot4[(__u8)((address * config->hash4) >> 56)].address == address;
}

static __always_inline __u32 echo_find6(const struct echo_config *config, __u64 high, __u64 low)
{
	__u64 hash = (high ^ config->hash6[0]) * config->hash6[1];
	const struct echo_slot6 *slot;

	hash = (hash ^ (hash >> 32) ^ low) * config->hash6[1];
	slot = &config->slot6[(__u8)(hash >> 56)];
	return slot->address[0] == high && slot->address[1] == low ? slot->at : ECHO_NOT_OURS;
}

/* The bucket of a latency: as it is up to 8 ns, then four to each power of two. */
static __always_inline __u32 latency_bucket(__u64 ns)
{
	__u32 log = 0, value = ns > 0x7fffffff ? 0x7fffffff : ns;

	if (value < 8)
		return value;
	if (value >> 16)
		log += 16;
	if (value >> (log + 8))
		log += 8;
	if (value >> (log + 4))
		log += 4;
	if (value >> (log + 2))
		log += 2;
	if (value >> (log + 1))
		log += 1;
	return 4 * (log - 1) + ((value >> (log - 2)) & 3);
}

/*
 * At most once a jiffy, address and CPU: how long the program took, and the source of the packet.
 * The source stands for all packets to this address since the sample before.
 */
static __always_inline void echo_sample(struct echo_row *row, struct echo_source *source, __u64 ns)
{
	__u32 zero = 0, bucket = latency_bucket(ns);
	struct echo_latency *latency = bpf_map_lookup_elem(&echo_latency, &zero);
	__u64 weight = row->received - row->sampled_received, *packets;

	row->sampled_received = row->received;
	if (latency && bucket < ECHO_BUCKETS)
		latency->bucket[bucket]++;
	packets = bpf_map_lookup_elem(&echo_top, source);
	if (packets)
		__sync_fetch_and_add(packets, weight);
	else
		bpf_map_update_elem(&echo_top, source, &weight, BPF_ANY);
}

#endif
