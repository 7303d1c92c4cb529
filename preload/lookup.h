/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds functions in the objects that the loader has mapped after this library, as dlsym(RTLD_NEXT) does. Why
 * not dlsym itself: before glibc 2.34 it is in another library, and since then it has a new symbol version,
 * so no single build would load under both. If a name is missing, dlsym allocates an error message, which
 * must not happen inside the first malloc of a process; and the program would get that message from
 * dlerror().
 *
 * dl_iterate_phdr, which every libc has, allocates nothing: C++ unwinding depends on it.
 */
#ifndef PRELOAD_LOOKUP_H
#define PRELOAD_LOOKUP_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lookup {
	const char *name;
	void *found;         /* NULL: no object after this library defines it */
	const char *version; /* of the libc's own definition, or NULL; filled in by lookup_next */
};

/* For a library that was loaded into a running process: it is the last object, so from now on lookup_next
 * looks into every object but ours, in the order of the loader. */
void lookup_everywhere(void);

/* Fills in `found` of each wish with the first definition that programs are bound to: a default definition,
 * one without a version, or a hidden one whose version is that of the libc's own definition. glibc's
 * libc_malloc_debug.so has hidden ones only. */
void lookup_next(struct lookup *wishes, size_t count);

/* The definition in an object before this library (the program itself, or a library preloaded earlier), or
 * NULL. If there is one, the program's calls never reach this library. */
void *lookup_before(const char *name);

/* Whether the object that contains `address` also defines the name. */
bool lookup_beside(const void *address, const char *name);

/* The libc's own definition, whoever else defines the name; or NULL. */
void *lookup_in_libc(const char *name);

/* The address range of the object that contains `address`. */
void lookup_extent(const void *address, uintptr_t *start, uintptr_t *end);

/* Takes functions of this library out of its own symbol table: symbols bound from now on are bound to the
 * next definition, as if this library had none. False: the kernel did not allow the change. */
bool lookup_hide(const char *const *names, size_t count);

/* Calls `look` for each object, under the loader's own lock; a result other than 0 ends that. */
struct dl_phdr_info;
void lookup_each(int (*look)(struct dl_phdr_info *info, size_t size, void *argument), void *argument);

/* Whether the object is this library; and whether it contains the address. */
bool lookup_is_ours(const struct dl_phdr_info *info);
bool lookup_contains(const struct dl_phdr_info *info, const void *address);

/* The default or unversioned definition of a name in the object's own symbol table, or NULL. */
const ElfW(Sym) * lookup_symbol(const struct dl_phdr_info *info, const char *name);

/* A function of the kernel's own object, or NULL. */
void *lookup_vdso(const char *name);

#endif
