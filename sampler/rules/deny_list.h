/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is never profiled, whatever the configuration says: pid 1, and programs that everything else on the
 * machine depends on. Judged by the name of the executable's file and by comm; who changes his own names
 * only denies himself.
 */
#ifndef SAMPLER_RULES_DENY_LIST_H
#define SAMPLER_RULES_DENY_LIST_H

struct process_facts;

/* Why ("systemd", "a container runtime"), or NULL. Pure. */
const char *deny_list_find(const struct process_facts *facts);

#endif
