/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference: plain libdwfl (dwfl_getthread_frames) over the same registers, dump and modules. Linked to
 * tests/unit/stacks.c, too.
 */
#ifndef BENCH_UNWIND_DWFL_H
#define BENCH_UNWIND_DWFL_H

#include "sampler/linux/regs.h"
#include "sampler/unwind/maps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwfl_reference;

struct dwfl_reference *dwfl_reference_new(const struct regs_arch *arch);
void dwfl_reference_free(struct dwfl_reference *reference);

/* Tells libdwfl of the file of MAP, once per file and bias. */
void dwfl_reference_add(struct dwfl_reference *reference, const struct map *map);

/* Lookup addresses (return address - 1) into PCS; their number. */
size_t dwfl_reference_unwind(struct dwfl_reference *reference, const struct regs *regs, const void *stack,
    size_t stack_bytes, uint64_t *pcs, size_t max);

#endif
