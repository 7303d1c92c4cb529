/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/module_list.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char own_file[] = "/proc/self/exe";

struct module_list {
	unsigned char *at, *end;
	bool may_ask; /* the kernel, about files */
	bool begun;   /* the program is listed */
	struct region_module *own;
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

bool module_list_code(const struct dl_phdr_info *info, const ElfW(Phdr) * segment, struct region_range *range)
{
	const uint64_t page = REGION_PAGE_BYTES - 1;

	if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
		return false;
	range->start = (info->dlpi_addr + segment->p_vaddr) & ~page;
	range->end = (info->dlpi_addr + segment->p_vaddr + segment->p_filesz + page) & ~page;
	return true;
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

uint32_t module_list_build_id(const struct dl_phdr_info *info, uint8_t id[REGION_BUILD_ID_MAX])
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

/* False: there is no room. */
static bool append(struct module_list *list, struct region_module *module, const char *path)
{
	module->path_bytes = (uint32_t)strnlen(path, REGION_PATH_BYTES - 1) + 1;
	module->total_bytes = (uint32_t)((sizeof(*module) + module->path_bytes + 7) & ~(size_t)7);
	if (list->at + module->total_bytes > list->end)
		return false;
	memcpy(list->at, module, sizeof(*module));
	memcpy(list->at + sizeof(*module), path, module->path_bytes - 1);
	list->at[sizeof(*module) + module->path_bytes - 1] = '\0';
	list->at += module->total_bytes;
	return true;
}

static void identify(struct region_module *module, const char *path)
{
	struct stat status;

	/* the kernel's own call: the libc's wrapper has another name before glibc 2.33 */
	if (syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0) {
		module->dev = status.st_dev;
		module->ino = status.st_ino;
	}
}

/* Where the program's file is. The path by which it was executed may mean another file to others:
 * "/proc/self/exe", "/dev/fd/9", "./x". False: not known; with `ld.so PROGRAM` the kernel knows ld.so, and
 * there is no interpreter's base. */
static bool find_own_file(const struct module_list *list, char path[REGION_PATH_BYTES])
{
	if (!list->may_ask || !getauxval(AT_BASE))
		return false;
	const long length = syscall(SYS_readlinkat, AT_FDCWD, own_file, path, (size_t)REGION_PATH_BYTES);
	if (length <= 0 || length >= REGION_PATH_BYTES)
		return false;
	path[length] = '\0';
	return true;
}

static bool append_code(
    struct module_list *list, const struct dl_phdr_info *info, struct region_module *module, const char *path)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		struct region_range range;

		if (!module_list_code(info, segment, &range))
			continue;
		module->start = range.start;
		module->end = range.end;
		module->file_offset = segment->p_offset & ~(uint64_t)(REGION_PAGE_BYTES - 1);
		if (!append(list, module, path))
			return false;
	}
	return true;
}

/* Which file the program is only the kernel can say: the path by which it was executed may lead elsewhere. */
static bool list_program(struct module_list *list, const struct dl_phdr_info *info, const char *called)
{
	char own[REGION_PATH_BYTES];
	struct region_module nothing = {0}, module = {0};
	const bool found = find_own_file(list, own);

	if (found && strcmp(own, called) != 0 && !append(list, &nothing, called))
		return false;
	if (found)
		identify(&module, own_file);
	module.build_id_bytes = module_list_build_id(info, module.build_id);
	return append_code(list, info, &module, found ? own : called);
}

static bool is_own(const struct dl_phdr_info *info)
{
	const uintptr_t here = (uintptr_t)is_own;
	struct region_range range;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (module_list_code(info, &info->dlpi_phdr[i], &range) && here >= range.start &&
		    here < range.end)
			return true;
	return false;
}

static int list_module(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct module_list *list = argument;
	const char *path = info->dlpi_name ? info->dlpi_name : "";

	if (!list->begun) {
		list->begun = true;
		if (!*path && getauxval(AT_EXECFN))
			path = (const char *)getauxval(AT_EXECFN);
		return !list_program(list, info, path);
	}
	struct region_module module = {0};
	module.build_id_bytes = module_list_build_id(info, module.build_id);
	const bool own = is_own(info);
	if ((own || !module.build_id_bytes) && list->may_ask)
		identify(&module, path);
	if (own)
		*list->own = module;
	return !append_code(list, info, &module, path);
}

void module_list_write(unsigned char *area, bool may_ask, struct region_module *own)
{
	struct module_list list = {
	    .at = area, .end = area + REGION_MODULES_BYTES, .may_ask = may_ask, .own = own};

	dl_iterate_phdr(list_module, &list);
}
