/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that systemd, container engines and the kubelet have given a process: its unit, container and
 * pod. They are in the path of its cgroup, and those of a pod in the names of the kubelet's logs. Knows the
 * cgroups that systemd, Docker, containerd, CRI-O, Podman, LXC, ECS and the kubelet make.
 */
#ifndef SAMPLER_CMD_DAEMON_CONTAINER_NAMES_H
#define SAMPLER_CMD_DAEMON_CONTAINER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CONTAINER_NAMES_PATH_BYTES = 4096,
	CONTAINER_NAMES_UNIT_BYTES = 256,
	CONTAINER_NAMES_CONTAINER_BYTES = 64 + 1,
	CONTAINER_NAMES_POD_BYTES = 36 + 1,
};

/* By the path of the cgroup. */
struct container_names {
	char path[CONTAINER_NAMES_PATH_BYTES]; /* "/system.slice/redis-server.service" */
	char unit
	    [CONTAINER_NAMES_UNIT_BYTES]; /* "redis-server.service"; below a user's manager, the inner unit */
	char container_id[CONTAINER_NAMES_CONTAINER_BYTES];
	char pod_uid[CONTAINER_NAMES_POD_BYTES]; /* with '-' */
};

/* Parses the text of /proc/PID/cgroup, of version 1 and 2 (cgroups(7)). Pure. The process' own cgroup is
 * that of version 2 if it is below the root, else that of the memory controller, else that of systemd, else
 * the first. All names are "" if none is found. */
void container_names_parse(struct container_names *names, const char *text);

/* The same for one path. */
void container_names_of_path(struct container_names *names, const char *path);

/* ---- the pod's names */

#define CONTAINER_NAMES_LOGS "/var/log/pods"

enum { CONTAINER_NAMES_POD_NAME_BYTES = 256 };

/* Without the API of Kubernetes: the kubelet keeps logs in /var/log/pods/NAMESPACE_POD_UID/CONTAINER/, and
 * the uid is known from the cgroup. */
struct container_names_pod {
	char namespace[CONTAINER_NAMES_POD_NAME_BYTES], pod[CONTAINER_NAMES_POD_NAME_BYTES];
	/* "": the pod has several containers, and it is not known which one */
	char container[CONTAINER_NAMES_POD_NAME_BYTES];
};

/* Parses the name of a pod's folder of logs. False if it is not of the pod with that uid. Pure. */
bool container_names_parse_pod(struct container_names_pod *names, const char *folder, const char *uid);

/* Looks for the pod's folder below `logs`. False if there is none, or if it cannot be read. */
bool container_names_find_pod(
    struct container_names_pod *names, const char *logs, const char *uid, const char *container_id);

#endif
