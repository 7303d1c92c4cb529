/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that are never profiled, whatever the configuration says: pid 1, and those that everything
 * else on the machine depends on. They are known by the name of the executable's file and by comm. A process
 * that takes such a name only denies itself.
 */
#ifndef SAMPLER_CMD_DAEMON_DENY_LIST_H
#define SAMPLER_CMD_DAEMON_DENY_LIST_H

struct process_facts;

/* The group of programs that denies the process ("systemd or init"), or NULL. Pure. */
const char *deny_list_find(const struct process_facts *facts);

#endif
