/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/timeline.h"

#include "pprof/text/json.h"
#include "proto/weight.h"
#include "sampler/linux/clock.h"
#include "sampler/linux/proc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_NS (UINT64_C(1) * 1000000000)

static void read_memory(struct timeline_point *point, pid_t pid)
{
	char text[PROC_STATUS_BYTES];

	point->rss_bytes = point->swap_bytes = UINT64_MAX;
	if (pid <= 0 || proc_read(pid, "status", text, sizeof(text)) <= 0)
		return;
	const unsigned long long rss_kib = proc_status_number(text, "\nVmRSS:", 10, ULLONG_MAX),
	                         threads = proc_status_number(text, "\nThreads:", 10, 0);
	if (rss_kib == ULLONG_MAX ||
	    !threads) /* a zombie, or the text is cut off before its last line here */
		return;
	point->rss_bytes = rss_kib << 10;
	point->swap_bytes = proc_status_number(text, "\nVmSwap:", 10, 0) << 10;
	point->threads = (uint32_t)threads;
}

static void thin(struct timeline *timeline)
{
	size_t kept = 0;

	for (size_t i = 0; i < timeline->count; i += 2)
		timeline->points[kept++] = timeline->points[i];
	timeline->count = kept;
	timeline->step_ns *= 2;
}

bool timeline_note(struct timeline *timeline, const struct region_place *place, pid_t pid, uint64_t lost,
    uint64_t now_ns, bool in_any_case)
{
	if (now_ns < timeline->due_ns && !in_any_case)
		return false;
	if (!timeline->points) {
		timeline->points = calloc(TIMELINE_POINTS, sizeof(*timeline->points));
		timeline->step_ns = STEP_NS;
		if (!timeline->points)
			return false;
	}
	if (timeline->count == TIMELINE_POINTS)
		thin(timeline);
	timeline->due_ns = now_ns + timeline->step_ns;
	struct tally live = region_read_tally(&place->live), allocated = region_read_tally(&place->allocated);
	struct timeline_point point = {
	    .time_ns = now_ns,
	    .inuse_bytes = (double)(int64_t)live.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT),
	    .inuse_objects = (double)(int64_t)live.objects_q16 / (1 << WEIGHT_OBJECTS_SHIFT),
	    .allocated_bytes = (double)allocated.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT),
	    .samples = allocated.samples,
	    .lost = lost,
	};
	read_memory(&point, pid);
	timeline->points[timeline->count++] = point;
	return true;
}

void timeline_fini(struct timeline *timeline)
{
	free(timeline->points);
	timeline->points = NULL;
	timeline->count = 0;
}

static void print_point(
    struct json *json, const struct timeline_point *p, const struct timeline_point *before, int64_t offset_ns)
{
	int64_t unix_ms = ((int64_t)p->time_ns + offset_ns) / CLOCK_NS_PER_MS;
	double seconds = before ? (double)(p->time_ns - before->time_ns) / CLOCK_NS_PER_S : 0;
	double rate = before && seconds > 0 ? (p->allocated_bytes - before->allocated_bytes) / seconds : 0;

	json_object(json, NULL);
	json_number(json, "time", (double)unix_ms / 1000, 3);
	json_number(json, "inuse_bytes", p->inuse_bytes, 0);
	json_number(json, "inuse_objects", p->inuse_objects, 0);
	json_number(json, "alloc_bytes", p->allocated_bytes, 0);
	json_number(json, "alloc_bytes_per_second", rate, 0);
	json_integer(json, "samples", (int64_t)p->samples);
	json_integer(json, "lost", (int64_t)p->lost);
	if (p->rss_bytes != UINT64_MAX) {
		json_integer(json, "rss_bytes", (int64_t)p->rss_bytes);
		json_integer(json, "swap_bytes", (int64_t)p->swap_bytes);
		json_integer(json, "threads", p->threads);
		json_number(json, "rss_minus_inuse_bytes", (double)p->rss_bytes - p->inuse_bytes, 0);
	}
	json_end(json);
}

char *timeline_print(const struct timeline *timeline, int64_t unix_offset_ns, size_t *bytes)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);

	if (!out)
		return NULL;
	struct json json = {.out = out, .lines = true};
	for (size_t i = 0; i < timeline->count; i++)
		print_point(&json, &timeline->points[i], i ? &timeline->points[i - 1] : NULL, unix_offset_ns);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
