/* SPDX-License-Identifier: Apache-2.0 */
/* A range of an address space as it is announced, and the file that was announced with it. */
#ifndef SAMPLER_UNWIND_MAP_FILE_H
#define SAMPLER_UNWIND_MAP_FILE_H

#include "sampler/unwind/module_file.h"

#include <stdbool.h>
#include <stdint.h>

/* One range as an MMAP2 record or a line of /proc/PID/maps announces it. */
struct map_range {
	uint64_t start, len; /* bytes */
	uint64_t pgoff;      /* bytes */
	uint32_t prot;       /* PROT_* */
	/* "", "//anon", "[vdso]", "/usr/bin/x", "/usr/bin/x (deleted)"; "./x" if it is listed; NULL is "" */
	const char *path;
	const uint8_t *build_id;
	uint8_t build_id_len;  /* 0: unknown */
	uint32_t major, minor; /* of the device; 0:0 if unknown */
	uint64_t ino;          /* 0 if unknown */
	bool listed;           /* a file by the target's own word (struct module_request) */
};

/* Shared by the pieces into which the range is split, and by forked copies. For maps.c alone. */
struct map_file {
	unsigned references;
	uint64_t start, end; /* as announced: the name in /proc/PID/map_files */
	uint64_t pgoff;
	uint64_t dev, ino;
	bool listed;
	uint8_t build_id_len;
	uint8_t build_id[MODULE_BUILD_ID_BYTES];
	uint32_t path_bytes;
	char path[];
};

/* Made with one reference, the caller's. NULL if out of memory. */
struct map_file *map_file_new(const struct map_range *range, const char *path);
void map_file_unref(struct map_file *file);

#endif
