/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/relocations.h"

#include <elf.h>

#if defined(__x86_64__)
enum { CALL = R_X86_64_JUMP_SLOT, DATA = R_X86_64_GLOB_DAT, WORD = R_X86_64_64 };
#elif defined(__aarch64__)
enum { CALL = R_AARCH64_JUMP_SLOT, DATA = R_AARCH64_GLOB_DAT, WORD = R_AARCH64_ABS64 };
#endif

bool relocations_is_slot(const ElfW(Rela) * relocation)
{
	uint64_t type = ELF64_R_TYPE(relocation->r_info);

	return (type == CALL || type == DATA || type == WORD) && relocation->r_addend == 0 &&
	    ELF64_R_SYM(relocation->r_info) != 0;
}

bool relocations_is_call(const ElfW(Rela) * relocation)
{
	return ELF64_R_TYPE(relocation->r_info) == CALL;
}

const ElfW(Sym) * relocations_symbol(const struct relocations *relocations, const ElfW(Rela) * relocation)
{
	return &relocations->symbols[ELF64_R_SYM(relocation->r_info)];
}

const char *relocations_name(const struct relocations *relocations, const ElfW(Rela) * relocation)
{
	return relocations->strings + relocations_symbol(relocations, relocation)->st_name;
}

uintptr_t *relocations_slot(const struct relocations *relocations, const ElfW(Rela) * relocation)
{
	return (uintptr_t *)(relocations->info->dlpi_addr + relocation->r_offset);
}

const ElfW(Phdr) * relocations_segment(const struct dl_phdr_info *info, uintptr_t address)
{
	uintptr_t at = address - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && at >= segment->p_vaddr &&
		    at - segment->p_vaddr < segment->p_memsz)
			return segment;
	}
	return NULL;
}

/* glibc relocates the addresses in the dynamic section, musl does not. */
static void read_entry(struct relocations *relocations, const ElfW(Dyn) * entry)
{
	uintptr_t value = entry->d_un.d_val, base = relocations->info->dlpi_addr;
	const void *address = (const void *)(value < base ? base + value : value);

	if (entry->d_tag == DT_SYMTAB)
		relocations->symbols = address;
	else if (entry->d_tag == DT_STRTAB)
		relocations->strings = address;
	else if (entry->d_tag == DT_RELA)
		relocations->data.first = address;
	else if (entry->d_tag == DT_RELASZ)
		relocations->data.count = value / sizeof(ElfW(Rela));
	else if (entry->d_tag == DT_JMPREL)
		relocations->calls.first = address;
	else if (entry->d_tag == DT_PLTRELSZ)
		relocations->calls.count = value / sizeof(ElfW(Rela));
	else if (entry->d_tag == DT_SYMBOLIC || (entry->d_tag == DT_FLAGS && value & DF_SYMBOLIC))
		relocations->symbolic = true;
}

bool relocations_read(struct relocations *relocations, const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *entry = NULL;

	*relocations = (struct relocations){.info = info};
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++)
		read_entry(relocations, entry);
	if (!relocations->data.first)
		relocations->data.count = 0;
	if (!relocations->calls.first)
		relocations->calls.count = 0;
	return relocations->symbols && relocations->strings;
}
