/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that is never unmapped: the loader unmaps no object that it has mapped before the program's first
 * instruction. Stacks in other code can only be walked as long as nothing is unmapped (proto/walk.h).
 */
#ifndef PRELOAD_START_FILES_H
#define PRELOAD_START_FILES_H

#include "proto/region.h"

#include <stdbool.h>

/* Writes the ranges into the header. runs: the program runs already, so what it has mapped may have come by
 * dlopen. Then these are the program and what it needs (DT_NEEDED), and what that needs, and so on: an object
 * that only dlopen has mapped is not among them, unless it has the very name of one that is needed and is
 * before it in the loader's list, to which every later object is appended. Takes the loader's lock. */
void start_files_write(struct region_header *header, bool runs);

#endif
