/* SPDX-License-Identifier: Apache-2.0 */
/* The file `off` beside the control socket: while it is there nothing is sampled. */
#ifndef SAMPLER_CMD_DAEMON_OFF_SWITCH_H
#define SAMPLER_CMD_DAEMON_OFF_SWITCH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct off_switch {
	char path[PATH_MAX]; /* of the file */
	int fd;              /* inotify on its folder, to poll; -1: there is no inotify */
	bool off;
	uint64_t looked_ns;
};

/* The folder must exist. Never fails: without inotify the file is looked for twice a second. */
void off_switch_open(struct off_switch *off, const char *path);
void off_switch_close(struct off_switch *off);

/* Looks for the file if there is a notice, or if the last look was half a second ago. True if the file has
 * appeared or gone. */
bool off_switch_look(struct off_switch *off, uint64_t now_ns);

#endif
