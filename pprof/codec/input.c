/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/codec/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/codec/decode.h"
#include "pprof/codec/file.h"

int input_read(const char *path, size_t max_bytes, struct profile **out, char *error, size_t error_bytes)
{
	uint8_t *data;
	size_t len;
	enum decode_error decoded;
	int err = file_read(strcmp(path, "-") ? path : "/dev/stdin", max_bytes, &data, &len);

	if (err) {
		snprintf(error, error_bytes, "cannot read %s: %s", path, file_read_error(err));
		return err;
	}
	decoded = decode_profile(data, len, max_bytes, out);
	free(data);
	if (decoded == DECODE_OK)
		return 0;
	if (decoded == DECODE_TOO_LARGE || decoded == DECODE_NO_MEMORY) {
		snprintf(error, error_bytes, "cannot read %s: %s", path, decode_error_string(decoded));
		return decoded == DECODE_NO_MEMORY ? -ENOMEM : -EFBIG;
	}
	snprintf(error, error_bytes,
	    "cannot read %s: %s; a heap profile is a profile.proto file, gzipped or not", path,
	    decode_error_string(decoded));
	return decoded == DECODE_NOT_A_PROFILE || decoded == DECODE_EMPTY ? -ENOMSG : -EINVAL;
}
