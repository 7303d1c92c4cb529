/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a file, from any writer and possibly hostile -> struct profile.
 *
 * Takes gzip (any number of members) or plain profile.proto bytes. Accepts what the reference reader of
 * google/pprof accepts: sparse ids, any order of fields, unknown fields, missing mappings, no samples; and
 * refuses what it refuses. Where readers differ, the profile returned is the clean one: broken UTF-8 is
 * replaced, entries that are equal but for their id become one, samples with equal stack and labels are
 * summed.
 *
 * Memory: the uncompressed bytes, and a model of at most some 17 times their size (worst case: nothing but
 * labels); the caller bounds the sum, which is counted as it grows. Time is linear.
 */
#ifndef PPROF_CODEC_DECODE_H
#define PPROF_CODEC_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "pprof/codec/decode_error.h"

struct profile;

/* Of memory: enough for any profile met. A file of 131 KB has been made that takes 2.2 GB without it. */
#define DECODE_MAX_BYTES ((size_t)1 << 30)

/* max_bytes: of memory, what is in the profile and what is needed meanwhile (exceeded by a half at most,
 * when an array grows). On DECODE_OK the caller owns *out (profile_free()). */
enum decode_error decode_profile(const void *data, size_t len, size_t max_bytes, struct profile **out);

#endif
