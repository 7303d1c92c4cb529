/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/import.h"

#include "preload/loader_lock.h"
#include "preload/lookup.h"
#include "preload/memory.h"
#include "preload/relocations.h"
#include "proto/region.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/futex.h>

enum { UNBOUND_BYTES = 256 << 10 };

/* A slot that was not bound yet, and led to its object's own stub: what to store when the hook is taken
 * out. If an object that is bound is at the same address later, the function itself. */
struct unbound {
	uintptr_t *slot;
	uintptr_t stub;
};

static struct unbound *unbound;
static size_t unbound_count;
static _Atomic uint32_t turned;
static unsigned long long objects_added; /* the loader's count, at the last look */
static char unseen[REGION_PATH_BYTES];

struct turn {
	const struct import *imports;
	size_t count;
	bool back;
	bool begun;
	struct dl_phdr_info program; /* the first object */
};

/* Whether the slot holds the address of a stub of its own object: of the procedure linkage table, which binds
 * it at the first call. */
static bool is_unbound(const struct relocations *object, const ElfW(Sym) * symbol, uintptr_t value)
{
	bool own = symbol->st_shndx != SHN_UNDEF && value == object->info->dlpi_addr + symbol->st_value;

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
static bool is_data(const struct relocations *object, const ElfW(Rela) * relocation)
{
	const ElfW(Phdr) *segment =
	    relocations_segment(object->info, (uintptr_t)relocations_slot(object, relocation));

	return segment && (segment->p_flags & (PF_W | PF_X)) == PF_W;
}

enum writable { WRITABLE_YES, WRITABLE_NO, WRITABLE_UNKNOWN };

/* The kernel combines the word with zero by an atomic "or", as it does with other words for the C library's
 * locks; and then wakes those who wait for `nobody` or for the word: no one. */
static enum writable ask(uintptr_t *word)
{
	static uint32_t nobody;
	const long operation = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0);

	if (syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0L, word, operation) >= 0)
		return WRITABLE_YES;
	return errno == EFAULT ? WRITABLE_NO : WRITABLE_UNKNOWN;
}

/* Stores a word of a readable page of the program's data. A page that is read-only (RELRO) is made writable
 * for the moment. The kernel is asked about the word, and not /proc/self/maps: a process in a root of its own
 * may have no /proc. False: not stored, the kernel refused. */
static bool store(uintptr_t *word, uintptr_t value)
{
	void *page = (void *)((uintptr_t)word & ~(uintptr_t)(REGION_PAGE_BYTES - 1));
	enum writable writable = (uintptr_t)word % sizeof(*word) ? WRITABLE_UNKNOWN : ask(word);

	if (writable == WRITABLE_UNKNOWN)
		return false;
	if (writable == WRITABLE_NO && !memory_protect(page, REGION_PAGE_BYTES, PROT_READ | PROT_WRITE))
		return false;
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	if (writable == WRITABLE_NO)
		memory_protect(page, REGION_PAGE_BYTES, PROT_READ);
	return true;
}

typedef bool visit_slot(const struct relocations *object, const struct turn *turn,
    const struct import *import, const ElfW(Rela) * relocation);

/* Calls `visit` for each slot of a function that has a hook, until it returns false. */
static bool each_slot(const struct relocations *object, const struct turn *turn, visit_slot *visit)
{
	const struct relocation_table *tables[] = {&object->data, &object->calls};

	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < tables[t]->count; i++) {
			const ElfW(Rela) *relocation = &tables[t]->first[i];

			if (!relocations_is_slot(relocation))
				continue;
			const struct import *import = find_import(turn, relocations_name(object, relocation));
			if (import && is_data(object, relocation) && !visit(object, turn, import, relocation))
				return false;
		}
	return true;
}

/* False: it is bound to another allocator. An address inside the program itself is that of the program's
 * stub, which stands for the function everywhere (in a program that is not position-independent). */
static bool is_common(const struct relocations *object, const struct turn *turn, const struct import *import,
    const ElfW(Rela) * relocation)
{
	uintptr_t value = __atomic_load_n(relocations_slot(object, relocation), __ATOMIC_ACQUIRE);
	const ElfW(Sym) *symbol = relocations_symbol(object, relocation);

	if (!import->allocates || value == import->real || value == import->hook || value == 0)
		return true;
	if (is_unbound(object, symbol, value))
		return !(object->symbolic && symbol->st_shndx != SHN_UNDEF);
	return lookup_contains(&turn->program, (const void *)value);
}

/* What was remembered of a slot at that address is void: another object may be there since. */
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

static bool turn_slot(const struct relocations *object, const struct turn *turn, const struct import *import,
    const ElfW(Rela) * relocation)
{
	uintptr_t *slot = relocations_slot(object, relocation);
	uintptr_t value = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	bool call = relocations_is_call(relocation);
	const ElfW(Sym) *symbol = relocations_symbol(object, relocation);

	if (value == import->hook)
		return true;
	if (value == import->real)
		(void)is_new_slot(slot, value);
	else if (!call || !is_unbound(object, symbol, value) || !remember(slot, value))
		return true;
	if (store(slot, import->hook))
		atomic_fetch_add(&turned, 1);
	else
		note_unseen(object->info->dlpi_name);
	return true;
}

static bool turn_slot_back(const struct relocations *object, const struct turn *turn,
    const struct import *import, const ElfW(Rela) * relocation)
{
	uintptr_t *slot = relocations_slot(object, relocation), value = import->real;

	if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) != import->hook)
		return true;
	for (size_t i = 0; i < unbound_count; i++)
		if (unbound[i].slot == slot)
			value = unbound[i].stub;
	if (store(slot, value))
		atomic_fetch_sub(&turned, 1);
	return true;
}

static bool is_not_malloc(const struct relocations *object, const struct turn *turn,
    const struct import *import, const ElfW(Rela) * relocation)
{
	return strcmp(import->name, "malloc") != 0;
}

/* Its calls of its own malloc go by no slot: the program's, which is everybody's; and that of a library which
 * binds to itself (-Bsymbolic). A library whose malloc is everybody's is an allocator, and calls its own. */
static bool calls_itself(const struct relocations *object, const struct turn *turn)
{
	const struct import *import = find_import(turn, "malloc");
	bool everybodys = import && lookup_contains(object->info, (const void *)import->real);

	if (!import || (everybodys && object->info->dlpi_name[0]))
		return false;
	return everybodys ||
	    (lookup_symbol(object->info, "malloc") && each_slot(object, turn, is_not_malloc));
}

static int turn_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct turn *turn = argument;
	struct relocations object;

	if (!turn->begun)
		turn->program = *info;
	turn->begun = true;
	objects_added = info->dlpi_adds;
	if (lookup_is_ours(info) || info->dlpi_addr == getauxval(AT_SYSINFO_EHDR) ||
	    info->dlpi_addr == getauxval(AT_BASE) || !relocations_read(&object, info))
		return 0;
	if (turn->back)
		each_slot(&object, turn, turn_slot_back);
	else if (!each_slot(&object, turn, is_common))
		note_unseen(info->dlpi_name);
	else
		each_slot(&object, turn, turn_slot);
	if (!turn->back && calls_itself(&object, turn))
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
