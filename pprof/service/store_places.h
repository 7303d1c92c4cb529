/* SPDX-License-Identifier: Apache-2.0 */
/* Where stores may be, for whoever reads them: what a configuration file says, or else the usual place. */
#ifndef PPROF_SERVICE_STORE_PLACES_H
#define PPROF_SERVICE_STORE_PLACES_H

#include "pprof/service/daemon_section.h"

#include <stddef.h>

enum { STORE_PLACES = 2 };

/* The user's own daemon's, then the machine's, each only once; whether they exist is not asked. `given`
 * (--store; NULL: not given) is the only one. A configuration that cannot be read counts as none. Returns
 * how many. */
size_t store_places_find(const char *given, char paths[STORE_PLACES][DAEMON_SECTION_PATH_BYTES]);

#endif
