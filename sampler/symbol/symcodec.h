/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbols of one file as bytes: what the disk cache keeps.
 *
 * Layout, all integers LEB128 unsigned unless said:
 *   u8 version, u8 source, u8 flags (1 lines, 2 inlines, 4 debug file)
 *   string count, then each string: length, bytes, NUL   (string 0 is not stored, it means "none")
 *   address count, then each, ascending: address - previous address, frame count * 2 + known,
 *     each frame: name, system_name, file (string numbers), line, start_line * 2 + inlined
 *
 * Both directions are pure. The decoder takes hostile bytes: it reads nothing outside them, allocates in
 * proportion to their number, and checks all of them before it reports the first result.
 */
#ifndef SAMPLER_SYMBOL_SYMCODEC_H
#define SAMPLER_SYMBOL_SYMCODEC_H

#include "sampler/symbol/answer.h"

enum { SYMCODEC_STRING_MAX = 64 * 1024 }; /* bytes */

/*
 * Encodes n results. vaddrs must ascend strictly. *bytes is malloc'd for the caller.
 * Returns 0, -ENOMEM, or -EINVAL (order, or beyond the limits above).
 */
int symcodec_encode(const struct symbol_facts *facts, const uint64_t *vaddrs,
    const struct symbol_result *results, size_t n, uint8_t **bytes, size_t *byte_count);

/* Returns 0 to go on. Any other value stops symcodec_decode(), which returns it. */
typedef int symcodec_each_fn(void *arg, uint64_t vaddr, const struct symbol_result *result);

/*
 * Calls each() for every address, ascending. The frames are valid during the call only; strings point into
 * bytes. Returns 0, -EBADMSG (not our bytes; each() was never called), -ENOMEM, or what each() returned.
 */
int symcodec_decode(
    const uint8_t *bytes, size_t byte_count, struct symbol_facts *facts, symcodec_each_fn *each, void *arg);

#endif
