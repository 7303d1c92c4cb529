/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From (ELF file, address) to functions, inlined calls, source lines.
 *
 * Work comes in batches: all unknown addresses of one file at once. The file and its separate debug file are
 * opened, read and closed again within one call of symbols_resolve(); only the strings of the answers stay,
 * until symbols_free(). Nothing here needs the process that mapped the file.
 *
 * The files are hostile input. This code bounds its own recursion, memory and work, but libelf and libdw read
 * the same bytes through mmap (a file that shrinks meanwhile raises SIGBUS). So a process without privileges
 * is forked to read each file (reader.h). The caller sets RLIMIT_DATA, which that process inherits. One
 * `struct symbols` is for one thread.
 *
 * Names are in pprof's style: demangled without parameters and return type, with template arguments.
 * system_name is the linker's symbol.
 */
#ifndef SAMPLER_SYMBOL_SYMBOL_H
#define SAMPLER_SYMBOL_SYMBOL_H

#include "sampler/symbol/answer.h"

struct symbols;

/* Copies the options. NULL when out of memory. */
struct symbols *symbols_new(const struct symbol_options *options);
void symbols_free(struct symbols *symbols);

/*
 * Fills out[i] for vaddrs[i], i < n. Addresses are virtual addresses of the ELF file (not of the process) and
 * already moved into the calling instruction (return address - 1). Any order, duplicates allowed. With
 * SYMBOL_RAW all results are empty. Otherwise every result has at least one frame. A file that cannot be
 * read, or whose names exceed the bounds, is no error: its results have fallback names. A file with a known
 * key is opened again only for new addresses. Returns 0, or -ENOMEM with `out` undefined.
 */
int symbols_resolve(struct symbols *symbols, const struct symbol_file *file, const uint64_t *vaddrs, size_t n,
    struct symbol_result *out, struct symbol_facts *facts);

/* Are inlined calls of the program missing, because they are in a .dwp file, or in .dwo files that are not
 * found? False if the program cannot be read. Lowers RLIMIT_DATA meanwhile. */
bool symbols_is_split(const char *path);

#endif
