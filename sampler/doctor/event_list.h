/* SPDX-License-Identifier: Apache-2.0 */
/* What events there are: the command `heaptap events`, and those that `record -e` was given. */
#ifndef SAMPLER_DOCTOR_EVENT_LIST_H
#define SAMPLER_DOCTOR_EVENT_LIST_H

struct options;

/* Looks the events of -e up and tries each. Sets options->events, or says in one line what is wrong and
 * returns -EINVAL. */
int event_list_prepare(struct options *options);

/* The command. Returns the exit status. */
int event_list_run(struct options *options);

#endif
