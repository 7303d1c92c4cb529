/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/redirect.h"

#include "preload/lookup.h"
#include "preload/memory.h"
#include "preload/relocations.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static uintptr_t page_down(uintptr_t address)
{
	return address & ~(uintptr_t)(getauxval(AT_PAGESZ) - 1);
}

/* ---- finding */

struct finding {
	struct redirect *functions;
	size_t count;
	bool after_us;
};

/* If the program itself has them (an allocator linked into it), its own calls cannot be redirected. Then
 * those of its libraries must not be either: what one allocates the other may free. */
static int find_in_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct finding *finding = argument;

	if (lookup_is_ours(info))
		finding->after_us = true;
	else if (lookup_symbol(info, finding->functions[0].name)) {
		for (size_t i = 0; finding->after_us && i < finding->count; i++) {
			const ElfW(Sym) *symbol = lookup_symbol(info, finding->functions[i].name);

			if (symbol && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
				finding->functions[i].from = info->dlpi_addr + symbol->st_value;
		}
		return 1;
	}
	return 0;
}

bool redirect_find(struct redirect *functions, size_t count)
{
	struct finding finding = {.functions = functions, .count = count};

	lookup_each(find_in_object, &finding);
	return functions[0].from != 0;
}

/* ---- writing */

/* One object after the other. */
struct patch {
	const struct redirect *functions;
	size_t count;
	uintptr_t low, high; /* all functions are in [low, high] */
	struct relocations object;
	uintptr_t sealed, sealed_to; /* what the loader has made read-only again; sealed_to 0: nothing */
	bool open, refused;
};

static int protection_of(const ElfW(Phdr) * segment)
{
	return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
	    (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

/* Full RELRO: the loader has made the GOT read-only. The whole range is opened at the first slot in it. */
static bool slot_open(struct patch *patch, uintptr_t slot)
{
	const ElfW(Phdr) *segment = relocations_segment(patch->object.info, slot);

	if (!segment || !(segment->p_flags & PF_W) || slot % sizeof(uintptr_t))
		return false;
	if (slot < patch->sealed || slot >= patch->sealed_to || patch->open)
		return true;
	patch->refused = patch->refused ||
	    !memory_protect((void *)patch->sealed, patch->sealed_to - patch->sealed, PROT_READ | PROT_WRITE);
	patch->open = !patch->refused;
	return patch->open;
}

static void slot_write(struct patch *patch, uintptr_t slot, uintptr_t value)
{
	if (slot_open(patch, slot))
		atomic_store_explicit((_Atomic uintptr_t *)slot, value, memory_order_release);
}

static const struct redirect *function_named(const struct patch *patch, const ElfW(Rela) * relocation)
{
	const char *name = relocations_name(&patch->object, relocation);

	for (size_t i = 0; i < patch->count; i++)
		if (patch->functions[i].from && strcmp(patch->functions[i].name, name) == 0)
			return &patch->functions[i];
	return NULL;
}

static void patch_slots(struct patch *patch, const struct relocation_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		const ElfW(Rela) *relocation = &table->first[i];

		if (!relocations_is_slot(relocation))
			continue;
		const uintptr_t *slot = relocations_slot(&patch->object, relocation);
		if (*slot < patch->low || *slot > patch->high)
			continue;
		const struct redirect *function = function_named(patch, relocation);
		if (function && function->to && function->from == *slot)
			slot_write(patch, (uintptr_t)slot, function->to);
	}
}

/* The library that has the functions: its own calls, as far as they are not bound yet, stay inside. */
static void bind_own_calls(struct patch *patch)
{
	for (size_t i = 0; i < patch->object.calls.count; i++) {
		const ElfW(Rela) *relocation = &patch->object.calls.first[i];
		const uintptr_t *slot = relocations_slot(&patch->object, relocation);
		const struct redirect *function =
		    relocations_is_slot(relocation) ? function_named(patch, relocation) : NULL;

		/* Unbound, a slot leads back into the object's own table of calls. */
		if (function && *slot != function->from && relocations_segment(patch->object.info, *slot))
			slot_write(patch, (uintptr_t)slot, function->from);
	}
}

static void patch_definitions(const struct patch *patch)
{
	const ElfW(Sym) *low = NULL, *high = NULL;

	for (size_t i = 0; i < patch->count; i++) {
		const struct redirect *function = &patch->functions[i];
		const ElfW(Sym) *symbol =
		    function->from && function->to ? lookup_symbol(patch->object.info, function->name) : NULL;

		low = symbol && (!low || symbol < low) ? symbol : low;
		high = symbol && (!high || symbol > high) ? symbol : high;
	}
	const ElfW(Phdr) *segment = low ? relocations_segment(patch->object.info, (uintptr_t)low) : NULL;
	if (!segment || segment != relocations_segment(patch->object.info, (uintptr_t)high))
		return;
	uintptr_t start = page_down((uintptr_t)low), end = (uintptr_t)(high + 1);
	if (!memory_protect((void *)start, end - start, protection_of(segment) | PROT_WRITE))
		return;
	for (size_t i = 0; i < patch->count; i++) {
		const struct redirect *function = &patch->functions[i];
		const ElfW(Sym) *symbol =
		    function->from && function->to ? lookup_symbol(patch->object.info, function->name) : NULL;

		if (symbol)
			((ElfW(Sym) *)(uintptr_t)symbol)->st_value =
			    function->to - patch->object.info->dlpi_addr;
	}
	memory_protect((void *)start, end - start, protection_of(segment));
}

static bool read_object(struct patch *patch, const struct dl_phdr_info *info)
{
	*patch = (struct patch){
	    .functions = patch->functions, .count = patch->count, .low = patch->low, .high = patch->high};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
			patch->sealed = page_down(start);
			patch->sealed_to = page_down(start + info->dlpi_phdr[i].p_memsz);
		}
	}
	return relocations_read(&patch->object, info);
}

static int patch_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct patch *patch = argument;

	if (lookup_is_ours(info) || info->dlpi_addr == getauxval(AT_SYSINFO_EHDR) ||
	    !read_object(patch, info))
		return 0;
	if (lookup_contains(info, (const void *)patch->functions[0].from)) {
		bind_own_calls(patch);
		patch_definitions(patch);
	} else {
		patch_slots(patch, &patch->object.data);
		patch_slots(patch, &patch->object.calls);
	}
	if (patch->open)
		memory_protect((void *)patch->sealed, patch->sealed_to - patch->sealed, PROT_READ);
	return 0;
}

void redirect_apply(const struct redirect *functions, size_t count)
{
	struct patch patch = {.functions = functions, .count = count, .low = UINTPTR_MAX};

	for (size_t i = 0; i < count; i++) {
		uintptr_t from = functions[i].from;

		patch.low = from && from < patch.low ? from : patch.low;
		patch.high = from > patch.high ? from : patch.high;
	}
	/* Before: the caller's own table, through which the functions of ours call on. */
	atomic_thread_fence(memory_order_seq_cst);
	lookup_each(patch_object, &patch);
}
