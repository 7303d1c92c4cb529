/* SPDX-License-Identifier: Apache-2.0 */
/* Which hook stands for which function, for a process that ran before this library came. */
#ifndef PRELOAD_HOOK_TABLE_H
#define PRELOAD_HOOK_TABLE_H

#include "preload/import.h"

/* Once next_symbol_resolve has run. mappings: those for mmap and its like too. */
void hook_table_fill(bool mappings);

/* NULL before that. */
const struct import *hook_table(size_t *count);

#endif
