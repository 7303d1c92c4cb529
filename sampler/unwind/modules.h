/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of modules (module.h): which there are, in which order they were used, and how many descriptors
 * they hold.
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

/* Read-only outside of these two files. */
struct module {
	uint32_t references;
	/* false: the file could not be opened; only path and build id are valid */
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
	uint64_t copies;     /* tries to copy a file from a process' memory */
	/* opens that failed with EMFILE or ENFILE, although unused descriptors were closed */
	uint64_t descriptors_short;
	uint64_t descriptors_dropped; /* descriptors closed to make room; reopened on demand */
	uint64_t released;            /* modules freed */
	uint64_t looked_at;           /* entries, to find one or to make room: what all that costs */
};

/* fds_max: most descriptors kept open, 0 for three quarters of RLIMIT_NOFILE. NULL: out of memory. */
struct modules *modules_new(unsigned fds_max);

/* Frees the store and every module in it; no reference may be used afterwards. */
void modules_free(struct modules *store);

/* A library that targets have from memory (memfd), where only root can open it: used for mappings of that
 * name that cannot be opened. Both borrowed; NULL until somebody sets them. */
struct module_library {
	const char *name; /* of the memory */
	const char *path; /* what can be opened here */
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
	bool installed;  /* root's or ours, and this is what its path leads to, here and for who maps it */
	bool by_file;    /* found by what file it is and not by its build id: too many have that one */
	bool file_gone;  /* its file could not be found again: so its descriptor stays open */
	struct modules *store;
	struct module_entry *next_in_bucket;
	struct module_entry *next_of_inode;
	struct module_list *list; /* the one it is in */
	struct module_entry *newer, *older;
};

/*
 * Every module is in one bucket (by build id, by what file it is, or by what was asked for if that could not
 * be read) and in one list; and files are in one more bucket, by device and inode.
 *
 * Programs choose how many files they map, and which build ids these have. So nothing here may take longer
 * for each file the more of them there are: a bucket has few that are alike, and each list begins with what
 * is looked for.
 */
struct modules {
	struct module_library library;
	struct module_entry **bucket, **of_inode; /* lists, since modules also go */
	size_t buckets;              /* of each; a power of two; doubled when there are as many modules */
	struct module_list idle;     /* no holder: released when there are too many */
	struct module_list closable; /* a holder, and a descriptor that is closed when there are too many */
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

/* The first entry of the bucket with those that have a build id, a file's, and the one of what could not be
 * read. Others are in it too. */
struct module_entry *modules_with_build_id(const struct modules *store, const uint8_t *build_id, uint8_t len);
struct module_entry *modules_of_file(const struct modules *store, const struct module_file *file);
struct module_entry *modules_unreadable(
    const struct modules *store, const uint8_t *build_id, uint8_t len, uint64_t ino, const char *path);

/* The first entry of the bucket with the files of that device and inode, as stat() says, or of what was
 * copied from the memory of that process in place of one (PID 0: not copied). Follow next_of_inode. */
struct module_entry *modules_of_inode(const struct modules *store, uint64_t dev, uint64_t ino, pid_t pid);

/* A new entry, which owns PATH, in no bucket yet: its module has to be filled in before. NULL: out of memory
 * (PATH is freed), or PATH is NULL. */
struct module_entry *modules_add(struct modules *store, char *path);
/* Puts it there. */
void modules_link(struct module_entry *entry);

/* It is used now; also whenever it has got or lost its holders or its descriptor. */
void modules_touch(struct module_entry *entry);
void modules_release(struct module_entry *entry);

/* Releases what nobody has, oldest use first, as long as there is too much of it. */
void modules_trim(struct modules *store);

/* Closes one descriptor, oldest use first: of a module without a holder, else of one that can be opened
 * again. */
bool modules_drop_descriptor(struct modules *store);

/* The same until there is room for one. */
void modules_make_room(struct modules *store);

#endif
