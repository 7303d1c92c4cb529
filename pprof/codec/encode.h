/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct profile -> profile.proto bytes (not compressed; see gzip.h).
 *
 * Fields are written in the order of their numbers. Samples whose values are all zero are left out, and so is
 * every location, function, mapping (but the first) and string that nothing written refers to; what is left
 * gets ids 1..N in file order, as Parca demands. Equal profiles built in the same order give equal bytes.
 *
 * Why protobuf-c only packs single entries: to pack a whole profile, it needs a second copy in memory, as a
 * tree of generated structs. So protobuf-c, which knows the fields and types from the schema, packs each
 * entry of a table, and our 20 lines write the key and length before it. Reading does not use protobuf-c at
 * all (decode.h, wire.h): it would build that tree from a hostile file.
 */
#ifndef PPROF_CODEC_ENCODE_H
#define PPROF_CODEC_ENCODE_H

#include <stddef.h>
#include <stdint.h>

struct profile;

/* On 0 the caller owns *buf (free()). -ENOMEM, or profile_error() if building had already failed. */
int encode_profile(const struct profile *p, uint8_t **buf, size_t *len);

#endif
