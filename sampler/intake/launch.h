/* SPDX-License-Identifier: Apache-2.0 */
/* COMMAND of the command line, as the front process reports it. */
#ifndef SAMPLER_INTAKE_LAUNCH_H
#define SAMPLER_INTAKE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct launch {
	pid_t pid;             /* 0: not started yet, or it could not be executed */
	bool ended;            /* also if there is no COMMAND to wait for */
	bool front_gone;       /* the front has ended: the status stays unknown */
	bool status_known;     /* status is valid */
	int status;            /* wait status */
	const pid_t *attached; /* running processes instead of COMMAND; borrowed */
	size_t attached_count;
};

/* Whether the process is the user's choice: COMMAND, or a process that the user named. */
static inline bool launch_is_command(const struct launch *launch, pid_t pid)
{
	for (size_t i = 0; i < launch->attached_count; i++)
		if (launch->attached[i] == pid)
			return true;
	return launch->pid != 0 && pid == launch->pid;
}

#endif
