/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps heaptap's own processes from loading the libraries in LD_PRELOAD and LD_AUDIT: the user means them
 * for COMMAND.
 *
 * Such a library may close descriptors behind our back (in a forked process, libunwind in tcmalloc closes the
 * numbers that its pipe had), or end the process. The loader reads the environment before we can. So heaptap
 * executes itself a second time with both variables under meaningless names, and then gives them their names
 * back. Both names have the same length: nothing moves, and the order of the environment stays.
 *
 * LD_LIBRARY_PATH stays: heaptap's own libraries may be there. GLIBC_TUNABLES and MALLOC_* stay, too: they
 * run no foreign code. /etc/ld.so.preload cannot be evaded.
 */
#ifndef SAMPLER_INJECT_FOREIGN_PRELOAD_H
#define SAMPLER_INJECT_FOREIGN_PRELOAD_H

#include <stdbool.h>

/* Call it before the exec of one of heaptap's programs. Gives the variables the other names, in place, if
 * they contain anything but our own library, which does no harm. False if nothing was changed: the variables
 * contain nothing else, or have the other names already. */
bool foreign_preload_hide(char *const environment[]);

/* Gives the variables their own names back. False if nothing was hidden. */
bool foreign_preload_restore(char *const environment[]);

#endif
