/* SPDX-License-Identifier: Apache-2.0 */
/* What the running systemd is told and asked, where there is one. */
#ifndef SAMPLER_CMD_ENABLE_SYSTEMCTL_H
#define SAMPLER_CMD_ENABLE_SYSTEMCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Is systemd the machine's manager? sd_booted(3). */
bool systemctl_runs(void);

/* Tells it to read unit files again. 0 or -errno; -EIO: it refuses. */
int systemctl_reload(void);

/* LD_PRELOAD of a unit, as systemd has understood its files; "": none. 0 or -errno. */
int systemctl_preload(const char *unit, char *value, size_t value_bytes);

/* The main process of a unit; 0: it does not run, or has none. 0 or -errno. */
int systemctl_main_process(const char *unit, pid_t *pid);

#endif
