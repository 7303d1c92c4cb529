/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user's LD_PRELOAD and LD_AUDIT name is for COMMAND: a process of heaptap's own does not load it.
 *
 * Such a library may close descriptors behind our back (libunwind in tcmalloc closes in a forked process
 * those numbers that its pipe had), or end the process. The loader reads the environment before us, so
 * heaptap executes itself a second time with both variables under names that mean nothing, and then gives
 * them their names back. The names are of the same length: nothing moves, and the order of the environment
 * stays.
 *
 * LD_LIBRARY_PATH stays: heaptap's own libraries may be there. So do GLIBC_TUNABLES and MALLOC_*: they run no
 * foreign code. /etc/ld.so.preload cannot be evaded.
 */
#ifndef SAMPLER_LOADER_FOREIGN_PRELOAD_H
#define SAMPLER_LOADER_FOREIGN_PRELOAD_H

#include <stdbool.h>

/* For an exec of a program of heaptap's: if the variables name anything but our own library, which does us
 * no harm, they get the other names, in place. False: they do not, and nothing has changed; or the other
 * names are there already. */
bool foreign_preload_hide(char *const environment[]);

/* Takes that back. False: nothing was hidden. */
bool foreign_preload_restore(char *const environment[]);

#endif
