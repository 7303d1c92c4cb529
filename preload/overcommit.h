/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the kernel counts memory that may be needed as if it was in use (vm.overcommit_memory=2). Then the
 * kernel may refuse a page of our sparse shared memory when a hook first stores there. That is SIGBUS, where
 * the program's own malloc would have returned NULL. And the kernel charges all of our tables, once more for
 * each forked child. So no program is profiled there.
 */
#ifndef PRELOAD_OVERCOMMIT_H
#define PRELOAD_OVERCOMMIT_H

#include <stdbool.h>

#define OVERCOMMIT_PATH "/proc/sys/vm/overcommit_memory"

/* Reads the file at `path`. False if it cannot be read. */
bool overcommit_is_strict(const char *path);

#endif
