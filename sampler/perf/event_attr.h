/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes with which events are opened, and a trial that tells whether the kernel accepts them.
 */
#ifndef SAMPLER_PERF_EVENT_ATTR_H
#define SAMPLER_PERF_EVENT_ATTR_H

#include "sampler/perf/event.h"

/* Fill in `attr`. Both kinds are disabled and inherited. The tracker reports mappings, forks, execs and
 * exits, and samples nothing. */
void event_attr_tracker(struct perf_event_attr *attr);
void event_attr_part(
    struct perf_event_attr *attr, const struct event *event, uint32_t part, uint32_t dump_bytes);

/*
 * Can this user sample the event here? Opens it on ourselves and closes it again. If the user may not see the
 * kernel's side and did not ask for it, removes it from the event (kernel_refused). Returns 0, or -errno with
 * a clause in `reason` and the remedy in `remedy` ("" if there is none).
 */
int event_try(struct event *event, char *reason, size_t reason_bytes, const char **remedy);

enum { EVENTS_ERROR_BYTES = 1024 };

/*
 * The events that a user chose: parses each text into events[0..count) (event_parse), tries it on this
 * machine, and rejects two that would clash. Returns 0, or -EINVAL with one line (no newline) in `error`.
 */
int events_choose(
    const char *const *texts, size_t count, struct event *events, char error[EVENTS_ERROR_BYTES]);

#endif
