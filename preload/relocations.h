/* SPDX-License-Identifier: Apache-2.0 */
/* The relocations of one object as its dynamic section describes them: which words of it hold addresses of
 * functions of others. */
#ifndef PRELOAD_RELOCATIONS_H
#define PRELOAD_RELOCATIONS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct relocations {
	const struct dl_phdr_info *info; /* borrowed */
	const ElfW(Sym) * symbols;
	const char *strings;
	struct relocation_table {
		const ElfW(Rela) * first;
		size_t count;
	} data, calls; /* what is bound at the start, and what may be bound at the first call */
	bool symbolic; /* -Bsymbolic */
};

/* False: it has none that we could read. */
bool relocations_read(struct relocations *relocations, const struct dl_phdr_info *info);

/* Stores a symbol's address as it is; and does so for calls alone. */
bool relocations_is_slot(const ElfW(Rela) * relocation);
bool relocations_is_call(const ElfW(Rela) * relocation);

/* Of a slot: its symbol, the symbol's name, and where it is. */
const ElfW(Sym) * relocations_symbol(const struct relocations *relocations, const ElfW(Rela) * relocation);
const char *relocations_name(const struct relocations *relocations, const ElfW(Rela) * relocation);
uintptr_t *relocations_slot(const struct relocations *relocations, const ElfW(Rela) * relocation);

/* The object's segment that holds an address, or NULL. */
const ElfW(Phdr) * relocations_segment(const struct dl_phdr_info *info, uintptr_t address);

#endif
