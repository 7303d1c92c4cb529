/* SPDX-License-Identifier: Apache-2.0 */
/* The exported functions live in hooks.c and are declared by libc; this is what other files need of them. */
#ifndef PRELOAD_HOOKS_H
#define PRELOAD_HOOKS_H

/* free() of a block that may be sampled. */
void hooks_free_maybe(void *pointer);

#endif
