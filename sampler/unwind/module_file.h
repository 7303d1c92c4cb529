/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the file that a process has mapped, reads what identifies it and its segments from its headers, and
 * later its bytes.
 *
 * Nothing here trusts the path: the process may have replaced it by a fifo, a device or another file. A name
 * is first opened with O_PATH, which never blocks and has no side effect, and is read only if it is a regular
 * file.
 */
#ifndef SAMPLER_UNWIND_MODULE_FILE_H
#define SAMPLER_UNWIND_MODULE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum {
	MODULE_BUILD_ID_BYTES = 64, /* longest build id kept; the kernel reports 20 at most */
	MODULE_SEGMENTS_MAX = 64,   /* PT_LOADs read from one file */
};

/* What is known about a file before it is opened. */
struct module_request {
	pid_t pid;               /* the process to open through; 0: only by path */
	bool told;               /* with pid 0: the path is a target's word, and may not mean our file */
	uint64_t start, end;     /* the mapping, for /proc/PID/map_files */
	uint64_t pgoff;          /* offset of start in the file; used if it may be copied (module_memory.c) */
	uint64_t copy_bytes_max; /* so many bytes; 0: it may not */
	const char *path;        /* as the target sees it; " (deleted)" is understood */
	const uint8_t *build_id; /* expected build id, NULL: unknown */
	uint8_t build_id_len;
	/* expected file if ino != 0 and there is no build id; dev as makedev() */
	uint64_t dev, ino;
	/* Only the target itself says that it maps the file: dev and ino are what stat() told the target. A
	 * request without them and without a build id finds no file. */
	bool listed;
};

/* One PT_LOAD, in the file's own terms. */
struct module_segment {
	uint64_t vaddr;
	uint64_t offset;
	uint64_t file_bytes;
	uint64_t memory_bytes;
	bool executable;
};

/* A file that was put together from the memory of one process (module_memory.c). */
struct module_copied {
	pid_t pid;             /* 0: it is a file of its own */
	uint64_t birth, start; /* of the process, in ticks; of the mapping */
	uint64_t bytes;        /* of our memory */
};

struct module_file {
	int fd;             /* -1: closed, or `memory` */
	const void *memory; /* the vdso's, borrowed for ever; NULL for a file */
	uint64_t dev, ino, bytes;
	uint32_t uid; /* the owner, who may have chosen the build id */
	int64_t mtime_ns, ctime_ns;
	uint16_t e_machine;
	uint16_t e_type;      /* ET_EXEC or ET_DYN */
	uint64_t entry;       /* e_entry, in the file's own terms; 0: none */
	uint8_t build_id_len; /* 0: none */
	uint8_t build_id[MODULE_BUILD_ID_BYTES];
	uint32_t segment_count;
	struct module_segment *segments; /* sorted by offset */
	char *open_path;                 /* the opened path, e.g. /proc/PID/map_files/...; may be stale */
	struct module_copied copied;
};

/*
 * Opens what `request` describes: tries /proc/PID/map_files, /proc/PID/root, /proc/PID/exe and the path, and
 * takes the first right file. Returns 0, and the caller closes `file`; -ESTALE: only other files were found;
 * -ENOEXEC: no 64-bit little-endian ELF file of an architecture we know; -EMFILE, -ENFILE, -ENOENT, ...
 */
int module_file_open(const struct module_request *request, struct module_file *file);

/* Takes FD (a descriptor or -errno), which was found at OPEN_PATH, if it is the right file, and closes it
 * otherwise. CERTAIN: the mapping itself was opened. */
int module_file_take(const struct module_request *request, int fd, const char *open_path, bool certain,
    const struct stat *st, struct module_file *file);
void module_file_close(struct module_file *file);

/* The vdso's image in our own address space. -ENOENT if this kernel has none. */
int module_file_open_vdso(struct module_file *file);

/* Reads `bytes` at `offset` into `to`, all or nothing. Returns 0; -EIO beyond its end; -EBADF: it is closed;
 * -errno. */
int module_file_read(const struct module_file *file, void *to, size_t bytes, uint64_t offset);

/*
 * The ELF virtual address for an offset in the file: p_vaddr + (offset - p_offset) of the PT_LOAD that holds
 * it, rounded out to pages as the kernel maps it. `executable` prefers a segment with PF_X, since neighbours
 * share pages. False if no segment has it.
 */
bool module_file_vaddr(const struct module_file *file, uint64_t offset, bool executable, uint64_t *vaddr);

/* The reverse, for N bytes that one segment of the file holds. False if there is no such segment, or if it
 * has no bytes there. */
bool module_file_offset(const struct module_file *file, uint64_t vaddr, uint64_t n, uint64_t *offset);

/* Opens the same file again, where it was or at `path`. Returns a descriptor, -ESTALE if another file is
 * there, or -errno. */
int module_file_reopen(const struct module_file *file, const char *path);

/* Is `status` of the same file, unchanged? */
bool module_file_same(const struct module_file *file, const struct stat *status);

/* Are both the same file? Compares only what nobody can choose for a new file. ANY_DEVICE: the devices may
 * differ, as when an image's layer is mounted twice. */
bool module_file_is(const struct module_file *file, const struct module_file *other, bool any_device);

/* Do both have the same size, kind and segments, so that an address in the one is the same address in the
 * other? */
bool module_file_resembles(const struct module_file *file, const struct module_file *other);

/* A copy of `path` without the kernel's " (deleted)"; NULL: out of memory. */
char *module_file_path(const char *path);

/* For module_file.c alone: fills in what the ELF headers say. 0; -ENOEXEC: no 64-bit little-endian ELF file
 * of an architecture we know, or one that makes no sense; -ENOMEM. */
int module_file_read_headers(struct module_file *file);

#endif
