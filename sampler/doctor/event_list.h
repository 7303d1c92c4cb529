/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap events: which perf events there are, and whether `record -e` can sample them here. */
#ifndef SAMPLER_DOCTOR_EVENT_LIST_H
#define SAMPLER_DOCTOR_EVENT_LIST_H

struct options;

/* The command. Returns the exit status. */
int event_list_run(struct options *options);

#endif
