/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rows of code made at run time, from a jit-PID.dump: V8 (--perf-prof-unwinding-info) and CPython (-X
 * perf_jit) write an .eh_frame for each function, in the record before the record that tells where the
 * function is.
 *
 *	record 4: size of all, size of the header, size when mapped | .eh_frame | .eh_frame_hdr
 *	record 0 or 1: code was made here; moved there
 *
 * The addresses in the .eh_frame are relative to its own place. It expects to be at the first boundary of 8
 * bytes behind the code, if the code begins at such a boundary. perf puts both in a file that way. This unit
 * does the same in memory for each wanted address, and cfi.h does the rest: an address of that file is the
 * number of the record * 2^32 + the distance from the start of the code. So rows of earlier code at the same
 * place cannot be mistaken for these.
 *
 * The file only grows, and each record is read once. The places of the code and of its .eh_frame are kept; a
 * later record replaces what it overlaps. The target writes the file: reads are bounded, and the process'
 * budget pays for them.
 */
#ifndef SAMPLER_UNWIND_JIT_ROWS_H
#define SAMPLER_UNWIND_JIT_ROWS_H

#include "sampler/unwind/cfi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JIT_ROWS_MAX = 16 << 10,              /* pieces of code; later ones have no rows */
	JIT_ROWS_CODE_BYTES_MAX = 1 << 30,    /* of a piece; a larger one is not believed */
	JIT_ROWS_SECTION_BYTES_MAX = 1 << 18, /* of an .eh_frame; code with a larger one has no rows */
	JIT_ROWS_MEMORY_MAX = 1 << 20,        /* for rules, bytes */
};

/* The rows of one file. Counts references, for one thread. */
struct jit_rows;

/* Makes an empty set. Takes FILE, of which only fd or memory matters: closes the descriptor, also on error,
 * and borrows the memory. NULL if out of memory or if the machine is unknown. */
struct jit_rows *jit_rows_new(struct module_file *file, uint16_t e_machine);
struct jit_rows *jit_rows_ref(struct jit_rows *rows);
void jit_rows_unref(struct jit_rows *rows); /* NULL is allowed */
size_t jit_rows_bytes(const struct jit_rows *rows);

/* Reads the new complete records in the file's first FILE_BYTES, as far as BUDGET allows. True if anything
 * changed. */
bool jit_rows_read(struct jit_rows *rows, uint64_t file_bytes, struct throttle *budget);

/* Grows with each change. */
uint64_t jit_rows_version(const struct jit_rows *rows);

/* The rule for ADDRESS, valid as long as ROWS. Never NULL; cfi_unread_rule if it may be known the next
 * time. */
const struct cfi_rule *jit_rows_rule(
    struct jit_rows *rows, uint64_t address, uint16_t e_machine, struct throttle *budget);

#endif
