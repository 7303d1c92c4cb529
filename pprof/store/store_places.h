/* SPDX-License-Identifier: Apache-2.0 */
/* Where stores may be, for commands that read them: as a configuration file says, else at the usual place. */
#ifndef PPROF_STORE_STORE_PLACES_H
#define PPROF_STORE_STORE_PLACES_H

#include "pprof/store/daemon_section.h"

#include <stddef.h>

enum { STORE_PLACES = 2 };

/* Finds the store of the user's own daemon, then the machine's, each once, also if it does not exist. If
 * `given` (--store) is not NULL it is the only one. A configuration that cannot be read says nothing. Returns
 * the number of paths. */
size_t store_places_find(const char *given, char paths[STORE_PLACES][DAEMON_SECTION_PATH_BYTES]);

#endif
