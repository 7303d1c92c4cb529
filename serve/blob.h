/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that several holders share, in both threads: a profile, or an answer. The bytes never change.
 *
 * A profile may be hostile, so it is decoded within a budget of memory. The profiles of one answer share a
 * budget, however many there are.
 */
#ifndef SERVE_BLOB_H
#define SERVE_BLOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

struct blob {
	_Atomic uint32_t holders;
	size_t length;
	uint8_t *bytes;
	bool foreign; /* a profile by another user's sampler; to be set before others hold the blob */
};

/* The caller holds the new blob. blob_new() takes over `bytes`, from malloc(3), and frees them if it fails.
 * NULL: no memory. */
struct blob *blob_new(void *bytes, size_t length);
struct blob *blob_copy(const void *bytes, size_t length);

/* Reads all of a descriptor that holds so many bytes, and closes it. NULL: *error is -errno. */
struct blob *blob_read(int fd, uint64_t length, int *error);

/* NULL is fine. */
struct blob *blob_hold(struct blob *blob);
void blob_drop(struct blob *blob);

/* For all foreign profiles of one answer: their uncompressed bytes, and the memory that they take when
 * decoded. Other answers wait while one is made, and 400 MB of profile may be sent as 400 KB. */
#define BLOB_FOREIGN_BYTES ((size_t)128 << 20)

/* What the profiles of an answer may still take. Each decoded profile makes it less. */
struct blob_budget {
	size_t left_bytes;
	size_t foreign_left_bytes; /* at first BLOB_FOREIGN_BYTES */
};

/* On 0 the caller owns *profile (profile_free()). -ENOMEM; -EFBIG: the budget is too small; -EBADMSG: the
 * bytes are no profile. */
int blob_decode(const struct blob *blob, struct blob_budget *budget, struct profile **profile);

#endif
