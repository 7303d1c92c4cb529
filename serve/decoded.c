/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/decoded.h"

#include "pprof/codec/decode.h"
#include "pprof/profile/profile.h"

#include <errno.h>

int decoded_make(const struct blob *blob, size_t *left_bytes, struct profile **profile)
{
	size_t bytes;

	switch (decode_profile(blob->bytes, blob->length, *left_bytes, profile)) {
	case DECODE_OK:
		bytes = profile_bytes(*profile);
		*left_bytes -= bytes < *left_bytes ? bytes : *left_bytes;
		return 0;
	case DECODE_NO_MEMORY:
		return -ENOMEM;
	case DECODE_TOO_LARGE:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}
