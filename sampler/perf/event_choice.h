/* SPDX-License-Identifier: Apache-2.0 */
/* The events that a user chose: parses each, tries it on this machine, and rejects two that would clash. */
#ifndef SAMPLER_PERF_EVENT_CHOICE_H
#define SAMPLER_PERF_EVENT_CHOICE_H

#include "sampler/perf/event.h"

enum { EVENT_CHOICE_ERROR_BYTES = 1024 };

/* Fills in events[0..count) from their texts, as event_parse() takes them. Returns 0, or -EINVAL with one
 * line (no newline) in `error`. */
int event_choice_prepare(
    const char *const *texts, size_t count, struct event *events, char error[EVENT_CHOICE_ERROR_BYTES]);

#endif
