/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/doctor/program_file.h"

#include "pprof/text/utf8.h"
#include "sampler/inject/allocator_names.h"
#include "sampler/linux/regular_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void look_at_dynamic(Elf_Scn *section, Elf *elf, const GElf_Shdr *header, struct program_file *file)
{
	Elf_Data *data = elf_getdata(section, NULL);

	for (size_t i = 0; data && header->sh_entsize && i < header->sh_size / header->sh_entsize; i++) {
		GElf_Dyn entry;
		const char *needed;

		if (!gelf_getdyn(data, (int)i, &entry))
			continue;
		needed = entry.d_tag == DT_NEEDED ? elf_strptr(elf, header->sh_link, entry.d_un.d_val) : NULL;
		if (needed && allocator_names_library(needed)) {
			snprintf(file->library, sizeof(file->library), "%s", needed);
			utf8_disarm(file->library, strlen(file->library));
		}
		file->shared_library = file->shared_library || entry.d_tag == DT_SONAME;
		file->symbolic = file->symbolic || entry.d_tag == DT_SYMBOLIC ||
		    (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_SYMBOLIC);
	}
}

static void look_at_sections(Elf *elf, struct program_file *file)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name =
		    gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (!name)
			continue;
		file->debug =
		    file->debug || strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0;
		file->debug_link = file->debug_link || strcmp(name, ".gnu_debuglink") == 0;
		file->unwind =
		    file->unwind || strcmp(name, ".eh_frame") == 0 || strcmp(name, ".debug_frame") == 0;
		if (header.sh_type == SHT_DYNAMIC)
			look_at_dynamic(section, elf, &header, file);
	}
}

static void look_at_segments(Elf *elf, uint64_t file_bytes, struct program_file *file)
{
	GElf_Ehdr header;
	size_t count;

	if (!gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &count))
		return;
	file->whole = true;
	file->object = header.e_type == ET_REL || header.e_type == ET_CORE;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_filesz > file_bytes ||
		    segment.p_offset > file_bytes - segment.p_filesz)
			file->whole = false;
		else if (segment.p_type == PT_INTERP)
			file->shared_library = false;
	}
}

int program_file_read(struct program_file *file, const char *path)
{
	struct stat status;
	const void *id;
	int fd = regular_file_open(AT_FDCWD, path, 0, &status);
	Elf *elf;

	memset(file, 0, sizeof(*file));
	if (fd < 0)
		return fd;
	(void)program_symbols_read_file(&file->inside, fd); /* on failure nothing is known of its symbols */
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		file->build_id = dwelf_elf_gnu_build_id(elf, &id) > 0;
		look_at_sections(elf, file);
		look_at_segments(elf, (uint64_t)status.st_size, file);
	}
	elf_end(elf);
	close(fd);
	return 0;
}
