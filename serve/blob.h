/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that several have in their hands, in both threads: a profile, an answer. They never change. */
#ifndef SERVE_BLOB_H
#define SERVE_BLOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob {
	_Atomic uint32_t holders;
	size_t length;
	uint8_t *bytes;
	bool foreign; /* a profile by a sampler of another user; to be set before others have it */
};

/* Takes over `bytes`, from malloc(3): also in an error. The caller holds it. NULL: no memory. */
struct blob *blob_new(void *bytes, size_t length);
struct blob *blob_copy(const void *bytes, size_t length);

/* Reads all of a descriptor that holds so many bytes, and closes it. NULL: *error is -errno. */
struct blob *blob_read(int fd, uint64_t length, int *error);

struct blob *blob_hold(struct blob *blob); /* NULL is fine, as below */
void blob_drop(struct blob *blob);

#endif
