/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/lookup.h"

#include "preload/memory.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

enum {
	VERSION_HIDDEN = 0x8000, /* only for objects that ask for this very version */
	BLOOM_BITS = 8 * sizeof(ElfW(Addr)),
};

/* One object's dynamic symbols. */
struct table {
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Half) * versions;
	const ElfW(Verdef) * version_names;
	size_t version_names_count;
	const uint32_t *gnu;  /* nbuckets, first symbol, bloom words, bloom shift, bloom, buckets, chain */
	const uint32_t *sysv; /* nbuckets, nchain, buckets, chain */
};

/* glibc relocates the addresses in the dynamic section, musl and the kernel's own object do not. */
static const void *dynamic_address(uintptr_t base, uintptr_t value)
{
	return (const void *)(value < base ? base + value : value);
}

static bool table_read(struct table *table, uintptr_t base, const ElfW(Dyn) * dynamic)
{
	*table = (struct table){.base = base};
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		const void *address = dynamic_address(base, dynamic->d_un.d_ptr);

		if (dynamic->d_tag == DT_SYMTAB)
			table->symbols = address;
		else if (dynamic->d_tag == DT_STRTAB)
			table->strings = address;
		else if (dynamic->d_tag == DT_VERSYM)
			table->versions = address;
		else if (dynamic->d_tag == DT_VERDEF)
			table->version_names = address;
		else if (dynamic->d_tag == DT_VERDEFNUM)
			table->version_names_count = dynamic->d_un.d_val;
		else if (dynamic->d_tag == DT_GNU_HASH)
			table->gnu = address;
		else if (dynamic->d_tag == DT_HASH)
			table->sysv = address;
	}
	return table->symbols && table->strings && (table->gnu || table->sysv);
}

static bool table_init(struct table *table, uintptr_t base, const ElfW(Phdr) * segments, size_t count)
{
	const ElfW(Dyn) *dynamic = NULL;

	for (size_t i = 0; i < count; i++)
		if (segments[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(base + segments[i].p_vaddr);
	return table_read(table, base, dynamic);
}

/* The version of a definition, or NULL. */
static const char *version_of(const struct table *table, uint32_t index)
{
	const ElfW(Verdef) *version = table->versions ? table->version_names : NULL;

	for (size_t i = 0; version && i < table->version_names_count; i++) {
		const unsigned char *start = (const unsigned char *)version;
		const ElfW(Verdaux) *name = (const void *)(start + version->vd_aux);

		if (version->vd_ndx == (table->versions[index] & ~VERSION_HIDDEN))
			return table->strings + name->vda_name;
		version = (const void *)(start + version->vd_next);
	}
	return NULL;
}

/* Are programs bound to this definition? They are if it is the default, or has the version they ask for. */
static bool is_bound_to(const struct table *table, uint32_t index, const char *version)
{
	if (!table->versions || !(table->versions[index] & VERSION_HIDDEN))
		return true;
	const char *own = version ? version_of(table, index) : NULL;
	return own && strcmp(own, version) == 0;
}

/* What is looked for in one object; version: NULL, or a version of which a hidden definition will do. */
struct wanted {
	const char *name, *version;
};

static bool defines(const struct table *table, uint32_t index, struct wanted wanted)
{
	const ElfW(Sym) *symbol = &table->symbols[index];
	uint32_t bind = ELF64_ST_BIND(symbol->st_info), type = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
	    (bind == STB_GLOBAL || bind == STB_WEAK) && type != STT_TLS &&
	    strcmp(table->strings + symbol->st_name, wanted.name) == 0 &&
	    is_bound_to(table, index, wanted.version);
}

static uint32_t find_gnu(const struct table *table, struct wanted wanted)
{
	uint32_t hash = 5381;

	for (const char *c = wanted.name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	const uint32_t buckets = table->gnu[0], first = table->gnu[1], bloom_words = table->gnu[2];
	const ElfW(Addr) *bloom = (const void *)(table->gnu + 4);
	const uint32_t *bucket = (const void *)(bloom + bloom_words), *chain = bucket + buckets;
	ElfW(Addr) bits =
	    (ElfW(Addr))1 << hash % BLOOM_BITS | (ElfW(Addr))1 << (hash >> table->gnu[3]) % BLOOM_BITS;
	if (!buckets || (bloom_words && (bloom[hash / BLOOM_BITS % bloom_words] & bits) != bits))
		return 0;
	uint32_t index = bucket[hash % buckets];
	if (index < first)
		return 0;
	for (;; index++) {
		uint32_t entry = chain[index - first];

		if ((entry | 1) == (hash | 1) && defines(table, index, wanted))
			return index;
		if (entry & 1)
			return 0;
	}
}

static uint32_t find_sysv(const struct table *table, struct wanted wanted)
{
	uint32_t hash = 0;

	for (const char *c = wanted.name; *c; c++) {
		hash = (hash << 4) + (unsigned char)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	const uint32_t buckets = table->sysv[0], *bucket = table->sysv + 2, *chain = bucket + buckets;
	for (uint32_t index = buckets ? bucket[hash % buckets] : 0; index; index = chain[index])
		if (defines(table, index, wanted))
			return index;
	return 0;
}

static uint32_t find_index(const struct table *table, struct wanted wanted)
{
	return table->gnu ? find_gnu(table, wanted) : find_sysv(table, wanted);
}

static void *find_wanted(const struct table *table, struct wanted wanted)
{
	const uint32_t index = find_index(table, wanted);

	if (!index)
		return NULL;
	uintptr_t address = table->base + table->symbols[index].st_value;
	if (ELF64_ST_TYPE(table->symbols[index].st_info) == STT_GNU_IFUNC)
		address = ((uintptr_t(*)(uintptr_t))address)(getauxval(AT_HWCAP));
	return (void *)address;
}

static void *table_find(const struct table *table, const char *name)
{
	return find_wanted(table, (struct wanted){name, NULL});
}

/* The loader's list of objects, for debuggers; musl has it under no name. */
extern struct r_debug _r_debug __attribute__((weak));

typedef int look_fn(struct dl_phdr_info *info, size_t size, void *argument);
typedef int iterate_fn(look_fn *look, void *argument);

/*
 * The libc's own dl_iterate_phdr, not the definition that the program would call: gcc's ThreadSanitizer has
 * one that jumps to address 0 until the runtime is ready, and the first malloc comes before that. The list is
 * read without the loader's lock, but once, in the process' first hook or in our constructor.
 */
static iterate_fn *own_iterate(void)
{
	static const char libc_name[] = "/libc.so.6";
	struct table table;

	for (const struct link_map *map = &_r_debug ? _r_debug.r_map : NULL; map; map = map->l_next) {
		const char *name = strrchr(map->l_name, '/');

		if (name && strcmp(name, libc_name) == 0 && table_read(&table, map->l_addr, map->l_ld))
			return (iterate_fn *)(uintptr_t)table_find(&table, "dl_iterate_phdr");
	}
	return NULL;
}

static void iterate(look_fn *look, void *argument)
{
	static iterate_fn *_Atomic chosen;
	iterate_fn *function = chosen;
	if (!function) {
		function = own_iterate();
		function = function ? function : dl_iterate_phdr;
		chosen = function;
	}
	function(look, argument);
}

void lookup_each(look_fn *look, void *argument)
{
	iterate(look, argument);
}

static bool everywhere; /* in the objects before ours too */

void lookup_everywhere(void)
{
	everywhere = true;
}

struct search {
	struct lookup *wishes;
	size_t count;
	bool after_us;
};

bool lookup_contains(const struct dl_phdr_info *info, const void *address)
{
	uintptr_t at = (uintptr_t)address - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && at >= info->dlpi_phdr[i].p_vaddr &&
		    at - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

bool lookup_is_ours(const struct dl_phdr_info *info)
{
	return lookup_contains(info, (const void *)(uintptr_t)lookup_is_ours);
}

/* The kernel's own object is left out. */
static bool table_of(struct table *table, const struct dl_phdr_info *info)
{
	return info->dlpi_addr != getauxval(AT_SYSINFO_EHDR) &&
	    table_init(table, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
}

/* Only the libc starts programs. */
static bool table_of_libc(struct table *table, const struct dl_phdr_info *info)
{
	return table_of(table, info) && table_find(table, "__libc_start_main");
}

/* Programs ask for the version that the libc's own definition has. */
static int note_versions(struct dl_phdr_info *info, size_t size, void *argument)
{
	const struct search *search = argument;
	struct table table;

	if (!table_of_libc(&table, info))
		return 0;
	for (size_t i = 0; i < search->count; i++) {
		struct lookup *wish = &search->wishes[i];
		const uint32_t index =
		    wish->version ? 0 : find_index(&table, (struct wanted){wish->name, NULL});

		wish->version = index ? version_of(&table, index) : wish->version;
	}
	return 0;
}

static int search_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct search *search = argument;
	struct table table;
	bool ours = lookup_is_ours(info);

	search->after_us = search->after_us || ours;
	if (ours || (!search->after_us && !everywhere) || !table_of(&table, info))
		return 0;
	for (size_t i = 0; i < search->count; i++) {
		struct lookup *wish = &search->wishes[i];

		if (!wish->found)
			wish->found = find_wanted(&table, (struct wanted){wish->name, wish->version});
	}
	return 0;
}

void lookup_next(struct lookup *wishes, size_t count)
{
	struct search search = {wishes, count, false};

	for (size_t i = 0; i < count; i++)
		wishes[i] = (struct lookup){.name = wishes[i].name};
	iterate(note_versions, &search);
	iterate(search_object, &search);
}

struct question {
	const void *address; /* NULL: in the objects before ours */
	struct wanted wanted;
	void *answer;
};

static int ask_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct question *question = argument;
	struct table table;

	if (!question->address && lookup_is_ours(info))
		return 1;
	if (question->address && !lookup_contains(info, question->address))
		return 0;
	if (table_init(&table, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum))
		question->answer = find_wanted(&table, question->wanted);
	return question->answer != NULL || question->address;
}

void *lookup_before(const char *name)
{
	struct lookup wish = {.name = name};
	struct search search = {&wish, 1, false};
	iterate(note_versions, &search);
	struct question question = {NULL, {name, wish.version}, NULL};
	iterate(ask_object, &question);
	return question.answer;
}

bool lookup_beside(const void *address, const char *name)
{
	struct question question = {address, {name, NULL}, NULL};

	iterate(ask_object, &question);
	return question.answer != NULL;
}

static int ask_libc(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct question *question = argument;
	struct table table;

	if (!table_of_libc(&table, info))
		return 0;
	question->answer = find_wanted(&table, question->wanted);
	return question->answer != NULL;
}

void *lookup_in_libc(const char *name)
{
	struct question question = {NULL, {name, NULL}, NULL};

	iterate(ask_libc, &question);
	return question.answer;
}

struct extent {
	const void *address;
	uintptr_t start, end;
};

static int measure_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct extent *extent = argument;

	if (!lookup_contains(info, extent->address))
		return 0;
	extent->start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;

		if (segment->p_type != PT_LOAD)
			continue;
		extent->start = start < extent->start ? start : extent->start;
		extent->end = end > extent->end ? end : extent->end;
	}
	return 1;
}

void lookup_extent(const void *address, uintptr_t *start, uintptr_t *end)
{
	struct extent extent = {.address = address};

	iterate(measure_object, &extent);
	*start = extent.start;
	*end = extent.end;
}

struct hiding {
	const char *const *names;
	size_t count;
	bool done;
};

/* The loader passes over a symbol whose value is 0. The page of our symbol table is read-only and must be
 * made writable for this. */
static int hide_ours(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct hiding *hiding = argument;
	struct table table;
	uint32_t low = UINT32_MAX, high = 0;

	if (!lookup_is_ours(info))
		return 0;
	if (!table_init(&table, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum) || !table.gnu)
		return 1;
	for (size_t i = 0; i < hiding->count; i++) {
		uint32_t index = find_gnu(&table, (struct wanted){hiding->names[i], NULL});

		low = index && index < low ? index : low;
		high = index > high ? index : high;
	}
	uintptr_t page = getauxval(AT_PAGESZ) - 1;
	uintptr_t start = (uintptr_t)&table.symbols[low] & ~page,
	          end = ((uintptr_t)&table.symbols[high + 1] + page) & ~page;
	if (!high || !memory_protect((void *)start, end - start, PROT_READ | PROT_WRITE))
		return 1;
	for (size_t i = 0; i < hiding->count; i++) {
		uint32_t index = find_gnu(&table, (struct wanted){hiding->names[i], NULL});

		if (index)
			((ElfW(Sym) *)(uintptr_t)table.symbols)[index].st_value = 0;
	}
	hiding->done = memory_protect((void *)start, end - start, PROT_READ);
	return 1;
}

bool lookup_hide(const char *const *names, size_t count)
{
	struct hiding hiding = {names, count, count == 0};

	iterate(hide_ours, &hiding);
	return hiding.done;
}

const ElfW(Sym) * lookup_symbol(const struct dl_phdr_info *info, const char *name)
{
	struct table table;

	if (!table_init(&table, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum))
		return NULL;
	const uint32_t index = find_index(&table, (struct wanted){name, NULL});
	return index ? &table.symbols[index] : NULL;
}

void *lookup_vdso(const char *name)
{
	uintptr_t start = getauxval(AT_SYSINFO_EHDR);

	if (!start)
		return NULL;
	const ElfW(Ehdr) *header = (const void *)start;
	const ElfW(Phdr) *segments = (const void *)(start + header->e_phoff);
	uintptr_t base = start;
	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0)
			base = start - segments[i].p_vaddr;
	struct table table;
	return table_init(&table, base, segments, header->e_phnum) ? table_find(&table, name) : NULL;
}
