/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/profile_output.h"

#include "pprof/codec/encode.h"
#include "pprof/codec/file.h"
#include "pprof/codec/gzip.h"
#include "pprof/text/log_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int profile_output_write(const struct profile *profile, const char *path, unsigned int flags)
{
	uint8_t *raw = NULL, *packed = NULL;
	size_t raw_bytes = 0, packed_bytes = 0;
	int err = encode_profile(profile, &raw, &raw_bytes);

	if (!err)
		err = gzip_encode(raw, raw_bytes, GZIP_LEVEL_SMALL, &packed, &packed_bytes);
	if (!err && path)
		err = file_publish(path, packed, packed_bytes, 0666, flags);
	else if (!err && (fwrite(packed, 1, packed_bytes, stdout) != packed_bytes || fflush(stdout)))
		err = -errno;
	free(raw);
	free(packed);
	if (err)
		log_line("cannot write %s: %s", path ? path : "standard output", strerror(-err));
	return err;
}
