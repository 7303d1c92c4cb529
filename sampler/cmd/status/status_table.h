/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `heaptap status`: some lines about the daemon, then a table that fits 80 columns. */
#ifndef SAMPLER_CMD_STATUS_STATUS_TABLE_H
#define SAMPLER_CMD_STATUS_STATUS_TABLE_H

#include "pprof/store/spool_files.h"
#include "sampler/core/control_list.h"
#include "sampler/linux/screen.h"

#include <stdint.h>

/* Prints the processes in the order of the list. now_unix_ns: tells how long the daemon has run, and what
 * "today" is. */
void status_table_print(const struct screen *screen, const struct control_list *list,
    const struct spool_list *spools, int64_t now_unix_ns);

#endif
