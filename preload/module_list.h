/* SPDX-License-Identifier: Apache-2.0 */
/* The list of files that the loader has mapped now, for the sampler: with it the stacks of a process that
 * lives for a millisecond can still be unwound. */
#ifndef PRELOAD_MODULE_LIST_H
#define PRELOAD_MODULE_LIST_H

#include "proto/region.h"

#include <stdint.h>

/* Writes as many struct region_module as fit into REGION_MODULES_BYTES; returns the number of bytes
 * written. */
uint32_t module_list_write(unsigned char *area, uint32_t *count);

#endif
