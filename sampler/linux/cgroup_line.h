/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of /proc/PID/cgroup, "7:memory:/system.slice/x.service" and "0::/..." (cgroups(7)). Pure. */
#ifndef SAMPLER_LINUX_CGROUP_LINE_H
#define SAMPLER_LINUX_CGROUP_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct cgroup_line {
	const char *controllers; /* separated by commas; no controllers: version 2 */
	size_t controllers_bytes;
	const char *path; /* begins with '/' */
	size_t path_bytes;
};

/* Finds the next valid line; *text moves behind it. False if there is none. */
bool cgroup_line_next(const char **text, struct cgroup_line *line);

/* Is the controller ("memory", "name=systemd") one of the line's? */
bool cgroup_line_has(const struct cgroup_line *line, const char *controller);

#endif
