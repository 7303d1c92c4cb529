/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/module_list.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

struct module_list {
	unsigned char *at, *end;
};

/* Whether [start, start + bytes) lies in a mapped segment, in the part that is from the file: a note's header
 * may give any address. */
static bool is_mapped(const struct dl_phdr_info *info, uint64_t start, uint64_t bytes)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_R && start >= segment->p_vaddr &&
		    start - segment->p_vaddr <= segment->p_filesz &&
		    bytes <= segment->p_filesz - (start - segment->p_vaddr))
			return true;
	}
	return false;
}

/* Length of the build id found in these notes; 0: there is none. */
static uint32_t read_build_id(const unsigned char *note, size_t left, uint8_t id[REGION_BUILD_ID_MAX])
{
	while (left >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *head = (const void *)note;
		size_t name = ((size_t)head->n_namesz + 3) & ~(size_t)3;
		size_t desc = ((size_t)head->n_descsz + 3) & ~(size_t)3;
		size_t all = sizeof(*head) + name + desc;
		if (all > left)
			break;
		if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 &&
		    memcmp(note + sizeof(*head), "GNU", 4) == 0 && head->n_descsz <= REGION_BUILD_ID_MAX) {
			memcpy(id, note + sizeof(*head) + name, head->n_descsz);
			return head->n_descsz;
		}
		note += all;
		left -= all;
	}
	return 0;
}

static uint32_t find_build_id(const struct dl_phdr_info *info, uint8_t id[REGION_BUILD_ID_MAX])
{
	uint32_t bytes = 0;
	for (int i = 0; i < info->dlpi_phnum && !bytes; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_NOTE && is_mapped(info, segment->p_vaddr, segment->p_memsz))
			bytes = read_build_id((const unsigned char *)(info->dlpi_addr + segment->p_vaddr),
			    segment->p_memsz, id);
	}
	return bytes;
}

static int list_module(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct module_list *list = argument;
	struct region_module module = {0};
	module.build_id_bytes = find_build_id(info, module.build_id);
	const char *path = info->dlpi_name ? info->dlpi_name : "";
	if (!*path && getauxval(AT_EXECFN)) /* the program itself: the path that was given to execve */
		path = (const char *)getauxval(AT_EXECFN);
	module.path_bytes = (uint32_t)strnlen(path, REGION_PATH_BYTES - 1) + 1;
	module.total_bytes = (uint32_t)((sizeof(module) + module.path_bytes + 7) & ~(size_t)7);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		if (list->at + module.total_bytes > list->end)
			return 1;
		uint64_t page = REGION_PAGE_BYTES - 1;
		module.start = (info->dlpi_addr + segment->p_vaddr) & ~page;
		module.end = (info->dlpi_addr + segment->p_vaddr + segment->p_filesz + page) & ~page;
		module.file_offset = segment->p_offset & ~page;
		memcpy(list->at, &module, sizeof(module));
		memcpy(list->at + sizeof(module), path, module.path_bytes - 1);
		list->at[sizeof(module) + module.path_bytes - 1] = '\0';
		list->at += module.total_bytes;
	}
	return 0;
}

void module_list_write(unsigned char *area)
{
	struct module_list list = {area, area + REGION_MODULES_BYTES};
	dl_iterate_phdr(list_module, &list);
}
