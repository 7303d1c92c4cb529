/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/timeline_sum.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_NS_MIN INT64_C(1000000000)

/* What is known of a process at the present moment. */
struct present {
	const struct api_point *last; /* its last point; NULL: there is none yet, or it has ended */
	size_t left;                  /* the number of its later points */
	bool seen, has_profile;       /* seen: it had a point. has_profile: it had a profile */
};

static int compare(const void *left, const void *right)
{
	const struct timeline_sum_event *a = left, *b = right;

	if (a->point.time_ns != b->point.time_ns)
		return a->point.time_ns < b->point.time_ns ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

/* Does a process end with this point? */
static bool is_left(const struct timeline_sum_input *input, const struct present *present)
{
	for (size_t i = 0; i < input->process_count; i++)
		if (present[i].last && !present[i].left && !input->processes[i].running)
			return true;
	return false;
}

static struct api_point sum_at(
    const struct timeline_sum_input *input, const struct present *present, int64_t time_ns)
{
	struct api_point sum = {.time_ns = time_ns, .known = true};
	bool have_profiles = true;

	for (size_t i = 0; i < input->process_count; i++) {
		const struct api_point *last = present[i].last;
		const int64_t start_ns = input->processes[i].start_ns;

		if (!last) {
			sum.missing += !present[i].seen && present[i].left && start_ns && start_ns <= time_ns;
			continue;
		}
		sum.processes++;
		have_profiles = have_profiles && present[i].has_profile;
		sum.value += last->value;
		sum.error += last->error;
		sum.samples += last->samples;
		sum.known = sum.known && last->known;
		if (sum.rss_bytes >= 0)
			sum.rss_bytes = last->rss_bytes < 0 ? -1 : sum.rss_bytes + last->rss_bytes;
	}
	if (have_profiles && !sum.missing && !is_left(input, present))
		snprintf(sum.id, sizeof(sum.id), "at-%" PRId64, time_ns);
	return sum;
}

static void take(const struct timeline_sum_event *event, struct present *present)
{
	struct present *of = &present[event->process];

	of->last = &event->point;
	of->seen = true;
	of->has_profile = of->has_profile || event->point.id[0];
	of->left--;
}

/* Drops processes that have ended, when their last point has been counted. */
static void leave(const struct timeline_sum_input *input, struct present *present)
{
	for (size_t i = 0; i < input->process_count; i++)
		if (!present[i].left && !input->processes[i].running)
			present[i].last = NULL;
}

int timeline_sum_make(const struct timeline_sum_input *input, struct api_point *points, size_t *count)
{
	struct present *present = calloc(input->process_count + 1, sizeof(*present));
	struct timeline_sum_event *events = input->events;
	const size_t all = input->event_count;
	int64_t step_ns;

	*count = 0;
	if (!present)
		return -ENOMEM;
	if (all)
		qsort(events, all, sizeof(*events), compare);
	for (size_t i = 0; i < all; i++)
		present[events[i].process].left++;
	step_ns = all
	    ? (events[all - 1].point.time_ns - events[0].point.time_ns) / (TIMELINE_SUM_POINTS - 1) + 1
	    : 0;
	step_ns = step_ns < STEP_NS_MIN ? STEP_NS_MIN : step_ns;
	for (size_t i = 0, next; i < all; i = next) {
		bool has_profile = false;

		for (next = i; next < all && events[next].point.time_ns - events[i].point.time_ns < step_ns;
		     next++) {
			take(&events[next], present);
			has_profile = has_profile || events[next].point.id[0];
		}
		if (events[next - 1].point.time_ns >= input->from_ns) {
			points[*count] = sum_at(input, present, events[next - 1].point.time_ns);
			if (!has_profile)
				points[*count].id[0] = '\0';
			++*count;
		}
		leave(input, present);
	}
	free(present);
	return 0;
}
