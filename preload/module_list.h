/* SPDX-License-Identifier: Apache-2.0 */
/* The list of files that the loader has mapped now, for the sampler: with it the stacks of a process that
 * lives for a millisecond can still be unwound. */
#ifndef PRELOAD_MODULE_LIST_H
#define PRELOAD_MODULE_LIST_H

#include "proto/region.h"

#include <stdbool.h>

/* Writes as many struct region_module as fit into REGION_MODULES_BYTES, which are zero. may_ask: the kernel
 * may be asked which files these are, by calls that the loader itself may not make (readlinkat, newfstatat).
 */
void module_list_write(unsigned char *area, bool may_ask);

#endif
