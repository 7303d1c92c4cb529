/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap ls of a store: its services, judged by the names in it alone. */
#ifndef SAMPLER_CMD_REPORT_LS_STORE_H
#define SAMPLER_CMD_REPORT_LS_STORE_H

#include "pprof/store/config_file.h"

#include <stdbool.h>

struct options;

/* Is it a store that the user wants listed? The one of --store without an operand, a folder that is one,
 * or, where this folder has no profiles, the daemon's. */
bool ls_store_wanted(const struct options *options, char store[DAEMON_SECTION_PATH_BYTES]);

/* Returns the exit status. */
int ls_store_run(const struct options *options, const char *store);

#endif
