/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code generated at run time: /tmp/perf-PID.map, which node, Java, .NET, LuaJIT and others write for
 * perf.
 *
 * One line per function: START SIZE NAME, numbers in hex. The writer only appends, so where ranges overlap
 * the later line is valid. The target writes the file: it is hostile input, and may be written at the same
 * time (a last line without a newline is not read).
 */
#ifndef SAMPLER_SYMBOL_PERFMAP_H
#define SAMPLER_SYMBOL_PERFMAP_H

#include "sampler/linux/perf_map_file.h"

#include <stddef.h>
#include <stdint.h>

enum {
	PERFMAP_BYTES_MAX = 256 << 20, /* of a file; the rest is not read */
	PERFMAP_NAME_MAX = 1024,       /* bytes; longer names are cut */
};

struct perfmap;

/* Pure. Lines of any other form are skipped. NULL when out of memory. */
struct perfmap *perfmap_parse(const char *text, size_t text_bytes);

/* Reads the map of a process. Returns 0 (with *map for perfmap_free) or -errno; -ENOENT is the usual case. */
int perfmap_open(const struct perf_map_file *file, struct perfmap **map);
void perfmap_free(struct perfmap *map);

size_t perfmap_count(const struct perfmap *map);

/* The name of the code that contains addr, owned by the map; NULL: none. */
const char *perfmap_find(const struct perfmap *map, uint64_t addr);

#endif
