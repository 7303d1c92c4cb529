/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of modules (module.h): the modules that there are, the order of their last use, and the number of
 * descriptors that they hold.
 */
#ifndef SAMPLER_UNWIND_MODULES_H
#define SAMPLER_UNWIND_MODULES_H

#include "sampler/unwind/cfi.h"
#include "sampler/unwind/module_file.h"

#include <stdbool.h>
#include <stdint.h>

struct modules;

enum {
	MODULE_CACHED_DEFAULT = 128,       /* modules kept without a holder */
	MODULE_ROWS_BYTES_MAX = 128 << 20, /* of the unwind rows of all modules, see struct cfi_memory */
};

/* Read-only outside module.c and modules.c. */
struct module {
	uint32_t references;
	/* false if the file could not be opened; only path and build id are valid then */
	bool readable;
	bool vdso; /* the kernel's, taken from our own address space */
	/* why it is not readable, -errno; -ESTALE: another build id was found there */
	int error;
	char *path;              /* as the target sees it, without " (deleted)" */
	struct module_file file; /* if not readable only build id, dev and ino; use module_fd() for its fd */
};

struct module_counters {
	uint64_t opened;     /* files opened and accepted */
	uint64_t shared;     /* requests answered by an existing module */
	uint64_t refused;    /* not a regular file, too big, not an ELF file, another machine */
	uint64_t mismatched; /* the file found is not the file mapped */
	uint64_t missing;    /* nothing could be opened */
	uint64_t copies;     /* attempts to copy a file from a process' memory */
	/* opens that failed with EMFILE or ENFILE, although unused descriptors were closed */
	uint64_t descriptors_short;
	uint64_t descriptors_dropped; /* descriptors closed to make room; reopened on demand */
	uint64_t released;            /* modules freed */
	uint64_t looked_at; /* entries that were looked at to find one or to make room: the cost of both */
};

/* fds_max: most descriptors kept open, 0 for three quarters of RLIMIT_NOFILE. NULL: out of memory. */
struct modules *modules_new(unsigned fds_max);

/* Frees the store and every module in it; no reference may be used afterwards. */
void modules_free(struct modules *store);

/* A library that targets load from memory (memfd), where only root can open it. It is used for mappings of
 * this name that cannot be opened. Both strings are borrowed, and NULL until a caller sets them. */
struct module_library {
	const char *name; /* the name of the memory file */
	const char *path; /* a path that can be opened here */
};
struct module_library *modules_library(struct modules *store);

/* Number of modules in the store and of descriptors they hold. */
unsigned modules_count(const struct modules *store);
unsigned modules_open_fds(const struct modules *store);

const struct module_counters *modules_counters(const struct modules *store);

/* ---- for module.c alone */

enum {
	MODULES_BUCKETS = 1024, /* at first */
	/* Files with one build id that are found by it, installed ones and others each. */
	MODULES_ALIKE_MAX = 32,
};

/* In the order of their use. */
struct module_list {
	struct module_entry *newest, *oldest;
};

/* A module, and the members that only the store uses. */
struct module_entry {
	struct module module;
	struct cfi *cfi; /* NULL until the unwinder needs it */
	/* root's or ours, and its path leads to it both here and for the process that maps it */
	bool installed;
	bool by_file;   /* found by the file's identity: too many files have its build id */
	bool file_gone; /* its file could not be found again, so its descriptor stays open */
	struct modules *store;
	struct module_entry *next_in_bucket;
	struct module_entry *next_of_inode;
	struct module_list *list; /* the list that it is in */
	struct module_entry *newer, *older;
};

/*
 * Every module is in one list and in one bucket: by build id, or by the file's identity, or by the request if
 * no file could be read. A file is also in a bucket by device and inode.
 *
 * Programs choose how many files they map, and the build ids of the files. So the work for one file must not
 * grow with the number of files: a bucket has few modules that are alike, and each list begins with the
 * module that is looked for.
 */
struct modules {
	struct module_library library;
	struct module_entry **bucket, **of_inode; /* linked lists, since modules are removed, too */
	size_t buckets;          /* number of each; a power of two; doubled when there are as many modules */
	struct module_list idle; /* has no holder: released to make room */
	struct module_list closable; /* has a holder, and a descriptor that may be closed to make room */
	struct module_list others;
	struct module_entry *vdso;
	unsigned count;
	unsigned unreferenced;
	unsigned cached_max;
	unsigned fds, fds_max;
	struct cfi_memory rows;
	struct module_counters counters;
};

/* The entry of a module that has a holder. */
struct module_entry *modules_entry(struct module *module);

/* The first entry of the bucket for a build id, for a file, and for a request that could not be read. Other
 * modules are in these buckets, too. */
struct module_entry *modules_with_build_id(const struct modules *store, const uint8_t *build_id, uint8_t len);
struct module_entry *modules_of_file(const struct modules *store, const struct module_file *file);
struct module_entry *modules_unreadable(
    const struct modules *store, const uint8_t *build_id, uint8_t len, uint64_t ino, const char *path);

/* The first entry of the bucket for stat()'s device and inode. PID: the process from whose memory the file
 * was copied (0: not copied). Follow next_of_inode. */
struct module_entry *modules_of_inode(const struct modules *store, uint64_t dev, uint64_t ino, pid_t pid);

/* A new entry that is in no bucket yet: the caller fills in its module before modules_link(). Takes PATH,
 * also on error. NULL if out of memory, or if PATH is NULL. */
struct module_entry *modules_add(struct modules *store, char *path);
/* Puts the entry in its buckets. */
void modules_link(struct module_entry *entry);

/* Notes that the module is used now. Also to be called when it gains or loses its holders or its
 * descriptor. */
void modules_touch(struct module_entry *entry);
void modules_release(struct module_entry *entry);

/* Releases modules without a holder, oldest use first, as long as there are too many. */
void modules_trim(struct modules *store);

/* Closes one descriptor, oldest use first: that of a module without a holder, else that of a module whose
 * file can be opened again. */
bool modules_drop_descriptor(struct modules *store);

/* Does so until there is room for one descriptor. */
void modules_make_room(struct modules *store);

#endif
