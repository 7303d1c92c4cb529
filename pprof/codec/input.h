/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a profile from a file, with a one-line message if it is not one. */
#ifndef PPROF_CODEC_INPUT_H
#define PPROF_CODEC_INPUT_H

#include <stddef.h>

struct profile;

/* path "-" is standard input; max_bytes of memory may be taken. On 0 the caller owns *out
 * (profile_free()); otherwise -errno (-EINVAL for what is no profile, -EFBIG beyond max_bytes) and a line
 * without newline in error that names the file and what is wrong with it. */
int input_read(const char *path, size_t max_bytes, struct profile **out, char *error, size_t error_bytes);

#endif
