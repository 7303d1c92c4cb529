/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: the files whose code runs in the targets, one struct module per file, whoever maps it and however
 * often.
 *
 * A file is opened when a target is first seen to map it, while the process is there to lead to it, and the
 * descriptor is kept: a program that is deleted, replaced or unmounted afterwards still unwinds and
 * symbolizes. A file is what its build id says it is; without one it is its device, inode, size and
 * modification time.
 *
 *	maps of process A ──┐
 *	maps of process B ──┼──> struct module ──> fd, build id, segments, path
 *	interned stacks ────┘        └──> struct cfi: compiled unwind rows (cfi.h), made at the first need
 *
 * Every holder owns a reference. Modules that nobody holds stay cached (a shell script starts the same
 * programs again and again), the least recently used go first. Not thread-safe, like libdw underneath.
 */
#ifndef SAMPLER_UNWIND_MODULE_H
#define SAMPLER_UNWIND_MODULE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cfi;
struct modules;

enum {
	MODULE_BUILD_ID_BYTES = 64,  /* longest build id kept; the kernel reports 20 at most */
	MODULE_SEGMENTS_MAX = 64,    /* PT_LOADs read from one file */
	MODULE_CACHED_DEFAULT = 128, /* modules kept without a holder */
};

/* One PT_LOAD, in the file's own terms. */
struct module_segment {
	uint64_t vaddr;
	uint64_t offset;
	uint64_t file_bytes;
	uint64_t memory_bytes;
	bool executable;
};

/* Read-only for everybody but module.c. */
struct module {
	uint32_t id; /* unique for the life of the store, never used again */
	uint32_t references;
	/* false: the file could not be opened; path, build id and ranges are all there is */
	bool readable;
	/* the kernel's vdso image, taken from our own address space; no descriptor */
	bool vdso;
	/* why it is not readable, -errno; -ESTALE: another build id was found there */
	int error;
	int fd;               /* use module_fd(); -1 while closed */
	uint8_t build_id_len; /* 0: none */
	uint8_t build_id[MODULE_BUILD_ID_BYTES];
	char *path; /* as the target sees it, without " (deleted)" */
	/* what was opened, e.g. /proc/PID/map_files/...; may be stale by now */
	char *open_path;
	uint64_t dev, ino, file_bytes;
	uint32_t uid; /* who may have chosen the build id */
	int64_t mtime_ns;
	uint16_t e_machine;
	uint16_t e_type; /* ET_EXEC or ET_DYN */
	uint32_t n_segments;
	struct module_segment *segments; /* sorted by offset */
	const void *image;               /* vdso only: file_bytes bytes, borrowed for ever */
	struct cfi *cfi;                 /* NULL until the unwinder asks */

	struct modules *store;
	struct module *next_in_bucket;
	struct module *newer, *older; /* the store's order of use */
};

/* What is known about a file before it is opened. */
struct module_request {
	pid_t pid;               /* the process to open through; 0: only by path */
	uint64_t start, end;     /* the mapping, for /proc/PID/map_files */
	const char *path;        /* as the target sees it; " (deleted)" is understood */
	const uint8_t *build_id; /* expected build id, NULL: unknown */
	uint8_t build_id_len;
	/* expected file if ino != 0 and there is no build id; dev as makedev() */
	uint64_t dev, ino;
};

struct module_counters {
	uint64_t opened;     /* files opened and accepted */
	uint64_t shared;     /* requests met by a module already there */
	uint64_t refused;    /* not a regular file, too big, not an ELF file, another machine */
	uint64_t mismatched; /* the file found is not the file mapped */
	uint64_t missing;    /* nothing could be opened */
	/* opens that met EMFILE or ENFILE even after closing what could be closed */
	uint64_t descriptors_short;
	uint64_t descriptors_dropped; /* descriptors closed to make room; reopened on demand */
	uint64_t released;            /* modules freed */
};

/* FDS_MAX: most descriptors kept open, 0 for three quarters of RLIMIT_NOFILE. NULL: out of memory. */
struct modules *modules_new(unsigned fds_max);

/* Frees the store and every module in it; no reference may be used afterwards. */
void modules_free(struct modules *store);

/* Number of modules in the store and of descriptors they hold. */
unsigned modules_count(const struct modules *store);
unsigned modules_open_fds(const struct modules *store);

const struct module_counters *modules_counters(const struct modules *store);

/*
 * The module for REQUEST with a reference for the caller: one that is there already, or a new one opened
 * through the process: /proc/PID/map_files, /proc/PID/root, /proc/PID/exe, the path, the first that is the
 * right file. If no file can be had the module is there all the same, with readable == false, and a later
 * request tries again. Never blocks on a fifo or a device. NULL: out of memory.
 */
struct module *module_get(struct modules *store, const struct module_request *request);

/* The vdso's module with a reference for the caller; NULL if this kernel has none or out of memory. */
struct module *module_get_vdso(struct modules *store);

struct module *module_ref(struct module *module);
void module_unref(struct module *module); /* NULL is allowed */

/*
 * A descriptor for reading the file with pread(), or -errno. Owned by the module; it stays open at least
 * until the next module_get() or module_fd(). A descriptor dropped for lack of room is opened again if the
 * same file is there.
 */
int module_fd(struct module *module);

/* Reads N bytes at OFFSET of the file (or of the vdso's image) into TO, all or nothing. 0, -EIO at its end,
 * -errno. */
int module_read(struct module *module, void *to, size_t n, uint64_t offset);

/*
 * Address in the ELF file's terms for an offset in the file: p_vaddr + (offset - p_offset) of the PT_LOAD
 * that holds it, rounded out to pages as the kernel maps it. EXECUTABLE prefers a segment with PF_X, since
 * neighbours share pages. False if no segment has it. For a module that is not readable the offset itself.
 */
bool module_vaddr(const struct module *module, uint64_t offset, bool executable, uint64_t *vaddr);

#endif
