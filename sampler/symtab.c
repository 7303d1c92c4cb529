/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symtab.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

enum {
	ENTRIES_MAX = 1 << 24, /* the largest binaries known have about a million functions */
	LOOK_BACK_MAX = 256,   /* symbols to step back over to find one that encloses them */
	COMPARE_MAX = 1024,    /* bytes of two names; a hostile table has long ones */
};

struct symtab {
	struct extents extents;
	struct symtab_entry *entries;
	uint64_t *reach; /* reach[i]: the largest end of entries[0..i] */
	size_t count;
	size_t capacity;
};

struct symtab *symtab_new(const struct extents *extents)
{
	struct symtab *symtab = calloc(1, sizeof(*symtab));

	if (symtab)
		symtab->extents = *extents;
	return symtab;
}

void symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return;
	free(symtab->entries);
	free(symtab->reach);
	free(symtab);
}

size_t symtab_count(const struct symtab *symtab)
{
	return symtab->count;
}

/* global > weak > local; then typed before untyped, sized before unsized. */
static uint8_t rank_of(unsigned info, uint64_t size)
{
	unsigned bind = ELF64_ST_BIND(info), type = ELF64_ST_TYPE(info);
	uint8_t rank = bind == STB_GLOBAL || bind == STB_GNU_UNIQUE ? 0 : bind == STB_WEAK ? 1 : 2;

	return (uint8_t)(rank * 4 + (type == STT_NOTYPE ? 2 : 0) + (size == 0 ? 1 : 0));
}

static int reserve(struct symtab *symtab)
{
	size_t capacity = symtab->capacity ? symtab->capacity * 2 : 1024;
	struct symtab_entry *entries;

	if (symtab->count < symtab->capacity)
		return 0;
	entries = reallocarray(symtab->entries, capacity, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	symtab->entries = entries;
	symtab->capacity = capacity;
	return 0;
}

long symtab_add(struct symtab *symtab, const Elf64_Sym *symbol, uint64_t section_end, const char *name)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info), section = symbol->st_shndx;
	struct symtab_entry entry = {
	    symbol->st_value, symbol->st_size, 0, name, rank_of(symbol->st_info, symbol->st_size)};

	if (section == SHN_UNDEF || section == SHN_ABS || section == SHN_COMMON || name[0] == '\0')
		return 0;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && !(type == STT_NOTYPE && entry.size > 0))
		return 0;
	entry.limit = extents_end(&symtab->extents, entry.start);
	if (entry.limit == 0 || symtab->count >= ENTRIES_MAX)
		return 0;
	if (section_end > entry.start && section_end < entry.limit)
		entry.limit = section_end;
	if (entry.size > entry.limit - entry.start)
		entry.size = entry.limit - entry.start;
	if (reserve(symtab) != 0)
		return -ENOMEM;
	symtab->entries[symtab->count++] = entry;
	return 1;
}

uint64_t symtab_section_end(Elf *elf, unsigned index)
{
	GElf_Shdr header;
	Elf_Scn *section = index < SHN_LORESERVE ? elf_getscn(elf, index) : NULL;

	return section && gelf_getshdr(section, &header) ? header.sh_addr + header.sh_size : 0;
}

static long add_section(struct symtab *symtab, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Scn *string_section = elf_getscn(elf, header->sh_link);
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Data *strings = string_section ? elf_getdata(string_section, NULL) : NULL;
	size_t symbol_bytes = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t count = data && data->d_buf && symbol_bytes ? data->d_size / symbol_bytes : 0;
	long added = 0;

	/* The last byte once, instead of elf_strptr()'s check for each name. */
	if (!strings || !strings->d_buf || strings->d_size == 0 ||
	    ((const char *)strings->d_buf)[strings->d_size - 1] != '\0')
		return 0;
	for (size_t i = 1; i < count && i < ENTRIES_MAX; i++) {
		GElf_Sym symbol;
		uint64_t end;
		long one;

		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_name >= strings->d_size)
			continue;
		end = symbol.st_size == 0 ? symtab_section_end(elf, symbol.st_shndx) : 0;
		one = symtab_add(symtab, &symbol, end, (const char *)strings->d_buf + symbol.st_name);
		if (one < 0)
			return one;
		added += one;
	}
	return added;
}

long symtab_add_elf(struct symtab *symtab, Elf *elf, uint32_t section_type)
{
	Elf_Scn *section = NULL;
	long added = 0;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		long some;

		if (!gelf_getshdr(section, &header) || header.sh_type != section_type)
			continue;
		some = add_section(symtab, elf, section, &header);
		if (some < 0)
			return some;
		added += some;
	}
	return added;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/*
 * Of equally good aliases the plainest: malloc, not __libc_malloc. Any rule will do that does not depend on
 * order.
 */
static int compare(const void *left, const void *right)
{
	const struct symtab_entry *a = left, *b = right;
	size_t a_length, b_length;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (underscores(a->name) != underscores(b->name))
		return underscores(a->name) < underscores(b->name) ? -1 : 1;
	a_length = strnlen(a->name, COMPARE_MAX);
	b_length = strnlen(b->name, COMPARE_MAX);
	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return strncmp(a->name, b->name, COMPARE_MAX);
}

void symtab_sort(struct symtab *symtab)
{
	size_t kept = 0;
	uint64_t reach = 0;

	if (symtab->count == 0)
		return;
	qsort(symtab->entries, symtab->count, sizeof(*symtab->entries), compare);
	for (size_t i = 0; i < symtab->count; i++) {
		struct symtab_entry *last = kept ? &symtab->entries[kept - 1] : NULL;

		if (last && last->start == symtab->entries[i].start) {
			if (symtab->entries[i].size > last->size)
				last->size = symtab->entries[i].size;
			continue;
		}
		symtab->entries[kept++] = symtab->entries[i];
	}
	symtab->count = kept;
	free(symtab->reach);
	symtab->reach = calloc(kept, sizeof(*symtab->reach));
	if (!symtab->reach) /* then symtab_find looks back without the short cut */
		return;
	for (size_t i = 0; i < kept; i++) {
		uint64_t end = symtab->entries[i].start + symtab->entries[i].size;

		reach = end > reach ? end : reach;
		symtab->reach[i] = reach;
	}
}

const struct symtab_entry *symtab_find(const struct symtab *symtab, uint64_t vaddr)
{
	size_t low = 0, high = symtab->count, nearest;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symtab->entries[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || extents_end(&symtab->extents, vaddr) == 0)
		return NULL;
	nearest = low - 1;
	for (size_t i = nearest; nearest - i < LOOK_BACK_MAX; i--) {
		const struct symtab_entry *entry = &symtab->entries[i];

		if (vaddr - entry->start < entry->size)
			return entry;
		if (i == 0 || (symtab->reach && symtab->reach[i] <= vaddr))
			break;
	}
	if (symtab->entries[nearest].size == 0 && vaddr < symtab->entries[nearest].limit)
		return &symtab->entries[nearest];
	return NULL;
}
