/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * AES of the kernel for programs: ecb(aes), from Linux 6.10 on, and without a vector from 6.12 on.
 * Programs that do not use it can be loaded where it is missing, so its functions are weak.
 */
#ifndef NIGH_CIPHER_H
#define NIGH_CIPHER_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define CIPHER_KEY 16 /* bytes of a key, and of a block */

/* The kernel's; only its name is inspected. Clang 14 tags a pointer to another name of a struct
 * only. */
struct bpf_crypto_ctx {
	void *type;
};
typedef struct bpf_crypto_ctx cipher_ctx;
const volatile struct bpf_crypto_ctx cipher_btf_ctx = {};

/* The kernel's, as its header crypto.h has it. */
struct bpf_crypto_params {
	char type[14];
	__u8 reserved[2];
	char algo[128];
	__u8 key[256];
	__u32 key_len;
	__u32 authsize;
};

extern struct bpf_crypto_ctx *bpf_crypto_ctx_create(const struct bpf_crypto_params *params,
						    __u32 params__sz, int *error) __ksym __weak;
extern void bpf_crypto_ctx_release(struct bpf_crypto_ctx *ctx) __ksym __weak;
extern int bpf_crypto_encrypt(struct bpf_crypto_ctx *ctx, const struct bpf_dynptr *from,
			      const struct bpf_dynptr *to,
			      const struct bpf_dynptr *siv) __ksym __weak;

/* An element of a map. */
struct cipher {
	cipher_ctx __kptr *ctx;
};

/* Encrypts blocks of map memory in place, each by itself; whether it did. */
static __always_inline int cipher_encrypt(struct cipher *cipher, void *blocks, __u32 bytes)
{
	struct bpf_crypto_ctx *ctx = cipher->ctx;
	struct bpf_dynptr there;

	return ctx && !bpf_dynptr_from_mem(blocks, bytes, 0, &there) &&
	       !bpf_crypto_encrypt(ctx, &there, &there, NULL);
}

/* Makes the cipher of a key, which is wiped, in the element of a map; the kernel's error if it has
 * none. */
static __always_inline int cipher_set(void *map, const __u32 *index, __u8 *key)
{
	struct bpf_crypto_params params = {
	    .type = "skcipher",
	    .algo = "ecb(aes)",
	    .key_len = CIPHER_KEY,
	};
	struct bpf_crypto_ctx *ctx, *before;
	struct cipher *cipher;
	int error = 0;

	__builtin_memcpy(params.key, key, CIPHER_KEY);
	ctx = bpf_crypto_ctx_create(&params, sizeof(params), &error);
	__builtin_memset(params.key, 0, CIPHER_KEY);
	__builtin_memset(key, 0, CIPHER_KEY);
	asm volatile("" ::"r"(&params) : "memory"); /* so that it is done */
	if (!ctx)
		return error;
	cipher = bpf_map_lookup_elem(map, index);
	if (!cipher) {
		bpf_crypto_ctx_release(ctx);
		return -1;
	}
	before = bpf_kptr_xchg(&cipher->ctx, ctx);
	if (before)
		bpf_crypto_ctx_release(before);
	return 0;
}

#endif
