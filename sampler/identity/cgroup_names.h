/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the path of a cgroup tells: unit, container, pod. Pure, over the text of /proc/PID/cgroup, of
 * version 1 and 2 (cgroups(7)); names as systemd, Docker, containerd, CRI-O, Podman, LXC, ECS and the
 * kubelet make them.
 */
#ifndef SAMPLER_IDENTITY_CGROUP_NAMES_H
#define SAMPLER_IDENTITY_CGROUP_NAMES_H

#include <stddef.h>

enum {
	CGROUP_NAMES_PATH_BYTES = 4096,
	CGROUP_NAMES_UNIT_BYTES = 256,
	CGROUP_NAMES_CONTAINER_BYTES = 64 + 1,
	CGROUP_NAMES_POD_BYTES = 36 + 1,
};

struct cgroup_names {
	char path[CGROUP_NAMES_PATH_BYTES]; /* "/system.slice/redis-server.service" */
	char unit[CGROUP_NAMES_UNIT_BYTES]; /* "redis-server.service"; of a user's manager: the unit in it */
	char container_id[CGROUP_NAMES_CONTAINER_BYTES];
	char pod_uid[CGROUP_NAMES_POD_BYTES]; /* with '-' */
};

/* The process' own cgroup: of version 2 if the process is in one below its root, else that of the memory
 * controller, of systemd, or the first. Everything is "" if nothing is found. */
void cgroup_names_parse(struct cgroup_names *names, const char *text);

/* The same of one path. */
void cgroup_names_of_path(struct cgroup_names *names, const char *path);

#endif
