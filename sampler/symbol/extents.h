/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a file's code lies: its executable PT_LOAD segments, in ELF virtual addresses. Symbols and DWARF
 * ranges outside them are data, or discarded functions, which the linker has moved to address 0.
 */
#ifndef SAMPLER_SYMBOL_EXTENTS_H
#define SAMPLER_SYMBOL_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <libelf.h>

enum { EXTENTS_MAX = 64 };

struct extents {
	struct {
		uint64_t start, end;
	} range[EXTENTS_MAX];
	unsigned count; /* 0 with no program headers: then everything may be code */
};

void extents_read(struct extents *extents, Elf *elf);

/* The end of the segment that contains vaddr, or 0 if there is none. */
uint64_t extents_end(const struct extents *extents, uint64_t vaddr);

#endif
