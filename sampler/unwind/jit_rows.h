/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rows of code made at run time, from a jit-PID.dump: V8 (--perf-prof-unwinding-info) and CPython
 * (-X perf_jit) write an .eh_frame for each function, in the record before the one that tells where it is.
 *
 *	record 4: size of all, size of the header, size when mapped | .eh_frame | .eh_frame_hdr
 *	record 0 or 1: code was made here; moved there
 *
 * The .eh_frame is relative to itself, and counts on being at the first 8 bytes' boundary behind the code, if
 * the code began at one: perf puts both in a file that way. So does this unit, in memory, for each address
 * that is asked for, and cfi.h does the rest: an address of the file is the number of the record * 2^32 + the
 * distance from the start of the code. So no row is taken for one of earlier code at the same place.
 *
 * The file only grows, and each record is looked at once. It is kept where the code and its .eh_frame are; a
 * later record is valid for what it overlaps. The target writes the file: reads are bounded, and at the
 * expense of the process' budget.
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

/* Those of one file. The references are of one thread. */
struct jit_rows;

/* None yet. Takes FILE, of which only fd or memory counts, also on error: closes the descriptor, borrows the
 * memory. NULL: out of memory, or not a machine that we know. */
struct jit_rows *jit_rows_new(struct module_file *file, uint16_t e_machine);
struct jit_rows *jit_rows_ref(struct jit_rows *rows);
void jit_rows_unref(struct jit_rows *rows); /* NULL is allowed */
size_t jit_rows_bytes(const struct jit_rows *rows);

/* Looks at the records that are whole, in the file's first FILE_BYTES, and were not looked at yet, as far as
 * BUDGET allows. Whether anything changed. */
bool jit_rows_read(struct jit_rows *rows, uint64_t file_bytes, struct throttle *budget);

/* Grows with each change. */
uint64_t jit_rows_version(const struct jit_rows *rows);

/* The rule for ADDRESS, valid as long as ROWS. Never NULL; cfi_unread_rule: it may be known the next time. */
const struct cfi_rule *jit_rows_rule(
    struct jit_rows *rows, uint64_t address, uint16_t e_machine, struct throttle *budget);

#endif
