/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/program_symbols.h"

#include "sampler/inject/allocator_names.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SECTIONS_MAX = 1024,
	DYNAMIC_MAX = 4096,         /* entries */
	TABLE_BYTES_MAX = 64 << 20, /* each, of names and of symbols: node has 7 and 3 MiB */
	PIECE_BYTES = 32768,
	NAME_BYTES = 64,   /* more than the longest name that is looked for */
	PLACES_MAX = 1024, /* of such names in one table: node has some hundred names that end in "malloc" */
};

enum table_kind { TABLE_NONE, TABLE_ALL, TABLE_EXPORTED, TABLE_DYNAMIC, TABLES };

struct scan {
	struct program_symbols *symbols;
	program_symbols_reader *reader;
	void *context;
	const char *names[64]; /* the names that are looked for, the longest first */
	size_t lengths[64], name_count;
	bool last[256]; /* the last characters of the names */
	struct place {
		uint32_t at; /* offset in the table of names, ascending */
		const char *name;
	} places[PLACES_MAX];
	size_t place_count;
};

/* ---- names */

static void look_for(struct scan *scan, const char *name)
{
	const size_t length = strlen(name);
	size_t i = scan->name_count++;

	for (; i > 0 && scan->lengths[i - 1] < length; i--) {
		scan->lengths[i] = scan->lengths[i - 1];
		scan->names[i] = scan->names[i - 1];
	}
	scan->lengths[i] = length;
	scan->names[i] = name;
	scan->last[(unsigned char)name[length - 1]] = true;
}

static void look_for_all(struct scan *scan)
{
	const size_t most = sizeof(scan->names) / sizeof(scan->names[0]);
	const char *name;

	look_for(scan, "malloc");
	for (size_t i = 0; scan->name_count < most && (name = allocator_names_at(i)); i++)
		look_for(scan, name);
	for (size_t i = 0; scan->name_count < most && (name = runtime_symbol(i)); i++)
		look_for(scan, name);
}

/* Notes a wanted name that ends at text[end]; `at` is the offset of text[end] in the table. A linker lets
 * names share their ends, so the text before the name does not matter. */
static void find_at(struct scan *scan, const char *text, size_t end, uint64_t at)
{
	for (size_t i = 0; i < scan->name_count; i++) {
		const size_t length = scan->lengths[i];

		if (length > end || memcmp(text + end - length, scan->names[i], length) != 0)
			continue;
		if (scan->place_count == PLACES_MAX)
			scan->symbols->whole = false;
		else
			scan->places[scan->place_count++] =
			    (struct place){(uint32_t)(at - length), scan->names[i]};
	}
}

/* Each piece begins with the end of the piece before. False if the table cannot be read. */
static bool find_places(struct scan *scan, const Elf64_Shdr *table)
{
	char text[NAME_BYTES + PIECE_BYTES];
	size_t kept = 0;

	scan->place_count = 0;
	for (uint64_t at = 0; at < table->sh_size;) {
		const size_t bytes =
		    table->sh_size - at < PIECE_BYTES ? (size_t)(table->sh_size - at) : PIECE_BYTES;

		if (scan->reader(scan->context, text + kept, bytes, table->sh_offset + at) != 0)
			return false;
		for (size_t end = kept ? kept : 1; end < kept + bytes; end++)
			if (!text[end] && scan->last[(unsigned char)text[end - 1]])
				find_at(scan, text, end, at + end - kept);
		at += bytes;
		const size_t all = kept + bytes;
		kept = all < NAME_BYTES ? all : NAME_BYTES;
		memmove(text, text + all - kept, kept);
	}
	return true;
}

/* ---- symbols */

static void note(struct program_symbols *symbols, const char *name, const Elf64_Sym *symbol, bool exported)
{
	const struct runtime_symbol of_runtime = {
	    .name = name, .exported = exported, .start = symbol->st_value, .bytes = symbol->st_size};

	if (strcmp(name, "malloc") == 0)
		symbols->own_malloc = symbols->own_malloc || exported;
	runtime_note_symbol(&symbols->runtime, &of_runtime);
	if (!allocator_names_function(name))
		return;
	symbols->exports_allocator = symbols->exports_allocator || exported;
	if (!symbols->allocator[0])
		snprintf(symbols->allocator, sizeof(symbols->allocator), "%s", name);
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static void look_at_symbol(const struct scan *scan, const Elf64_Sym *symbol, bool exported)
{
	if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
	    (exported && ELF64_ST_BIND(symbol->st_info) == STB_LOCAL))
		return;
	const struct place key = {.at = symbol->st_name};
	const struct place *place =
	    bsearch(&key, scan->places, scan->place_count, sizeof(key), compare_places);
	if (place)
		note(scan->symbols, place->name, symbol, exported);
}

static bool look_at_symbols(const struct scan *scan, const Elf64_Shdr *table)
{
	Elf64_Sym piece[PIECE_BYTES / sizeof(Elf64_Sym)];
	const size_t most = sizeof(piece) / sizeof(piece[0]);
	const uint64_t count = table->sh_size / sizeof(*piece);

	for (uint64_t at = 0; at < count; at += most) {
		const size_t some = count - at < most ? (size_t)(count - at) : most;

		if (scan->reader(scan->context, piece, some * sizeof(*piece),
		        table->sh_offset + at * sizeof(*piece)) != 0)
			return false;
		for (size_t i = 0; i < some; i++)
			look_at_symbol(scan, &piece[i], table->sh_type == SHT_DYNSYM);
	}
	return true;
}

/* ---- needed libraries */

/* Cuts a name that is longer than the names that are looked for. */
static void look_at_needed(const struct scan *scan, const Elf64_Shdr *names, uint64_t offset)
{
	char name[NAME_BYTES] = "";

	if (offset >= names->sh_size)
		return;
	const uint64_t left = names->sh_size - offset;
	const size_t bytes = left < sizeof(name) - 1 ? (size_t)left : sizeof(name) - 1;
	if (scan->reader(scan->context, name, bytes, names->sh_offset + offset) == 0)
		runtime_note_library(&scan->symbols->runtime, name);
}

static bool look_at_dynamic(const struct scan *scan, const Elf64_Shdr *table, const Elf64_Shdr *names)
{
	for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Dyn) && i < DYNAMIC_MAX; i++) {
		Elf64_Dyn entry;

		if (scan->reader(
		        scan->context, &entry, sizeof(entry), table->sh_offset + i * sizeof(entry)) != 0)
			return false;
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_NEEDED)
			look_at_needed(scan, names, entry.d_un.d_val);
	}
	return true;
}

static bool is_bounded(const Elf64_Shdr *section)
{
	return section->sh_size <= TABLE_BYTES_MAX && section->sh_offset <= INT64_MAX - TABLE_BYTES_MAX;
}

/* ---- the names of sections */

static bool is_called(
    const struct scan *scan, const Elf64_Ehdr *header, const Elf64_Shdr *section, const char *name)
{
	Elf64_Shdr names;
	char called[NAME_BYTES];
	const size_t bytes = strlen(name) + 1;

	return scan->reader(scan->context, &names, sizeof(names),
	           header->e_shoff + header->e_shstrndx * sizeof(names)) == 0 &&
	    is_bounded(&names) &&
	    scan->reader(scan->context, called, bytes, names.sh_offset + section->sh_name) == 0 &&
	    memcmp(called, name, bytes) == 0;
}

/* The section is small, and has no type of its own. A path is no name: no honest file has one here. */
static void look_at_debug_link(const struct scan *scan, const Elf64_Ehdr *header, const Elf64_Shdr *section)
{
	char *link = scan->symbols->debug_link;
	const size_t most = sizeof(scan->symbols->debug_link) - 1;

	if (section->sh_type != SHT_PROGBITS || section->sh_size > 4096 || section->sh_flags & SHF_ALLOC ||
	    link[0] || !is_called(scan, header, section, ".gnu_debuglink"))
		return;
	const size_t bytes = section->sh_size < most ? (size_t)section->sh_size : most;
	if (scan->reader(scan->context, link, bytes, section->sh_offset) != 0 || strchr(link, '/'))
		link[0] = '\0';
}

/* ---- Go */

static void look_at_go(const struct scan *scan, const Elf64_Ehdr *header, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_PROGBITS && section->sh_flags & SHF_ALLOC &&
	    !(section->sh_flags & SHF_EXECINSTR) && is_called(scan, header, section, RUNTIME_GO_SECTION))
		runtime_note_go_section(&scan->symbols->runtime);
}

/* ---- the file */

static bool look_at_table(struct scan *scan, const Elf64_Ehdr *header, const Elf64_Shdr *table)
{
	Elf64_Shdr names;

	if (table->sh_link >= header->e_shnum ||
	    scan->reader(scan->context, &names, sizeof(names),
	        header->e_shoff + table->sh_link * sizeof(names)) != 0 ||
	    names.sh_type != SHT_STRTAB || !is_bounded(table) || !is_bounded(&names))
		return false;
	if (table->sh_type == SHT_DYNAMIC)
		return look_at_dynamic(scan, table, &names);
	return find_places(scan, &names) && (!scan->place_count || look_at_symbols(scan, table));
}

/* An honest file has one of each. */
static enum table_kind kind_of(const Elf64_Shdr *section)
{
	switch (section->sh_type) {
	case SHT_SYMTAB:
		return TABLE_ALL;
	case SHT_DYNSYM:
		return TABLE_EXPORTED;
	case SHT_DYNAMIC:
		return TABLE_DYNAMIC;
	default:
		return TABLE_NONE;
	}
}

int program_symbols_read(struct program_symbols *symbols, program_symbols_reader *reader, void *context)
{
	struct scan scan = {.symbols = symbols, .reader = reader, .context = context};
	Elf64_Ehdr header;
	bool seen[TABLES] = {[TABLE_NONE] = true};

	*symbols = (struct program_symbols){.whole = true};
	if (reader(context, &header, sizeof(header), 0) != 0 ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof(Elf64_Shdr) ||
	    !header.e_shnum || header.e_shnum > SECTIONS_MAX ||
	    header.e_shoff > INT64_MAX - SECTIONS_MAX * sizeof(Elf64_Shdr))
		return -ENOEXEC;
	look_for_all(&scan);
	for (unsigned i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr section;

		if (reader(context, &section, sizeof(section), header.e_shoff + i * sizeof(section)) != 0)
			return -ENOEXEC;
		look_at_debug_link(&scan, &header, &section);
		look_at_go(&scan, &header, &section);
		const enum table_kind kind = kind_of(&section);
		if (seen[kind])
			continue;
		seen[kind] = true;
		symbols->whole = look_at_table(&scan, &header, &section) && symbols->whole;
	}
	symbols->table = seen[TABLE_ALL];
	return 0;
}

static int read_fd(void *context, void *to, size_t bytes, uint64_t offset)
{
	return pread(*(const int *)context, to, bytes, (off_t)offset) == (ssize_t)bytes ? 0 : -EIO;
}

int program_symbols_read_file(struct program_symbols *symbols, int fd)
{
	return program_symbols_read(symbols, read_fd, &fd);
}
