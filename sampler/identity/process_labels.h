/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels of a process, from its facts: a comment of its profiles, `labels: service_name=.. host=..
 * unit=.. container_id=.. pod_uid=.. namespace=.. pod=.. container=..`, which pushers and pages read
 * (pprof/profile/labels.h).
 *
 * service_name is, in this order: the rule's; OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES (or
 * DD_SERVICE); OTel's process context; the systemd unit without its suffix; the pod's namespace/container;
 * the container; the executable.
 */
#ifndef SAMPLER_IDENTITY_PROCESS_LABELS_H
#define SAMPLER_IDENTITY_PROCESS_LABELS_H

#include "pprof/profile/labels.h"
#include "pprof/service/service_name.h"

struct process_facts;

/* Its own name, without a rule. Not cleaned: "shop/checkout". Pure. */
void process_labels_service(const struct process_facts *facts, char *name, size_t name_bytes);

/* Who may choose that name as he likes, and so answers for all of his: "uid-1000" (who has logged in,
 * whatever user ids his containers have), "pod-ID", "container-ID", "unit-sshd" (for all instances of a
 * template). Pure. */
void process_labels_owner(const struct process_facts *facts, char *owner, size_t owner_bytes);

/* service: of the rule, or what process_labels_service() says. Labels in `given` (of the rule; NULL: none)
 * come first and win. Pure. 0 or -ENOMEM; labels_fini() is due in any case. */
int process_labels_make(struct labels *labels, const struct process_facts *facts, const char *service,
    const char *host, const struct labels *given);

#endif
