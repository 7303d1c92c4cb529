/* SPDX-License-Identifier: Apache-2.0 */
/* Stores to the program's data, also where it is read-only (RELRO). The kernel is asked about each word, and
 * not /proc/self/maps: a process in a root of its own may have no /proc. */
#ifndef PRELOAD_PROTECTION_H
#define PRELOAD_PROTECTION_H

#include <stdbool.h>
#include <stdint.h>

/* Stores a word of a readable page of data. A page that cannot be written is made writable for the moment,
 * and is readable only again. False: not stored, the kernel refused. */
bool protection_store(uintptr_t *word, uintptr_t value);

#endif
