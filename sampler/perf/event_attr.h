/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel is asked for when an event is opened, and whether it gives it.
 */
#ifndef SAMPLER_PERF_EVENT_ATTR_H
#define SAMPLER_PERF_EVENT_ATTR_H

#include "sampler/perf/event.h"

/* Both are disabled and inherited. The tracker tells of mappings, forks, execs and ends, and samples nothing.
 * */
void event_attr_tracker(struct perf_event_attr *attr);
void event_attr_part(
    struct perf_event_attr *attr, const struct event *event, uint32_t part, uint32_t dump_bytes);

/* Does the kernel say how many samples of an event were lost (Linux 6.0)? As event_try found. */
bool event_attr_counts_lost(void);

/*
 * Can this user sample the event here? Opens it, on ourselves, and closes it again. Takes the kernel's side
 * off the event (kernel_refused) where that is not permitted and was not asked for. 0, or -errno with a
 * clause in `reason`, and what mends it in `mend` ("" if nothing does).
 */
int event_try(struct event *event, char *reason, size_t reason_bytes, const char **mend);

#endif
