/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirects functions of a loaded library to functions of ours, without defining their names.
 *
 *   definition  the entry of the library's own symbol table, in this process' memory, gets our function's
 *               address: what is bound from now on (lazily, by dlsym, by a library that is loaded later)
 *               leads to us
 *   slots       where the loader has bound a reference already, in the GOT or in data, the address is
 *               replaced, if it is that of the definition
 *   the library's references to its own functions are bound to these, so that what it does inside one call
 *   is not seen as other calls
 *
 * A page that was read-only is so again afterwards. What cannot be made writable stays as it was: such
 * references go past us.
 */
#ifndef PRELOAD_REDIRECT_H
#define PRELOAD_REDIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redirect {
	const char *name;
	uintptr_t to;   /* 0: the function is looked up and not redirected */
	uintptr_t from; /* where it is; 0: not found */
};

/* Fills in `from` of all of them from the first object that defines the first of them. False: there is none,
 * or it comes before this library, as the program itself does. */
bool redirect_find(struct redirect *functions, size_t count);

/* Once, from this library's constructor: the loader has relocated every object by then, and no thread is in
 * it. */
void redirect_apply(const struct redirect *functions, size_t count);

#endif
