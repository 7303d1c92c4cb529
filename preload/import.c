/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/import.h"

#include "preload/loader_lock.h"
#include "preload/lookup.h"
#include "preload/memory.h"
#include "preload/protection.h"
#include "proto/region.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#define SLOT_CALL R_X86_64_JUMP_SLOT
#define SLOT_DATA R_X86_64_GLOB_DAT
#define SLOT_WORD R_X86_64_64
#else
#define SLOT_CALL R_AARCH64_JUMP_SLOT
#define SLOT_DATA R_AARCH64_GLOB_DAT
#define SLOT_WORD R_AARCH64_ABS64
#endif

enum { UNBOUND_BYTES = 256 << 10 };

/* A slot that was not bound yet, and led to its object's own stub: what to store when the hook is taken
 * out. */
struct unbound {
	uintptr_t *slot;
	uintptr_t stub;
};

static struct unbound *unbound;
static size_t unbound_count;
static _Atomic uint32_t turned;
static unsigned long long objects_added; /* the loader's count, at the last look */
static char unseen[REGION_PATH_BYTES];

/* One object, as its dynamic section describes it. */
struct object {
	const struct dl_phdr_info *info;
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *strings;
	struct {
		const ElfW(Rela) * first;
		size_t bytes;
	} tables[2]; /* what is bound at the start, and calls */
	bool symbolic;
};

struct turn {
	const struct import *imports;
	size_t count;
	bool back;
	bool begun;
	struct dl_phdr_info program; /* the first object */
};

static uintptr_t address_of(uintptr_t base, uintptr_t value)
{
	return value < base ? base + value : value;
}

static bool object_read(struct object *object, const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *dynamic = NULL;
	*object = (struct object){.info = info, .base = info->dlpi_addr};
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		uintptr_t value = dynamic->d_un.d_val, address = address_of(object->base, value);
		if (dynamic->d_tag == DT_SYMTAB)
			object->symbols = (const void *)address;
		else if (dynamic->d_tag == DT_STRTAB)
			object->strings = (const void *)address;
		else if (dynamic->d_tag == DT_RELA)
			object->tables[0].first = (const void *)address;
		else if (dynamic->d_tag == DT_RELASZ)
			object->tables[0].bytes = value;
		else if (dynamic->d_tag == DT_JMPREL)
			object->tables[1].first = (const void *)address;
		else if (dynamic->d_tag == DT_PLTRELSZ)
			object->tables[1].bytes = value;
		else if (dynamic->d_tag == DT_PLTREL && value != DT_RELA)
			return false;
		else if (dynamic->d_tag == DT_SYMBOLIC || (dynamic->d_tag == DT_FLAGS && value & DF_SYMBOLIC))
			object->symbolic = true;
	}
	return object->symbols && object->strings;
}

/* Whether the slot holds the address of a stub of its own object: of the procedure linkage table, which binds
 * it at the first call. */
static bool is_unbound(const struct object *object, const ElfW(Sym) * symbol, uintptr_t value)
{
	bool own = symbol->st_shndx != SHN_UNDEF && value == object->base + symbol->st_value;
	return !own && lookup_contains(object->info, (const void *)value);
}

static const struct import *find_import(const struct turn *turn, const char *name)
{
	for (size_t i = 0; i < turn->count; i++)
		if (turn->imports[i].real && strcmp(turn->imports[i].name, name) == 0)
			return &turn->imports[i];
	return NULL;
}

/* In a segment of data: text relocations are left alone. */
static bool is_data(const struct object *object, const ElfW(Rela) * relocation)
{
	for (int i = 0; i < object->info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->info->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD && relocation->r_offset >= segment->p_vaddr &&
		    relocation->r_offset - segment->p_vaddr < segment->p_memsz)
			return (segment->p_flags & (PF_W | PF_X)) == PF_W;
	}
	return false;
}

/* Calls `visit` for each slot of a function that has a hook, until it returns false. */
static bool each_slot(const struct object *object, const struct turn *turn,
    bool (*visit)(const struct object *object, const struct turn *turn, const struct import *import,
        const ElfW(Rela) * relocation))
{
	for (size_t t = 0; t < 2; t++) {
		const ElfW(Rela) *first = object->tables[t].first;
		size_t count = first ? object->tables[t].bytes / sizeof(*first) : 0;
		for (size_t i = 0; i < count; i++) {
			uint32_t type = (uint32_t)ELF64_R_TYPE(first[i].r_info);
			if ((type != SLOT_CALL && type != SLOT_DATA && type != SLOT_WORD) ||
			    first[i].r_addend != 0)
				continue;
			const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(first[i].r_info)];
			const struct import *import = find_import(turn, object->strings + symbol->st_name);
			if (import && is_data(object, &first[i]) && !visit(object, turn, import, &first[i]))
				return false;
		}
	}
	return true;
}

static uintptr_t *slot_of(const struct object *object, const ElfW(Rela) * relocation)
{
	return (uintptr_t *)(object->base + relocation->r_offset);
}

/* False: it is bound to another allocator. An address inside the program itself is that of the program's
 * stub, which stands for the function everywhere (in a program that is not position-independent). */
static bool is_common(const struct object *object, const struct turn *turn, const struct import *import,
    const ElfW(Rela) * relocation)
{
	uintptr_t value = __atomic_load_n(slot_of(object, relocation), __ATOMIC_ACQUIRE);
	const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
	if (!import->allocates || value == import->real || value == import->hook || value == 0)
		return true;
	if (is_unbound(object, symbol, value))
		return !(object->symbolic && symbol->st_shndx != SHN_UNDEF);
	return lookup_contains(&turn->program, (const void *)value);
}

static bool is_new_slot(uintptr_t *slot, uintptr_t stub)
{
	for (size_t i = 0; i < unbound_count; i++)
		if (unbound[i].slot == slot) {
			unbound[i].stub = stub;
			return false;
		}
	return true;
}

/* False: there is no room to remember it. */
static bool remember(uintptr_t *slot, uintptr_t stub)
{
	if (!unbound)
		unbound = memory_map(UNBOUND_BYTES, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (!unbound || !is_new_slot(slot, stub))
		return unbound != NULL;
	if (unbound_count == UNBOUND_BYTES / sizeof(*unbound))
		return false;
	unbound[unbound_count++] = (struct unbound){slot, stub};
	return true;
}

static void note_unseen(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = strlen(unseen), more = strlen(name = *name ? name : "the program itself");
	const char *before = strstr(unseen, name);
	if (length + more + 3 > sizeof(unseen) || (before && strchr(", ", before[more])))
		return;
	if (length)
		memcpy(unseen + length, ", ", 3), length += 2;
	memcpy(unseen + length, name, more + 1);
}

static bool turn_slot(const struct object *object, const struct turn *turn, const struct import *import,
    const ElfW(Rela) * relocation)
{
	uintptr_t *slot = slot_of(object, relocation);
	uintptr_t value = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	bool call = ELF64_R_TYPE(relocation->r_info) == SLOT_CALL;
	const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
	if (value == import->hook)
		return true;
	if (value != import->real && (!call || !is_unbound(object, symbol, value) || !remember(slot, value)))
		return true;
	if (protection_store(slot, import->hook))
		atomic_fetch_add(&turned, 1);
	else
		note_unseen(object->info->dlpi_name);
	return true;
}

static bool turn_slot_back(const struct object *object, const struct turn *turn, const struct import *import,
    const ElfW(Rela) * relocation)
{
	uintptr_t *slot = slot_of(object, relocation), value = import->real;
	if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) != import->hook)
		return true;
	for (size_t i = 0; i < unbound_count; i++)
		if (unbound[i].slot == slot)
			value = unbound[i].stub;
	if (protection_store(slot, value))
		atomic_fetch_sub(&turned, 1);
	return true;
}

/* The program's own malloc is everybody's, but its calls of it go by no slot. */
static bool defines_malloc(const struct object *object, const struct turn *turn)
{
	const struct import *import = find_import(turn, "malloc");
	return import && !object->info->dlpi_name[0] &&
	    lookup_contains(object->info, (const void *)import->real);
}

static int turn_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct turn *turn = argument;
	struct object object;
	if (!turn->begun)
		turn->program = *info;
	turn->begun = true;
	objects_added = info->dlpi_adds;
	if (lookup_is_ours(info) || info->dlpi_addr == getauxval(AT_SYSINFO_EHDR) ||
	    info->dlpi_addr == getauxval(AT_BASE) || !object_read(&object, info))
		return 0;
	if (turn->back)
		each_slot(&object, turn, turn_slot_back);
	else if (!each_slot(&object, turn, is_common))
		note_unseen(info->dlpi_name);
	else
		each_slot(&object, turn, turn_slot);
	if (!turn->back && defines_malloc(&object, turn))
		note_unseen(info->dlpi_name);
	return 0;
}

static void turn_all(const struct import *imports, size_t count, bool back)
{
	struct turn turn = {.imports = imports, .count = count, .back = back};
	if (!loader_lock_take())
		return;
	lookup_each(turn_object, &turn);
	loader_lock_release();
}

void import_turn(const struct import *imports, size_t count)
{
	unseen[0] = '\0';
	turn_all(imports, count, false);
}

void import_turn_back(const struct import *imports, size_t count)
{
	turn_all(imports, count, true);
	unbound_count = 0;
}

static int read_added(struct dl_phdr_info *info, size_t size, void *argument)
{
	*(unsigned long long *)argument = info->dlpi_adds;
	return 1;
}

bool import_turn_new(const struct import *imports, size_t count)
{
	unsigned long long added = objects_added;
	lookup_each(read_added, &added);
	if (added == objects_added)
		return false;
	turn_all(imports, count, false);
	return true;
}

uint32_t import_count(void)
{
	return atomic_load(&turned);
}

const char *import_unseen(void)
{
	return unseen;
}
