/* SPDX-License-Identifier: Apache-2.0 */
/* What the process' pages allow, as the kernel says (/proc/self/maps), and stores to pages that are
 * read-only. */
#ifndef PRELOAD_PROTECTION_H
#define PRELOAD_PROTECTION_H

#include <stdbool.h>
#include <stdint.h>

struct protection; /* a list of ranges, in memory of its own */

/* NULL: it cannot be read. */
struct protection *protection_read(void);
void protection_free(struct protection *protection);

/* Stores a word of the program's data. A page that is readable only is made writable for the moment. False:
 * not stored, since the page is neither, or holds code, or the kernel refused. */
bool protection_store(const struct protection *protection, uintptr_t *word, uintptr_t value);

#endif
