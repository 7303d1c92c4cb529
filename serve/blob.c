/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/blob.h"

#include "sampler/control/control_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct blob *blob_new(void *bytes, size_t length)
{
	struct blob *blob = malloc(sizeof(*blob));

	if (!blob) {
		free(bytes);
		return NULL;
	}
	atomic_init(&blob->holders, 1);
	blob->length = length;
	blob->bytes = bytes;
	blob->foreign = false;
	return blob;
}

struct blob *blob_copy(const void *bytes, size_t length)
{
	void *copy = malloc(length + 1);

	if (!copy)
		return NULL;
	memcpy(copy, bytes, length);
	return blob_new(copy, length);
}

struct blob *blob_read(int fd, uint64_t length, int *error)
{
	struct blob *blob;
	void *bytes;

	*error = control_client_read(fd, length, &bytes);
	if (*error)
		return NULL;
	blob = blob_new(bytes, (size_t)length);
	if (!blob)
		*error = -ENOMEM;
	return blob;
}

struct blob *blob_hold(struct blob *blob)
{
	if (blob)
		atomic_fetch_add_explicit(&blob->holders, 1, memory_order_relaxed);
	return blob;
}

void blob_drop(struct blob *blob)
{
	if (!blob || atomic_fetch_sub_explicit(&blob->holders, 1, memory_order_acq_rel) != 1)
		return;
	free(blob->bytes);
	free(blob);
}
