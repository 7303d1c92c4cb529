/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the bytes of a file, of any writer and possibly hostile, into a struct profile.
 *
 * Takes gzip (any number of members) or plain profile.proto bytes. Accepts what the reference reader of
 * google/pprof accepts: sparse ids, any order of fields, unknown fields, missing mappings, no samples; and
 * refuses what it refuses. Where readers differ, the profile is cleaned: broken UTF-8 is replaced, entries
 * that differ only in their id become one, samples with equal stack and labels are summed.
 *
 * Memory: the uncompressed bytes, and a profile of at most about 17 times their size (worst case: nothing but
 * labels). The caller limits the sum (max_bytes), and decoding ends when the sum exceeds the limit.
 *
 * Time: every reader of a profile goes through a text once for each place that refers to the text. So the
 * lengths of all texts are added up, each length once for each such place. This sum may be four times
 * max_bytes. So the time is linear, here and in all who read the profile.
 */
#ifndef PPROF_CODEC_DECODE_H
#define PPROF_CODEC_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "pprof/codec/decode_error.h"

struct profile;

/* Limit on memory, enough for every real profile seen. Without it a crafted file of 131 KB took 2.2 GB. */
#define DECODE_MAX_BYTES ((size_t)1 << 30)

/* max_bytes limits the memory of the profile and of the decoding. An array that grows may exceed the limit by
 * a half at most. max_bytes also limits the texts, as said above. On DECODE_OK the caller owns *out
 * (profile_free()). */
enum decode_error decode_profile(const void *data, size_t len, size_t max_bytes, struct profile **out);

/* One line for the user, without a full stop: "a sample names a location that does not exist". */
const char *decode_error_string(enum decode_error error);

/* Decodes a file; the path "-" is standard input. On 0 the caller owns *out (profile_free()). Otherwise
 * -errno (-ENOMSG if it is empty or another kind of file, -EINVAL if it is a damaged profile, -EFBIG beyond
 * max_bytes), and `error` has a line that names the file and says what is wrong with it. */
int decode_file(const char *path, size_t max_bytes, struct profile **out, char *error, size_t error_bytes);

#endif
