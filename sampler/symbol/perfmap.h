/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code generated at run time: /tmp/perf-PID.map, which node, Java, .NET, LuaJIT and others write for
 * perf.
 *
 * One line per function: START SIZE NAME, numbers in hex. The writer only appends, so where ranges overlap
 * the later line is valid: a map of some hours has many lines for one address. So it is read backwards from
 * its end, only for the wanted addresses, in little memory. The target writes the file: it is hostile input,
 * and may grow while it is read. A last line without a newline is not read.
 */
#ifndef SAMPLER_SYMBOL_PERFMAP_H
#define SAMPLER_SYMBOL_PERFMAP_H

#include "sampler/linux/jit_files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PERFMAP_BYTES_MAX = 256 << 20, /* read from the end of a file; the rest is not read */
	PERFMAP_NAME_MAX = 1024,       /* bytes; longer names are cut */
};

struct perfmap;

/* For these addresses, in any order. NULL when out of memory. */
struct perfmap *perfmap_new(const uint64_t *addrs, size_t count);
void perfmap_free(struct perfmap *map);

/* Gives names to the addresses that have none yet, from the last line to the first. Skips lines of any other
 * form. Returns 0 or -ENOMEM. */
int perfmap_take(struct perfmap *map, const char *text, size_t text_bytes);

/* Reads the map of a process. Returns 0 or -errno (usually -ENOENT); the names found until then stay. */
int perfmap_read(struct perfmap *map, const struct perf_map_file *file);

/* Does an address without a name remain, and a part of the file that was not read? */
bool perfmap_cut(const struct perfmap *map);

/* The name of the code at one of the addresses, owned by the map. NULL if there is none. */
const char *perfmap_find(const struct perfmap *map, uint64_t addr);

#endif
