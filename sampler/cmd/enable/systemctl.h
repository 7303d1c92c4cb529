/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the systemd that runs, and what it knows of units. */
#ifndef SAMPLER_CMD_ENABLE_SYSTEMCTL_H
#define SAMPLER_CMD_ENABLE_SYSTEMCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Is systemd the machine's manager? sd_booted(3). */
bool systemctl_runs(void);

/* Makes systemd read all unit files again. Returns 0; -EIO if systemd refuses; or -errno. */
int systemctl_reload(void);

/* Writes the LD_PRELOAD that a unit has by what systemd has read; "" if it has none. Returns 0 or -errno. */
int systemctl_preload(const char *unit, char *value, size_t value_bytes);

/* Sets *pid to the main process of a unit, or to 0 if the unit does not run or has no main process. Returns 0
 * or -errno. */
int systemctl_main_process(const char *unit, pid_t *pid);

#endif
