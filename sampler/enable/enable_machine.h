/* SPDX-License-Identifier: Apache-2.0 */
/* The machine-wide way: our line of /etc/ld.so.preload. Each prints what it did, and says what is wrong. */
#ifndef SAMPLER_ENABLE_ENABLE_MACHINE_H
#define SAMPLER_ENABLE_ENABLE_MACHINE_H

#include "sampler/enable/enable_library.h"
#include "sampler/enable/preload_file.h"
#include "sampler/enable/root_folder.h"

/* Tries it first, where the root is the machine's. library->path is not NULL. Returns an exit status. */
int enable_machine_add(const struct root_folder *root, const struct enable_library *library);

/* quiet: says nothing if there is nothing to remove. Returns an exit status. */
int enable_machine_remove(const struct root_folder *root, const struct enable_library *library, bool quiet);

/* Of any path that enable may have written. *path: which it is. */
enum preload_file_state enable_machine_state(
    const struct root_folder *root, const struct enable_library *library, const char **path);

#endif
