/* SPDX-License-Identifier: Apache-2.0 */
/* One range of an address space: how it is announced, what it is, and the file whose code it has. */
#ifndef SAMPLER_UNWIND_MAP_H
#define SAMPLER_UNWIND_MAP_H

#include "sampler/unwind/module.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
	/* The mapping of a file in front of anonymous memory, if a mapping of the same file is behind: the
	 * memory may be a copy of the file's code on huge pages. NULL: none. */
	const struct map_range *around;
};

enum map_kind {
	MAP_KIND_FILE,
	/* anonymous, /dev/zero, and a memfd that is no ELF file: code made at run time; names may be in
	 * perf-PID.map */
	MAP_KIND_ANON,
	MAP_KIND_VDSO,
	MAP_KIND_STACK,   /* [stack], executable: trampolines */
	MAP_KIND_HEAP,    /* [heap], executable */
	MAP_KIND_UPROBES, /* [uprobes]: the kernel's out-of-line copies of probed instructions */
	MAP_KIND_SPECIAL, /* [vsyscall] and whatever else is in brackets */
	MAP_KIND_KERNEL,  /* never in maps: the kind of a frame on the kernel's side */
};

/* The upper half of the address space. */
#define MAP_KERNEL_START UINT64_C(0x8000000000000000)

/* The file with which a range was announced. Shared by the pieces into which the range is split, and by
 * forked copies. */
struct map_file {
	unsigned references;
	uint64_t start, end; /* as announced: the name in /proc/PID/map_files */
	uint64_t pgoff;
	uint64_t dev, ino;
	bool listed;
	bool copied;     /* the range is anonymous; the file is the one around it (struct map_range) */
	bool executable; /* the range with which the file was announced */
	uint8_t build_id_len;
	uint8_t build_id[MODULE_BUILD_ID_BYTES];
	uint32_t path_bytes;
	char path[];
};

struct trampolines;

/* Read-only outside map.c and maps.c; valid until the maps change. */
struct map {
	uint64_t start, end; /* end is one past the last byte */
	uint64_t pgoff;      /* file offset of start, bytes */
	uint32_t prot;       /* PROT_* */
	enum map_kind kind;
	bool opened;                     /* module and bias are known */
	struct module *module;           /* NULL for a kind without a file, and before maps_module() */
	uint64_t bias;                   /* address - bias = ELF vaddr, if has_bias */
	bool has_bias;                   /* false: no PT_LOAD of the file covers this range */
	struct map_file *file;           /* NULL: none, or the range turned out to be no file's */
	struct trampolines *trampolines; /* a reference; NULL until they are looked for */
};

/* The kind of a mapping with this path, before it is opened. Pure. */
enum map_kind maps_kind_of(const char *path);

/* Is it the path of a file in memory (memfd) that any program may have made? Pure. */
bool map_is_memory_file(const char *path);

/* The file the range was announced with, "" if none. */
const char *map_path(const struct map *map);

/* Made with one reference, the caller's. `path`: of the range, or of the file around it. NULL if out of
 * memory. */
struct map_file *map_file_new(const struct map_range *range, const char *path);
void map_file_unref(struct map_file *file);

/*
 * Opens the range's file through process PID: module, bias and, in a copy of the file's code, pgoff. May copy
 * COPY_BYTES_MAX bytes from the process' memory. The kind becomes MAP_KIND_ANON if the range turns out to be
 * no file's; the map then has no module, and the caller drops the file. *CHILDREN grows by the number of
 * children that read the process' memory. If COPY_BYTES_MAX is 0, there are no such children.
 */
void map_open(struct map *map, struct modules *store, pid_t pid, uint64_t copy_bytes_max, uint64_t *children);

#endif
