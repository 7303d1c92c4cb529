/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the file a process has mapped, and reading of its headers what identifies and places it.
 *
 * Nothing here trusts the path: the process may have replaced it by a fifo, a device or another file. A name
 * is first opened as a mere location (O_PATH), which never blocks and has no side effect, and read only if it
 * is a regular file.
 */
#ifndef SAMPLER_UNWIND_MODULE_FILE_H
#define SAMPLER_UNWIND_MODULE_FILE_H

#include "sampler/unwind/module.h"

#include <sys/stat.h>

struct module_file {
	int fd;
	struct stat st;
	uint16_t e_machine, e_type;
	uint8_t build_id_len;
	uint8_t build_id[MODULE_BUILD_ID_BYTES];
	uint32_t n_segments;
	struct module_segment *segments;
	char *open_path;
};

/*
 * Opens what REQUEST describes. 0: the caller closes FILE. -ESTALE: only other files were found; -ENOEXEC: no
 * 64-bit little-endian ELF file of an architecture we know; -EMFILE, -ENFILE, -ENOENT, ...
 */
int module_file_open(const struct module_request *request, struct module_file *file);
void module_file_close(struct module_file *file);

/* Opens a module's file again: a descriptor, -ESTALE if another file is there, or -errno. */
int module_file_reopen(const struct module *module);

/* Is ST the file the module was made from, unchanged? */
bool module_file_same(const struct module *module, const struct stat *st);

int64_t module_file_mtime_ns(const struct stat *st);

/* A copy of PATH without the kernel's " (deleted)"; NULL: out of memory. */
char *module_file_path(const char *path);

/* The vdso's image in our own address space and its description in FILE; NULL if there is none. */
const void *module_file_vdso(struct module_file *file);

#endif
