/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a pod and its container, without the API of Kubernetes: the kubelet keeps logs in
 * /var/log/pods/NAMESPACE_POD_UID/CONTAINER/, and the uid is known from the cgroup.
 */
#ifndef SAMPLER_CMD_DAEMON_POD_NAMES_H
#define SAMPLER_CMD_DAEMON_POD_NAMES_H

#include <stdbool.h>

#define POD_NAMES_LOGS "/var/log/pods"

enum { POD_NAMES_BYTES = 256 };

struct pod_names {
	char namespace[POD_NAMES_BYTES], pod[POD_NAMES_BYTES];
	char container
	    [POD_NAMES_BYTES]; /* "": the pod has several containers, and it is not known which one */
};

/* Parses the name of such a folder. False if it is not of the pod with that uid. Pure. */
bool pod_names_parse(struct pod_names *names, const char *folder, const char *uid);

/* Looks for the pod's folder below `logs`. False if there is none, or if it cannot be read. */
bool pod_names_find(struct pod_names *names, const char *logs, const char *uid, const char *container_id);

#endif
