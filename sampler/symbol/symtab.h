/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted table of one file's functions, merged from all symbol tables that it and its debug file have; and
 * where the file's code lies.
 *
 * Why not libdwfl: dwfl_module_addrinfo() searches linearly, 1.5 to 3 ms per address in cc1 or node. Here a
 * lookup is a binary search.
 */
#ifndef SAMPLER_SYMBOL_SYMTAB_H
#define SAMPLER_SYMBOL_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

/*
 * Where a file's code lies: its executable PT_LOAD segments, in ELF virtual addresses. Symbols and DWARF
 * ranges outside them are data, or discarded functions, which the linker has moved to address 0.
 */
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

struct symtab;

struct symtab_entry {
	uint64_t start;
	uint64_t size;    /* 0: unknown, reaches to the next symbol or to limit */
	uint64_t limit;   /* end of its section, else of its segment */
	const char *name; /* borrowed from the Elf or the caller */
	uint8_t rank;     /* lower is better; aliases: the best one's */
};

/* Keeps a copy of `extents`, and takes only symbols inside them. NULL if out of memory. */
struct symtab *symtab_new(const struct extents *extents);
void symtab_free(struct symtab *symtab);

/*
 * Tells the table which addresses will be looked up (ascending, no duplicates, borrowed). Call it before the
 * first addition; without the call every address may be looked up. symtab_add_elf() then keeps only symbols
 * that can contain one of the addresses: sorting all of node's 150,000 symbols for some hundred addresses
 * took 40 ms. Among aliases of different sizes in different sections of the file, the best name may be lost.
 * Returns 0 or -ENOMEM.
 */
int symtab_want(struct symtab *symtab, const uint64_t *vaddrs, size_t n);

/*
 * Adds functions, indirect functions and sized untyped symbols. symtab_add_elf() reads all sections of one
 * type (SHT_SYMTAB or SHT_DYNSYM) of a 64-bit file; the Elf must outlive the table. section_end 0: unknown.
 * Returns how many there are, or -ENOMEM.
 */
long symtab_add_elf(struct symtab *symtab, Elf *elf, uint32_t section_type);
long symtab_add(struct symtab *symtab, const Elf64_Sym *symbol, uint64_t section_end, const char *name);

/* The end of section number `index`, or 0 if there is no such section. */
uint64_t symtab_section_end(Elf *elf, unsigned index);

/* Sorts the table, and keeps the best name among aliases. Call it after the last addition and before the
 * first search. */
void symtab_sort(struct symtab *symtab);

size_t symtab_count(const struct symtab *symtab);

/*
 * The function that contains vaddr: the innermost function with a size. If there is none, the last function
 * without a size that begins before vaddr in the same section, with no other symbol in between. NULL if there
 * is none.
 */
const struct symtab_entry *symtab_find(const struct symtab *symtab, uint64_t vaddr);

#endif
