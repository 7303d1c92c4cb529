/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the kernel counts all memory that may be needed before it is (vm.overcommit_memory=2). Then a page
 * of our shared memory, which is sparse, may be refused at the moment at which a hook first stores there, and
 * that is SIGBUS, where the program's own malloc would have returned NULL; and our tables are charged whole,
 * once more for each forked child. So no program is profiled there.
 */
#ifndef PRELOAD_OVERCOMMIT_H
#define PRELOAD_OVERCOMMIT_H

#include <stdbool.h>

#define OVERCOMMIT_PATH "/proc/sys/vm/overcommit_memory"

/* By the file's text. What cannot be read is not strict. */
bool overcommit_is_strict(const char *path);

#endif
