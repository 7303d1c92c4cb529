/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/event_choice.h"

#include "sampler/perf/event_attr.h"

#include <errno.h>
#include <stdio.h>

/* It is also an error if the event clashes with an earlier one. */
static int event_choice_add(const char *text, struct event *events, size_t number, char *error)
{
	char reason[256];
	const char *fix;

	if (event_parse(text, &events[number], error, EVENT_CHOICE_ERROR_BYTES) != 0)
		return -EINVAL;
	if (event_try(&events[number], reason, sizeof(reason), &fix) != 0) {
		snprintf(error, EVENT_CHOICE_ERROR_BYTES, "event '%s' cannot be sampled: %s%s%s",
		    events[number].text, reason, fix[0] ? "; fix: " : "", fix);
		return -EINVAL;
	}
	for (size_t i = 0; i < number; i++) {
		if (!event_clashes(&events[i], &events[number]))
			continue;
		snprintf(error, EVENT_CHOICE_ERROR_BYTES,
		    "event '%s' cannot be sampled beside '%s': the kernel cannot tell them apart and would "
		    "mix "
		    "their samples up",
		    events[number].text, events[i].text);
		return -EINVAL;
	}
	return 0;
}

int event_choice_prepare(
    const char *const *texts, size_t count, struct event *events, char error[EVENT_CHOICE_ERROR_BYTES])
{
	for (size_t i = 0; i < count; i++)
		if (event_choice_add(texts[i], events, i, error))
			return -EINVAL;
	return 0;
}
