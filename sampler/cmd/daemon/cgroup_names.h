/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unit, container and pod that the path of a cgroup names. Pure: parses the text of /proc/PID/cgroup, of
 * version 1 and 2 (cgroups(7)). Knows the names that systemd, Docker, containerd, CRI-O, Podman, LXC, ECS and
 * the kubelet make.
 */
#ifndef SAMPLER_CMD_DAEMON_CGROUP_NAMES_H
#define SAMPLER_CMD_DAEMON_CGROUP_NAMES_H

#include <stddef.h>

enum {
	CGROUP_NAMES_PATH_BYTES = 4096,
	CGROUP_NAMES_UNIT_BYTES = 256,
	CGROUP_NAMES_CONTAINER_BYTES = 64 + 1,
	CGROUP_NAMES_POD_BYTES = 36 + 1,
};

struct cgroup_names {
	char path[CGROUP_NAMES_PATH_BYTES]; /* "/system.slice/redis-server.service" */
	char unit
	    [CGROUP_NAMES_UNIT_BYTES]; /* "redis-server.service"; below a user's manager, the inner unit */
	char container_id[CGROUP_NAMES_CONTAINER_BYTES];
	char pod_uid[CGROUP_NAMES_POD_BYTES]; /* with '-' */
};

/* Parses the process' own cgroup: that of version 2 if it is below the root, else that of the memory
 * controller, else that of systemd, else the first. All names are "" if none is found. */
void cgroup_names_parse(struct cgroup_names *names, const char *text);

/* The same for one path. */
void cgroup_names_of_path(struct cgroup_names *names, const char *path);

#endif
