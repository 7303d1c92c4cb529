/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The import slots of the objects of a running process: the words through which an object calls functions of
 * others (ELF's JUMP_SLOT and GLOB_DAT relocations), and the words of its data that hold the address of such
 * a function (R_X86_64_64).
 *
 * A slot is made to lead to a hook only if it holds the very function that the hook calls in the end, or has
 * not been bound yet by an object that binds like all others. So a block is never freed by another allocator
 * than the one it is from. An object that is bound to another allocator is left alone, and named.
 *
 * A slot is one aligned word, so other threads, which run meanwhile, see the old or the new function. Pages
 * that are read-only (RELRO) are made writable for the moment, and get back the protection that they had.
 */
#ifndef PRELOAD_IMPORT_H
#define PRELOAD_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function and its hook. */
struct import {
	const char *name;
	uintptr_t real; /* 0: leave its slots alone */
	uintptr_t hook;
	bool allocates; /* an object whose slot for it holds something else has another allocator */
};

/* Turns the slots of every object to the hooks; or, where they hold a hook, back to what they held before.
 * `imports` must stay the same between the calls. Under the loader's lock (loader_lock.h). */
void import_turn(const struct import *imports, size_t count);
void import_turn_back(const struct import *imports, size_t count);

/* The same for objects that came since the last call. False: none did. */
bool import_turn_new(const struct import *imports, size_t count);

/* Slots that lead to the hooks. */
uint32_t import_count(void);

/* The files whose calls to the allocator are not seen, separated by commas; "" if none. */
const char *import_unseen(void);

#endif
