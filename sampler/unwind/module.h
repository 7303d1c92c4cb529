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

#include "sampler/unwind/modules.h"

#include <stdbool.h>
#include <stdint.h>

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

#endif
