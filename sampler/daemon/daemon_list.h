/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon answers to "list" (sampler/control/control_list.h). */
#ifndef SAMPLER_DAEMON_DAEMON_LIST_H
#define SAMPLER_DAEMON_DAEMON_LIST_H

struct control_list_writer;
struct core;

/* For struct core_handlers. */
void daemon_list_write(struct core *core, struct control_list_writer *writer);

#endif
