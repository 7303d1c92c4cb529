/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/malloc_binding.h"

#include "sampler/linux/regular_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { RELOCATIONS_MAX = 1 << 20 };

static bool is_slot(unsigned int machine, unsigned long type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	if (machine == EM_AARCH64)
		return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
	return false;
}

/* The name of a relocation's symbol, or NULL. */
static const char *symbol_name(Elf *elf, const GElf_Shdr *relocations, size_t index)
{
	Elf_Scn *section = elf_getscn(elf, relocations->sh_link);
	GElf_Shdr header;
	GElf_Sym symbol;
	Elf_Data *data;

	if (!section || !gelf_getshdr(section, &header))
		return NULL;
	data = elf_getdata(section, NULL);
	if (!data || !gelf_getsym(data, (int)index, &symbol))
		return NULL;
	return elf_strptr(elf, header.sh_link, symbol.st_name);
}

/* The ELF address of the slot into which the loader writes the symbol's address. */
static int slot_find(Elf *elf, const char *name, uint64_t *slot)
{
	Elf_Scn *section = NULL;
	GElf_Ehdr file;

	if (!gelf_getehdr(elf, &file))
		return -EINVAL;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA ||
		    !(header.sh_flags & SHF_ALLOC) || !header.sh_entsize)
			continue;
		data = elf_getdata(section, NULL);
		for (size_t i = 0; data && i < header.sh_size / header.sh_entsize && i < RELOCATIONS_MAX;
		     i++) {
			GElf_Rela relocation;
			const char *found;

			if (!gelf_getrela(data, (int)i, &relocation) ||
			    !is_slot(file.e_machine, GELF_R_TYPE(relocation.r_info)))
				continue;
			found = symbol_name(elf, &header, GELF_R_SYM(relocation.r_info));
			if (found && strcmp(found, name) == 0) {
				*slot = relocation.r_offset;
				return 0;
			}
		}
	}
	return -ENOENT;
}

/* The lowest ELF address of the file: 0 unless the program is not position independent. */
static uint64_t start_of(Elf *elf)
{
	uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	size_t count = 0;

	if (elf_getphdrnum(elf, &count))
		return 0;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD)
			return header.p_vaddr & ~page_mask;
	}
	return 0;
}

int malloc_binding_read(const char *file, uint64_t base, int memory_fd, const char *symbol, uint64_t *target)
{
	struct stat status;
	int fd = regular_file_open(AT_FDCWD, file, 0, &status), err = -EINVAL;
	uint64_t slot = 0;
	Elf *elf;

	if (fd < 0)
		return fd;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getclass(elf) == ELFCLASS64) {
		err = slot_find(elf, symbol, &slot);
		slot += base - start_of(elf);
	}
	elf_end(elf);
	close(fd);
	if (!err && pread(memory_fd, target, sizeof(*target), (off_t)slot) != sizeof(*target))
		err = -EIO;
	return err;
}
