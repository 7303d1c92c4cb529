/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap events: lists the perf events, and whether `record -e` can sample them on this machine. */
#ifndef SAMPLER_CMD_DOCTOR_EVENT_LIST_H
#define SAMPLER_CMD_DOCTOR_EVENT_LIST_H

struct options;

/* The command. Returns the exit status. */
int event_list_run(struct options *options);

#endif
