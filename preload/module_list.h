/* SPDX-License-Identifier: Apache-2.0 */
/* The list of files that the loader has mapped now, for the sampler: with it the stacks of a process that
 * lives for a millisecond can still be unwound. */
#ifndef PRELOAD_MODULE_LIST_H
#define PRELOAD_MODULE_LIST_H

#include "proto/region.h"

#include <link.h>
#include <stdbool.h>

/* Writes as many struct region_module as fit into REGION_MODULES_BYTES, which are zero. may_ask: the kernel
 * may be asked which files these are, by calls that the loader itself may not make (readlinkat, newfstatat).
 * own: receives `dev` and `ino` of our own library, where that was asked. */
void module_list_write(unsigned char *area, bool may_ask, struct region_module *own);

/* The addresses of a segment's code. False: it has none. */
bool module_list_code(
    const struct dl_phdr_info *info, const ElfW(Phdr) * segment, struct region_range *range);

/* Length of the object's build id; 0: it has none. */
uint32_t module_list_build_id(const struct dl_phdr_info *info, uint8_t id[REGION_BUILD_ID_MAX]);

#endif
