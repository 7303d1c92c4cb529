/* SPDX-License-Identifier: Apache-2.0 */
/* What a session answers to "list" (sampler/control/control_list.h). */
#ifndef SAMPLER_SESSION_SESSION_LIST_H
#define SAMPLER_SESSION_SESSION_LIST_H

struct control_list_writer;
struct core;

/* For struct core_handlers. */
void session_list_write(struct core *core, struct control_list_writer *writer);

#endif
