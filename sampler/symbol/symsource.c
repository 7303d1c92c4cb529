/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/symsource.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/symbol/debuginfo.h"
#include "sampler/symbol/demangle.h"
#include "sampler/symbol/inlines.h"
#include "sampler/symbol/symcodec.h"
#include "sampler/symbol/units.h"

enum {
	SOURCE_FORMAT = 2,        /* increase when the same file gives other answers than before */
	DWARF_LINES_MAX = 400000, /* line rows that libdw may hold before it is restarted, 56 bytes each */
};

/* Is there a section of this name with content? In a separate debug file most sections are NOBITS. */
static bool has_section(Elf *elf, const char *name, const char *other_name)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *own =
		    gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (own && header.sh_type != SHT_NOBITS &&
		    (strcmp(own, name) == 0 || strcmp(own, other_name) == 0))
			return true;
	}
	return false;
}

static bool has_dwarf(Elf *elf)
{
	return has_section(elf, ".debug_info", ".zdebug_info");
}

int symsource_open(struct symsource *source, const struct symbol_file *file,
    const struct symbol_options *options, const struct debuginfo_files *files, struct string_pool *names)
{
	struct debuginfo_query query = {.path = file->path,
	    .root = options->debug_root,
	    .debuginfod = options->debuginfod,
	    .files = files,
	    .build_id = file->build_id,
	    .build_id_bytes = file->build_id_bytes};
	const void *found;
	ssize_t found_bytes;
	GElf_Ehdr header;

	*source = (struct symsource){
	    .file = file, .options = options, .files = files, .names = names, .debug_fd = -1};
	source->alternate.fd = -1;
	source->elf = elf_begin(file->fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	if (!source->elf || elf_kind(source->elf) != ELF_K_ELF || !gelf_getehdr(source->elf, &header))
		return -ENOEXEC;
	/* Object files have no addresses yet: libdwfl would choose some, with a callback that we do not
	 * set. */
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
		return -ENOEXEC;
	extents_read(&source->extents, source->elf);
	if (has_dwarf(source->elf))
		return 0;
	query.elf = source->elf;
	if (!query.build_id && (found_bytes = dwelf_elf_gnu_build_id(source->elf, &found)) > 0) {
		query.build_id = found;
		query.build_id_bytes = (size_t)found_bytes;
	}
	source->debug_fd = debuginfo_open(&query);
	if (source->debug_fd >= 0)
		source->debug_elf = elf_begin(source->debug_fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	source->facts.debug_file = source->debug_elf != NULL;
	return 0;
}

void symsource_close(struct symsource *source)
{
	dwarf_end(source->dwarf);
	debuginfo_alternate_fini(&source->alternate);
	symtab_free(source->symtab);
	if (source->minidebug)
		dwfl_end(source->minidebug);
	elf_end(source->debug_elf);
	elf_end(source->elf);
	zstd_sections_close(&source->unpacked);
	if (source->debug_fd >= 0)
		close(source->debug_fd);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	for (int i = 0; i < 8; i++, value >>= 8)
		hash = (hash ^ (value & 0xff)) * 1099511628211u;
	return hash;
}

/*
 * The size tells a stripped copy with the same build id from the original. The owner keeps a hostile file
 * with a copied build id from answering for the library: the file cannot copy the library's owner.
 */
uint64_t symsource_id(const struct symsource *source)
{
	uint64_t hash = mix(14695981039346656037u, SOURCE_FORMAT);
	struct stat status;

	hash = mix(hash, source->options->detail);
	if (fstat(source->file->fd, &status) == 0)
		hash = mix(mix(hash, (uint64_t)status.st_size), status.st_uid);
	if (source->debug_elf && fstat(source->debug_fd, &status) == 0)
		hash =
		    mix(mix(mix(hash, (uint64_t)status.st_size), status.st_uid), (uint64_t)status.st_mtime);
	return hash;
}

/* Callback of libdwfl: never searches for files, so debuginfod is never asked. */
static int find_no_elf(
    Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	return -1;
}

static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
    const char *path, const char *link, GElf_Word checksum, char **found)
{
	return -1;
}

/*
 * .gnu_debugdata is an xz-compressed ELF file with only a symbol table; and a file without section headers
 * still has its dynamic symbols. libdwfl can read both, so libdwfl reads the whole table here, once.
 */
static long add_minidebug(struct symsource *source)
{
	static const Dwfl_Callbacks callbacks = {
	    .find_elf = find_no_elf, .find_debuginfo = find_no_debuginfo};
	int fd = dup(source->file->fd);
	Dwfl_Module *module = NULL;
	long added = 0;
	int count;

	source->minidebug = dwfl_begin(&callbacks);
	if (source->minidebug && fd >= 0)
		module = dwfl_report_elf(source->minidebug, "file", source->file->path, fd, 0, true);
	if (!module) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	dwfl_report_end(source->minidebug, NULL, NULL);
	count = dwfl_module_getsymtab(module);
	for (int i = 1; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr vaddr;
		GElf_Word section = SHN_UNDEF;
		Elf *elf = NULL;
		const char *name = dwfl_module_getsym_info(module, i, &symbol, &vaddr, &section, &elf, NULL);
		uint64_t end = name && elf ? symtab_section_end(elf, section) : 0;
		long one;

		symbol.st_value = vaddr;
		one = name ? symtab_add(source->symtab, &symbol, end, name) : 0;
		if (one < 0)
			return one;
		added += one;
	}
	return added;
}

static int load_symtab(struct symsource *source, const uint64_t *vaddrs, size_t n)
{
	bool odd = has_section(source->elf, ".gnu_debugdata", "") || !elf_nextscn(source->elf, NULL);
	long full, exported, mini = 0;

	source->symtab = symtab_new(&source->extents);
	if (!source->symtab || symtab_want(source->symtab, vaddrs, n) != 0)
		return -ENOMEM;
	full = symtab_add_elf(source->symtab, source->elf, SHT_SYMTAB);
	if (full == 0 && source->debug_elf)
		full = symtab_add_elf(source->symtab, source->debug_elf, SHT_SYMTAB);
	exported = symtab_add_elf(source->symtab, source->elf, SHT_DYNSYM);
	if (full == 0 && odd)
		mini = add_minidebug(source);
	if (full < 0 || exported < 0 || mini < 0)
		return -ENOMEM;
	symtab_sort(source->symtab);
	source->facts.source = full > 0 ? SYMBOL_SYMTAB
	    : mini > 0                  ? SYMBOL_MINIDEBUG
	    : exported > 0              ? SYMBOL_DYNSYM
	                                : SYMBOL_NONE;
	return 0;
}

/* (Re)opens the DWARF. libdw keeps what it decoded until dwarf_end(): that is the only way to free memory. */
static bool open_dwarf(struct symsource *source)
{
	bool own = has_dwarf(source->elf);
	Elf *elf = own ? source->elf : source->debug_elf;

	dwarf_end(source->dwarf);
	if (elf && source->dwarf == NULL) {
		debuginfo_hide_unused(elf);
		zstd_sections_open(&source->unpacked, elf);
	}
	source->dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	source->dwarf_lines = 0;
	if (!source->dwarf)
		return false;
	if (source->alternate.dwarf)
		dwarf_setalt(source->dwarf, source->alternate.dwarf);
	else
		debuginfo_alternate_init(&source->alternate, source->dwarf,
		    own ? source->file->path : source->options->debug_root, source->options->debug_root,
		    source->files);
	return true;
}

/* Gives a frame the names of a linker symbol. False when out of memory. */
static bool name_frame(struct string_pool *names, const char *symbol, struct symbol_frame *frame)
{
	char name[DEMANGLE_NAME_MAX];

	frame->system_name = string_pool_add(names, symbol, demangle_base_length(symbol));
	if (demangle_is_mangled(symbol) && demangle_name(symbol, name))
		frame->name = string_pool_add(names, name, strlen(name));
	else
		frame->name = frame->system_name;
	return frame->name && frame->system_name;
}

static const char *symtab_name(const struct symsource *source, uint64_t vaddr)
{
	const struct symtab_entry *entry = symtab_find(source->symtab, vaddr);

	return entry ? entry->name : NULL;
}

struct unit {
	struct symsource *source;
	struct unit_lines lines;
	struct inlines inlines;
	struct scopes scopes;
	struct symbol_frame *named; /* by node; name is NULL until it is looked up */
};

/*
 * A name from DWARF that is not a linker symbol, with its namespaces and classes where the language has
 * them.
 */
static const char *plain_name(struct unit *unit, const struct inlines_node *node)
{
	const char *plain = inlines_name(node), **memo;
	char qualified[SCOPES_NAME_MAX];
	Dwarf_Die declaration;

	if (!plain)
		return NULL;
	if (!unit->scopes.qualified)
		return string_pool_add(unit->source->names, plain, strlen(plain));
	declaration = scopes_declaration(&node->die);
	memo = scopes_memo(&unit->scopes, &declaration);
	if (!*memo) {
		if (scopes_find(&unit->scopes, &declaration, qualified))
			plain = qualified;
		*memo = string_pool_add(unit->source->names, plain, strlen(plain));
	}
	return *memo;
}

/*
 * The linker symbol of a function that is not inlined, if the symbol has a size: without a size it could
 * belong to another function.
 */
static const char *own_symbol(const struct symsource *source, uint64_t vaddr)
{
	const struct symtab_entry *entry = symtab_find(source->symtab, vaddr);

	return entry && entry->size > 0 ? entry->name : NULL;
}

/*
 * Name and start line of a node, as a frame without place. A mangled linkage name is complete. A function
 * that has none (C, and C++ without external linkage) gets the name in the symbol table if it is not inlined.
 * That is the name that it has when no debug info is installed: qsort, not __GI___qsort. An inlined function
 * of C, or an internal one of C++, has its name only in DWARF. A frame without a name is unknown. False if
 * out of memory.
 */
static bool name_node(
    struct unit *unit, const struct inlines_node *node, uint64_t vaddr, struct symbol_frame *frame)
{
	const char *linkage = inlines_linkage_name(node), *symbol = linkage;
	bool own = node->parent == INLINES_NONE;

	*frame = (struct symbol_frame){.inlined = !own, .start_line = inlines_start_line(node)};
	if (own && !(linkage && demangle_is_mangled(linkage))) {
		symbol = own_symbol(unit->source, vaddr);
		symbol = symbol ? symbol : linkage;
	}
	if (symbol && !name_frame(unit->source->names, symbol, frame))
		return false;
	if ((symbol && demangle_is_mangled(symbol)) || (symbol && own && unit->scopes.linker_names) ||
	    !inlines_name(node))
		return true;
	frame->name = plain_name(unit, node);
	if (!symbol)
		frame->system_name = frame->name;
	return frame->name != NULL;
}

static bool store(
    struct symsource *source, const struct symbol_frame *frames, uint32_t count, struct symbol_result *result)
{
	struct symbol_frame *kept = string_pool_alloc(source->names, count * sizeof(*frames));

	if (!kept)
		return false;
	memcpy(kept, frames, count * sizeof(*frames));
	kept[count - 1].inlined = false;
	*result = (struct symbol_result){kept, count, true};
	return true;
}

/* Fills in one result from the innermost node outwards. Leaves out an inlined call without a name. */
static int resolve_chain(struct unit *unit, int32_t node, uint64_t vaddr, struct symbol_result *result)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	uint32_t count = 0, line;
	const char *file;

	unit_lines_find(&unit->lines, vaddr, &file, &line);
	while (node != INLINES_NONE && count < SYMBOL_FRAMES_MAX) {
		const struct inlines_node *one = &unit->inlines.nodes[node];
		struct symbol_frame *named = &unit->named[node];
		uint64_t call_file;

		if (!named->name && !name_node(unit, one, vaddr, named))
			return -ENOMEM;
		if (named->name) {
			frames[count] = *named;
			frames[count].file = file;
			frames[count++].line = line;
		}
		if (one->parent == INLINES_NONE)
			break;
		inlines_call(one, &call_file, &line);
		file = unit_lines_file(&unit->lines, call_file);
		line = file ? line : 0;
		node = one->parent;
	}
	/* Assembler has lines, but often no function DIE. */
	if (node == INLINES_NONE && file) {
		const char *symbol = symtab_name(unit->source, vaddr);

		frames[0] = (struct symbol_frame){.file = file, .line = line};
		if (symbol && !name_frame(unit->source->names, symbol, &frames[0]))
			return -ENOMEM;
		count = symbol ? 1 : 0;
	}
	return count == 0 || store(unit->source, frames, count, result) ? 0 : -ENOMEM;
}

/* The DIE that has the unit's functions: the unit itself, or its split unit in a .dwo file. */
static Dwarf_Die *functions_of(struct symsource *source, Dwarf_Die *unit, Dwarf_Die *split)
{
	if (!unit_is_split(unit))
		return unit;
	if (!split_files_find(unit, split)) {
		source->facts.split = true;
		return unit;
	}
	source->facts.has_inlines = true;
	return split;
}

static int resolve_unit(struct symsource *source, Dwarf_Off offset, const uint64_t *vaddrs,
    const size_t *places, size_t n, struct symbol_result *results)
{
	struct unit unit = {.source = source};
	Dwarf_Die die, split, *functions;
	int error;

	if (source->dwarf_lines > DWARF_LINES_MAX && !open_dwarf(source))
		return -ENOMEM;
	if (!dwarf_offdie(source->dwarf, offset, &die))
		return 0;
	unit_lines_init(&unit.lines, &die, source->names);
	functions = functions_of(source, &die, &split);
	scopes_init(&unit.scopes, functions);
	source->dwarf_lines += unit.lines.line_count;
	error = inlines_init(&unit.inlines, functions, vaddrs, n);
	unit.named = error ? NULL : calloc(unit.inlines.node_count + 1, sizeof(*unit.named));
	if (!unit.named)
		error = -ENOMEM;
	for (size_t i = 0; i < n && !error; i++)
		error = resolve_chain(&unit, unit.inlines.innermost[i], vaddrs[i], &results[places[i]]);
	free(unit.named);
	inlines_fini(&unit.inlines);
	return error;
}

struct member {
	Dwarf_Off unit;
	size_t place; /* index into vaddrs */
};

static int by_unit(const void *left, const void *right)
{
	const struct member *a = left, *b = right;

	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

struct batch {
	Dwarf_Off *units;
	struct member *members;
	uint64_t *vaddrs; /* of one unit */
	size_t *places;
};

static int resolve_units(struct symsource *source, struct batch *batch, const uint64_t *vaddrs, size_t n,
    struct symbol_result *results)
{
	struct unit_facts facts;
	Dwarf_Die die, split;
	bool any = false;
	int error = units_assign(source->dwarf, &source->extents, vaddrs, n, batch->units, &facts);

	if (error || !facts.any)
		return error;
	source->facts.source = SYMBOL_DWARF;
	source->facts.has_inlines = facts.any_inlines;
	source->facts.has_lines = facts.any_lines;
	for (size_t i = 0; i < n; i++)
		batch->members[i] = (struct member){batch->units[i], i};
	qsort(batch->members, n, sizeof(*batch->members), by_unit);
	for (size_t i = 0, count; i < n && !error; i += count) {
		Dwarf_Off unit = batch->members[i].unit;

		for (count = 0; i + count < n && batch->members[i + count].unit == unit; count++) {
			batch->places[count] = batch->members[i + count].place;
			batch->vaddrs[count] = vaddrs[batch->places[count]];
		}
		any |= unit != 0;
		if (unit != 0)
			error = resolve_unit(source, unit, batch->vaddrs, batch->places, count, results);
	}
	/* No address is in a unit: facts.split is set all the same. */
	if (!error && !any && facts.split && dwarf_offdie(source->dwarf, facts.split, &die))
		(void)functions_of(source, &die, &split);
	return error;
}

static int resolve_dwarf(
    struct symsource *source, const uint64_t *vaddrs, size_t n, struct symbol_result *results)
{
	struct batch batch = {calloc(n, sizeof(*batch.units)), calloc(n, sizeof(*batch.members)),
	    calloc(n, sizeof(*batch.vaddrs)), calloc(n, sizeof(*batch.places))};
	int error = -ENOMEM;

	if (batch.units && batch.members && batch.vaddrs && batch.places)
		error = resolve_units(source, &batch, vaddrs, n, results);
	free(batch.units);
	free(batch.members);
	free(batch.vaddrs);
	free(batch.places);
	return error;
}

int symsource_resolve(
    struct symsource *source, const uint64_t *vaddrs, size_t n, struct symbol_result *results)
{
	int error = load_symtab(source, vaddrs, n);

	memset(results, 0, n * sizeof(*results));
	if (!error && n > 0 && source->options->detail == SYMBOL_FULL && open_dwarf(source))
		error = resolve_dwarf(source, vaddrs, n, results);
	for (size_t i = 0; i < n && !error; i++) {
		const char *symbol = results[i].frame_count == 0 ? symtab_name(source, vaddrs[i]) : NULL;
		struct symbol_frame frame = {0};

		if (symbol &&
		    (!name_frame(source->names, symbol, &frame) || !store(source, &frame, 1, &results[i])))
			error = -ENOMEM;
	}
	return error;
}
