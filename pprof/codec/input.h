/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a profile from a file, or says in one line why it cannot. */
#ifndef PPROF_CODEC_INPUT_H
#define PPROF_CODEC_INPUT_H

#include <stddef.h>

struct profile;

/* path "-" is standard input; max_bytes limits memory. On 0 the caller owns *out
 * (profile_free()); otherwise -errno (-ENOMSG if it is empty or another kind of file, -EINVAL if it is a
 * damaged profile, -EFBIG beyond max_bytes) and a line without newline in error that names the file and
 * what is wrong with it. */
int input_read(const char *path, size_t max_bytes, struct profile **out, char *error, size_t error_bytes);

#endif
