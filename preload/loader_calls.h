/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopen, dlsym and dlvsym as a program calls them that was attached to: the slots of objects that came since
 * lead to the hooks before the program can call any of them.
 *
 * These functions depend on who calls them (the caller's RUNPATH; RTLD_NEXT). So each is entered by a jump,
 * with the program's own return address, after the look. Only dlopen by a plain path, which does not depend
 * on that, is called, so that the object's slots are turned as soon as it is there; for other names that is
 * done at the next of these calls. What an object's constructors allocate goes unseen.
 */
#ifndef PRELOAD_LOADER_CALLS_H
#define PRELOAD_LOADER_CALLS_H

#include <stdint.h>

enum { LOADER_CALLS = 3 };

struct loader_call {
	const char *name;
	uintptr_t real; /* 0: not found */
	uintptr_t hook;
};
extern struct loader_call loader_calls[LOADER_CALLS] __attribute__((visibility("hidden")));

/* Finds the functions themselves. look: called where objects may be new. */
void loader_calls_resolve(void (*look)(void));

#endif
