/* SPDX-License-Identifier: Apache-2.0 */
/* The exported functions live in hooks.c and are declared by libc; this is what other files need of them. */
#ifndef PRELOAD_HOOKS_H
#define PRELOAD_HOOKS_H

#include <stddef.h>

/* A block for which sample_count has said true. */
void hooks_due(const void *pointer, size_t size);

/* A block of a pool of the program's own, as if it came from malloc and went to free. */
void hooks_report_alloc(const void *pointer, size_t size);
void hooks_report_free(void *pointer);

#endif
