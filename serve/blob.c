/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/blob.h"

#include "pprof/codec/decode.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/profile.h"
#include "sampler/core/control_client.h"

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

/* ---- decoded */

static void spend(size_t *left_bytes, size_t bytes)
{
	*left_bytes -= bytes < *left_bytes ? bytes : *left_bytes;
}

static int decode(const void *bytes, size_t length, size_t most_bytes, struct profile **profile)
{
	switch (decode_profile(bytes, length, most_bytes, profile)) {
	case DECODE_OK:
		return 0;
	case DECODE_NO_MEMORY:
		return -ENOMEM;
	case DECODE_TOO_LARGE:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}

/* Samplers send gzip. Bytes that need no memory in the end may need as much time, so they count too. */
static int decode_foreign(
    const struct blob *blob, size_t most_bytes, size_t *left_bytes, struct profile **profile)
{
	struct gzip_info info;
	uint8_t *plain;
	size_t length;
	int err = gzip_decode(blob->bytes, blob->length, most_bytes, &plain, &length, &info);

	if (err)
		return err == -EFBIG || err == -ENOMEM ? err : -EBADMSG;
	if (info.trailing_bytes || gzip_detect(plain, length))
		err = -EBADMSG;
	else
		err = decode(plain, length, most_bytes, profile);
	free(plain);
	if (!err)
		spend(left_bytes, length + profile_bytes(*profile));
	return err;
}

int blob_decode(const struct blob *blob, struct blob_budget *budget, struct profile **profile)
{
	size_t *foreign = &budget->foreign_left_bytes;
	int err = blob->foreign
	    ? decode_foreign(
	          blob, *foreign < budget->left_bytes ? *foreign : budget->left_bytes, foreign, profile)
	    : decode(blob->bytes, blob->length, budget->left_bytes, profile);

	if (!err)
		spend(&budget->left_bytes, profile_bytes(*profile));
	return err;
}
