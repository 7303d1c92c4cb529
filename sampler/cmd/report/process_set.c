/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/process_set.h"

#include "pprof/text/text.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS_SHOWN = 4 };

struct program {
	const char *name;
	size_t count;
};

static int compare_programs(const void *left, const void *right)
{
	const struct program *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int describe_programs(struct process_set *set, const struct origin *const *origins, size_t count)
{
	struct program *programs = calloc(count + 1, sizeof(*programs));
	size_t different = 0, shown;

	if (!programs)
		return -ENOMEM;
	for (size_t i = 0, p; i < count; i++) {
		const char *name = *origins[i]->program ? origins[i]->program : "unknown program";

		for (p = 0; p < different && strcmp(programs[p].name, name) != 0; p++)
			;
		different += p == different;
		programs[p].name = name;
		programs[p].count++;
	}
	qsort(programs, different, sizeof(*programs), compare_programs);
	for (shown = 0; shown < different && shown < PROGRAMS_SHOWN; shown++) {
		text_append(
		    set->programs, sizeof(set->programs), "%s%s", shown ? ", " : "", programs[shown].name);
		if (programs[shown].count > 1)
			text_append(set->programs, sizeof(set->programs), " (%zu)", programs[shown].count);
	}
	if (shown < different)
		text_append(set->programs, sizeof(set->programs), " and %zu more program%s",
		    different - shown, different - shown == 1 ? "" : "s");
	/* it may be cut */
	set->programs[utf8_valid_prefix(set->programs, strlen(set->programs))] = '\0';
	free(programs);
	return 0;
}

/* False: it does not say. */
static bool add_samples(struct process_set *set, const struct origin *origin)
{
	const char *inherited = strstr(origin->samples, ORIGIN_LOST_INHERITED " ");
	uint64_t taken, lost = 0;

	if (sscanf(origin->samples, "%" SCNu64 " taken, %" SCNu64 " lost", &taken, &lost) < 1)
		return false;
	set->taken += taken;
	set->lost += lost;
	if (inherited)
		set->lost_inherited += strtoull(inherited + strlen(ORIGIN_LOST_INHERITED " "), NULL, 10);
	return true;
}

static void describe_samples(struct process_set *set, bool has_events)
{
	text_append(set->samples, sizeof(set->samples), "%" PRIu64 " taken", set->taken);
	if (!has_events)
		text_append(set->samples, sizeof(set->samples), ", %" PRIu64 " lost stacks", set->lost);
	if (set->lost_inherited)
		text_append(set->samples, sizeof(set->samples), ", " ORIGIN_LOST_INHERITED " %" PRIu64,
		    set->lost_inherited);
}

int process_set_make(
    struct process_set *set, const struct origin *const *origins, size_t count, size_t process_count)
{
	bool counted = true, deltas = true;

	*set = (struct process_set){.file_count = count, .process_count = process_count};
	for (size_t i = 0; i < count; i++) {
		const struct origin *o = origins[i];

		set->ended += origin_is_last(o);
		set->detached += origin_is_detach(o);
		set->gaps |= o->gaps;
		counted = add_samples(set, o) && counted;
		deltas = deltas && o->kind == ORIGIN_DELTA;
		if (!i || o->period < set->period_least)
			set->period_least = o->period;
		if (!i || o->period > set->period_most)
			set->period_most = o->period;
	}
	/* States of one process count the same samples: theirs cannot be added up. */
	if (count == 1)
		text_append(set->samples, sizeof(set->samples), "%s", origins[0]->samples);
	else if (count && counted && (count <= process_count || deltas))
		describe_samples(set, *origins[0]->event != '\0');
	return describe_programs(set, origins, count);
}

const char *process_set_describe(const struct process_set *set, char *text, size_t text_bytes)
{
	text[0] = '\0';
	if (set->process_count > 1)
		text_append(text, text_bytes, "%zu processes: %s", set->process_count, set->programs);
	return text;
}
