/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/decoded.h"

#include "pprof/codec/decode.h"
#include "pprof/codec/gzip.h"
#include "pprof/profile/profile.h"

#include <errno.h>
#include <stdlib.h>

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

/* Samplers send gzip. What takes no memory in the end may take as long: so its size counts, too. */
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

int decoded_make(const struct blob *blob, struct decoded_budget *budget, struct profile **profile)
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
