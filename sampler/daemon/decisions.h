/* SPDX-License-Identifier: Apache-2.0 */
/* What is decided about processes that are known already: when the rules, the switch or the room have
 * changed. */
#ifndef SAMPLER_DAEMON_DECISIONS_H
#define SAMPLER_DAEMON_DECISIONS_H

#include <stdbool.h>

struct daemon;
struct process_facts;
struct roster_entry;

/* Whether one more image of such a process may be profiled: images have their share of our memory, and
 * accounts (a login user, a system unit, a container) theirs of that: half. Root in a container is no
 * exception. */
bool decisions_has_room(const struct daemon *daemon, const struct process_facts *facts);

/* The rules have changed, or the switch was moved: decides again about every process that is known. */
void decisions_again(struct daemon *daemon);

/* The same of one that is profiled. */
void decisions_about(struct daemon *daemon, struct roster_entry *entry);

#endif
