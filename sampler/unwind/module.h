/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: the files whose code runs in the targets, one struct module per file, however many processes map
 * it.
 *
 * A file is opened when a target is first seen to map it, while the process still exists, and the descriptor
 * is kept: a program that is deleted, replaced or unmounted later can still be unwound and symbolized. A file
 * is identified by its build id; without one by device, inode, size and modification time.
 *
 *	maps of process A ──┐
 *	maps of process B ──┼──> struct module ──> fd, build id, segments, path
 *	interned stacks ────┘        └──> struct cfi: compiled unwind rows (cfi.h), made at the first need
 *
 * Every holder owns a reference. Modules without a holder stay cached, since a shell script starts the same
 * programs again and again. The least recently used ones are removed first. Not thread-safe, like libdw
 * underneath.
 */
#ifndef SAMPLER_UNWIND_MODULE_H
#define SAMPLER_UNWIND_MODULE_H

#include "sampler/unwind/cfi.h"
#include "sampler/unwind/module_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * ---- the store of modules (module_table.c)
 *
 * It has the modules that there are, the order of their last use, and the number of
 * descriptors that they hold.
 */
struct modules;

enum {
	MODULE_CACHED_DEFAULT = 128,       /* modules kept without a holder */
	MODULE_ROWS_BYTES_MAX = 128 << 20, /* of the unwind rows of all modules, see struct cfi_memory */
};

/* Read-only outside module.c and module_table.c. */
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

/* ---- a module */

/*
 * The module for `request` with a reference for the caller: an existing one, or a new one (module_file_open).
 * If no file can be opened, the module is made with readable == false, and a later request tries again. Never
 * blocks on a fifo or a device, but blocks on a file system that does not answer. NULL if out of memory.
 */
struct module *module_get(struct modules *store, const struct module_request *request);

/* The same for our own library if a target loaded it from memory, or from a file that is gone, and we may not
 * open it there. NULL if the path is not the library's name, or out of memory. */
struct module *module_get_library(struct modules *store, const char *path);

/* The vdso's module with a reference for the caller. NULL if this kernel has none, or out of memory. */
struct module *module_get_vdso(struct modules *store);

struct module *module_ref(struct module *module);
void module_unref(struct module *module); /* NULL is allowed */

/*
 * A descriptor for reading the file with pread(), or -errno. The module owns the descriptor; it stays open at
 * least until the next module_get() or module_fd(). A descriptor that was closed to make room is opened again
 * if the file is still the same.
 */
int module_fd(struct module *module);

/* The same as module_file_read(); opens the file again if necessary. */
int module_read(struct module *module, void *to, size_t bytes, uint64_t offset);

/* The same as module_file_vaddr(); yields the offset itself if the module is not readable. */
bool module_vaddr(const struct module *module, uint64_t offset, bool executable, uint64_t *vaddr);

/* The rule that leads from a frame at `vaddr` to its caller; never NULL, valid as long as the module.
 * cfi_unread_rule if the rule is unknown and cannot be read now. */
const struct cfi_rule *module_rule(struct module *module, uint64_t vaddr);

/* The same; the budget of the process that has the frame pays for it. */
const struct cfi_rule *module_rule_within(struct module *module, uint64_t vaddr, struct throttle *budget);

void module_measure_cfi(const struct module *module, struct cfi_usage *usage);

/*
 * ---- the file of a mapping if the file itself is gone: the parts that the process still has in memory.
 *
 * The loader maps nearly all that we need of a file: headers, build id, unwind tables and the table of the
 * symbols that others can link to. (Not the whole symbol table, nor debug information.) They are copied to
 * their places in a sparse file in memory, which then stands for the file. Code is not copied: reading code
 * would make it resident in the process.
 *
 * All of this is the process' own word, so no other process gets any of it.
 */
enum { MODULE_MEMORY_BYTES_MAX = 32 << 20 }; /* that are copied */

/* A process' memory. `read` reads all bytes or fails; it returns 0 or -errno. */
struct module_memory {
	int (*read)(void *context, void *to, size_t bytes, uint64_t address);
	void *context;
};

/* The mapping of code at [start, ...), which begins at `pgoff` of the file; and the zeroed area into which
 * the file is put. At most bytes_max of its bytes are written. */
struct module_memory_copy {
	uint64_t start, pgoff;
	unsigned char *area;
	uint64_t area_bytes, bytes_max;
	uint64_t bytes, length; /* answer: copied; of the file */
};

/* Finds and copies the file. Returns 0; -ENOEXEC if there is no ELF file with code there; -EFBIG if it does
 * not fit; or -errno of a read. Pure but for the reads. */
int module_memory_gather(const struct module_memory *memory, struct module_memory_copy *copy);

/*
 * The same for request->start of the process, by a child (memory_reader.h), at most request->copy_bytes_max
 * bytes. If the file that is now at the path has the same build id as the memory, that file is opened
 * instead. Returns 0, and the caller closes `file`; -EPERM or -EACCES if we may not read the process; or the
 * errors above.
 */
int module_memory_open(const struct module_request *request, struct module_file *file);

#endif
