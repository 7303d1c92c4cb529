/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels of a process, from its facts: a comment of its profiles, `labels: service_name=.. host=..
 * unit=.. container_id=.. pod_uid=.. namespace=.. pod=.. container=..`, which pushers and pages read
 * (pprof/model/labels.h).
 *
 * service_name is, in this order: the rule's; OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES (or
 * DD_SERVICE); OTel's process context; the systemd unit without its suffix; the pod's namespace/container;
 * the container; the executable.
 */
#ifndef SAMPLER_CMD_DAEMON_PROCESS_LABELS_H
#define SAMPLER_CMD_DAEMON_PROCESS_LABELS_H

#include "pprof/model/labels.h"
#include "pprof/store/service_name.h"

struct process_facts;

/* The service name of a process without a rule. It is not cleaned: "shop/checkout". Pure. */
void process_labels_service(const struct process_facts *facts, char *name, size_t name_bytes);

/* The account of a process: who can choose its service name, and so is limited together with all that he
 * runs. "uid-1000" (the user who has logged in, whatever user ids his containers have), "pod-ID",
 * "container-ID", or "unit-sshd" (for all instances of a template). Pure. */
void process_labels_owner(const struct process_facts *facts, char *owner, size_t owner_bytes);

/* Makes the labels. service: the rule's name, or that of process_labels_service(). given: the labels of
 * the rule, which win; NULL: none. 0 or -ENOMEM; call labels_fini() in both cases. Pure. */
int process_labels_make(struct labels *labels, const struct process_facts *facts, const char *service,
    const char *host, const struct labels *given);

#endif
