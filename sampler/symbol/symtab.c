/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/symtab.h"

#include "pprof/table/array.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* How far the ELF and program headers reach into the file. */
static uint64_t headers_end(Elf *elf, size_t header_count)
{
	GElf_Ehdr header;

	if (!gelf_getehdr(elf, &header))
		return 0;
	if (header.e_phoff > header.e_ehsize)
		return header.e_ehsize;
	return header.e_phoff + header_count * header.e_phentsize;
}

void extents_read(struct extents *extents, Elf *elf)
{
	size_t header_count = 0;
	uint64_t headers_bytes;

	extents->count = 0;
	if (elf_getphdrnum(elf, &header_count) != 0)
		return;
	headers_bytes = headers_end(elf, header_count);
	for (size_t i = 0; i < header_count && extents->count < EXTENTS_MAX; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(elf, (int)i, &header))
			return;
		if (header.p_type != PT_LOAD || !(header.p_flags & PF_X) || header.p_memsz == 0 ||
		    header.p_vaddr + header.p_memsz < header.p_vaddr)
			continue;
		extents->range[extents->count].start = header.p_vaddr;
		/* If headers are mapped together with the code (gold does that), address 0 is still not
		 * code. */
		if (header.p_offset < headers_bytes && header.p_filesz > headers_bytes - header.p_offset)
			extents->range[extents->count].start += headers_bytes - header.p_offset;
		extents->range[extents->count].end = header.p_vaddr + header.p_memsz;
		extents->count++;
	}
}

uint64_t extents_end(const struct extents *extents, uint64_t vaddr)
{
	if (extents->count == 0)
		return UINT64_MAX;
	for (unsigned i = 0; i < extents->count; i++)
		if (vaddr >= extents->range[i].start && vaddr < extents->range[i].end)
			return extents->range[i].end;
	return 0;
}

enum {
	ENTRIES_MAX = 1 << 24, /* the largest binaries known have about a million functions */
	LOOK_BACK_MAX = 256,   /* symbols to step back over to find one that encloses them */
	CELLS = 4096,          /* parts into which the span of the wanted addresses is cut */
	COMPARE_MAX = 1024,    /* bytes of two names; a hostile table has long ones */
};

/* The symbols met so far that begin above the previous wanted address, up to this one. */
struct wanted {
	uint64_t nearest;   /* the start of the last symbol */
	uint64_t outermost; /* the start of the first symbol that contains this address */
	bool has_nearest, has_outermost;
};

struct symtab {
	struct extents extents;
	const uint64_t *vaddrs; /* NULL: everything is wanted */
	size_t vaddr_count;
	struct wanted *wanted; /* by number of the address */
	uint32_t *cells; /* for each cell the first wanted address at or above its start; one cell more */
	unsigned cell_shift;
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
	free(symtab->wanted);
	free(symtab->cells);
	free(symtab);
}

int symtab_want(struct symtab *symtab, const uint64_t *vaddrs, size_t n)
{
	uint64_t span;
	size_t at = 0;

	if (n == 0)
		return 0;
	span = vaddrs[n - 1] - vaddrs[0];
	while (span >> symtab->cell_shift >= CELLS)
		symtab->cell_shift++;
	symtab->wanted = calloc(n, sizeof(*symtab->wanted));
	symtab->cells = calloc(CELLS + 1, sizeof(*symtab->cells));
	if (!symtab->wanted || !symtab->cells)
		return -ENOMEM;
	for (uint64_t cell = 0; cell <= (span >> symtab->cell_shift) + 1; cell++) {
		while (at < n && (vaddrs[at] - vaddrs[0]) >> symtab->cell_shift < cell)
			at++;
		symtab->cells[cell] = (uint32_t)at;
	}
	symtab->vaddrs = vaddrs;
	symtab->vaddr_count = n;
	return 0;
}

size_t symtab_count(const struct symtab *symtab)
{
	return symtab->count;
}

/* global before weak before local; then typed before untyped, sized before unsized. */
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

static inline bool is_function(const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info), section = symbol->st_shndx;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && !(type == STT_NOTYPE && symbol->st_size > 0))
		return false;
	return section != SHN_UNDEF && section != SHN_ABS && section != SHN_COMMON;
}

long symtab_add(struct symtab *symtab, const Elf64_Sym *symbol, uint64_t section_end, const char *name)
{
	struct symtab_entry entry = {
	    symbol->st_value, symbol->st_size, 0, name, rank_of(symbol->st_info, symbol->st_size)};

	if (!is_function(symbol) || name[0] == '\0')
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

/* One section's symbols and their names. */
struct table {
	Elf *elf;
	const uint8_t *symbols;
	size_t count;
	const char *names;
	size_t name_bytes;
};

/* False if no symbol can be read. */
static bool open_table(struct table *table, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Scn *string_section = elf_getscn(elf, header->sh_link);
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Data *strings = string_section ? elf_getdata(string_section, NULL) : NULL;

	if (gelf_getclass(elf) != ELFCLASS64 || !data || !data->d_buf || !strings || !strings->d_buf)
		return false;
	*table = (struct table){
	    elf, data->d_buf, data->d_size / sizeof(Elf64_Sym), strings->d_buf, strings->d_size};
	if (table->count > ENTRIES_MAX)
		table->count = ENTRIES_MAX;
	/* Checks the table's last byte once. elf_strptr() would check each name. */
	return table->name_bytes > 0 && table->names[table->name_bytes - 1] == '\0';
}

/* Symbol number i if it may be a function. */
static inline bool read_symbol(const struct table *table, size_t i, Elf64_Sym *symbol)
{
	memcpy(symbol, table->symbols + i * sizeof(*symbol), sizeof(*symbol));
	return is_function(symbol) && symbol->st_name < table->name_bytes;
}

/* The first wanted address at or above `start`; vaddr_count if there is none. */
static inline size_t first_wanted(const struct symtab *symtab, uint64_t start)
{
	const uint64_t *vaddrs = symtab->vaddrs;
	size_t low, count;
	uint64_t cell;

	if (start <= vaddrs[0])
		return 0;
	if (start > vaddrs[symtab->vaddr_count - 1])
		return symtab->vaddr_count;
	/* Without the cells, this search for each of 150,000 symbols took two thirds of the time to write
	 * node's profile. */
	cell = (start - vaddrs[0]) >> symtab->cell_shift;
	low = symtab->cells[cell];
	count = symtab->cells[cell + 1] - low;
	while (count > 0) {
		size_t half = count / 2;

		low += vaddrs[low + half] < start ? count - half : 0;
		count = half;
	}
	return low;
}

/* Notes a symbol as a candidate for the first wanted address at or after its start. */
static inline void learn(struct symtab *symtab, const Elf64_Sym *symbol, const char *name)
{
	size_t at = first_wanted(symtab, symbol->st_value);
	struct wanted *wanted;
	bool nearer, outer;

	if (at == symtab->vaddr_count)
		return;
	wanted = &symtab->wanted[at];
	nearer = !wanted->has_nearest || symbol->st_value > wanted->nearest;
	outer = symtab->vaddrs[at] - symbol->st_value < symbol->st_size &&
	    (!wanted->has_outermost || symbol->st_value < wanted->outermost);
	if ((!nearer && !outer) || name[0] == '\0' || extents_end(&symtab->extents, symbol->st_value) == 0)
		return;
	if (nearer)
		wanted->nearest = symbol->st_value;
	if (outer)
		wanted->outermost = symbol->st_value;
	wanted->has_nearest = true;
	wanted->has_outermost |= outer;
}

/* The nearest symbol may lie inside others, and each may have aliases: so all symbols from the outermost on
 * are kept. */
static inline bool is_wanted(const struct symtab *symtab, uint64_t start)
{
	size_t at = first_wanted(symtab, start);
	const struct wanted *wanted = &symtab->wanted[at < symtab->vaddr_count ? at : 0];

	return at < symtab->vaddr_count && wanted->has_nearest &&
	    start >= (wanted->has_outermost ? wanted->outermost : wanted->nearest);
}

static long add_section(struct symtab *symtab, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	struct table table;
	long functions = 0;
	Elf64_Sym symbol;

	if (!open_table(&table, elf, section, header))
		return 0;
	for (size_t i = 1; i < table.count && symtab->vaddrs; i++)
		if (read_symbol(&table, i, &symbol))
			learn(symtab, &symbol, table.names + symbol.st_name);
	for (size_t i = 1; i < table.count; i++) {
		uint64_t end;
		long one;

		if (!read_symbol(&table, i, &symbol))
			continue;
		if (symtab->vaddrs && !is_wanted(symtab, symbol.st_value)) {
			functions++;
			continue;
		}
		end = symbol.st_size == 0 ? symtab_section_end(elf, symbol.st_shndx) : 0;
		one = symtab_add(symtab, &symbol, end, table.names + symbol.st_name);
		if (one < 0)
			return one;
		functions += one;
	}
	return functions;
}

long symtab_add_elf(struct symtab *symtab, Elf *elf, uint32_t section_type)
{
	Elf_Scn *section = NULL;
	long functions = 0;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		long some;

		if (!gelf_getshdr(section, &header) || header.sh_type != section_type)
			continue;
		some = add_section(symtab, elf, section, &header);
		if (some < 0)
			return some;
		functions += some;
	}
	return functions;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/*
 * Takes the plainest of equally good aliases: malloc, not __libc_malloc. Any rule will do that does not
 * depend on the symbols' order.
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
	if (!symtab->reach) /* symtab_find then searches back without this short cut */
		return;
	for (size_t i = 0; i < kept; i++) {
		uint64_t end = symtab->entries[i].start + symtab->entries[i].size;

		reach = end > reach ? end : reach;
		symtab->reach[i] = reach;
	}
}

const struct symtab_entry *symtab_find(const struct symtab *symtab, uint64_t vaddr)
{
	size_t after = ARRAY_UPPER_BOUND(symtab->entries, symtab->count, start, vaddr), nearest;

	if (after == 0 || extents_end(&symtab->extents, vaddr) == 0)
		return NULL;
	nearest = after - 1;
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
