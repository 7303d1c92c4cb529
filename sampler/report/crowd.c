/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/crowd.h"

#include "pprof/text/text.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS_SHOWN = 4 };

struct program {
	const char *name;
	size_t count;
};

static int compare_names(const void *left, const void *right)
{
	return strcmp(((const struct program *)left)->name, ((const struct program *)right)->name);
}

static int compare_counts(const void *left, const void *right)
{
	const struct program *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Sorts and counts them in place; returns how many are different. */
static size_t programs_count(struct program *programs, size_t count)
{
	size_t different = 0;

	qsort(programs, count, sizeof(*programs), compare_names);
	for (size_t i = 0; i < count; i++) {
		if (different && strcmp(programs[different - 1].name, programs[i].name) == 0)
			programs[different - 1].count++;
		else
			programs[different++] = programs[i];
	}
	qsort(programs, different, sizeof(*programs), compare_counts);
	return different;
}

static void programs_print(struct crowd *crowd, struct program *programs, size_t count)
{
	size_t different = programs_count(programs, count), shown;

	for (shown = 0; shown < different && shown < PROGRAMS_SHOWN; shown++) {
		text_append(crowd->programs, sizeof(crowd->programs), "%s%s", shown ? ", " : "",
		    programs[shown].name);
		if (programs[shown].count > 1)
			text_append(
			    crowd->programs, sizeof(crowd->programs), " (%zu)", programs[shown].count);
	}
	if (shown < different)
		text_append(crowd->programs, sizeof(crowd->programs), " and %zu more program%s",
		    different - shown, different - shown == 1 ? "" : "s");
}

/* False: it does not say. Deltas of older versions count from the start of their process. */
static bool samples_add(struct crowd *crowd, const struct origin *origin)
{
	const char *inherited = strstr(origin->samples, ORIGIN_LOST_INHERITED " ");
	uint64_t taken, lost = 0;

	if (sscanf(origin->samples, "%" SCNu64 " taken, %" SCNu64 " lost", &taken, &lost) < 1 ||
	    (origin->kind == ORIGIN_DELTA && !strstr(origin->samples, ORIGIN_OF_INTERVAL)))
		return false;
	crowd->taken += taken;
	crowd->lost += lost;
	if (inherited)
		crowd->lost_inherited += strtoull(inherited + strlen(ORIGIN_LOST_INHERITED " "), NULL, 10);
	return true;
}

/* Of several profiles the sum; what each lost by which cause is in the profiles. States of one process count
 * the same samples, so theirs cannot be added up. */
static void samples_print(
    struct crowd *crowd, const struct origin *const *origins, size_t count, bool counted)
{
	bool parts = true;

	for (size_t i = 0; i < count; i++)
		parts = parts && origins[i]->kind == ORIGIN_DELTA;
	if (count == 1) {
		text_append(crowd->samples, sizeof(crowd->samples), "%s", origins[0]->samples);
		return;
	}
	if (!counted || (count > crowd->process_count && !parts))
		return;
	text_append(crowd->samples, sizeof(crowd->samples), "%" PRIu64 " taken", crowd->taken);
	if (!*origins[0]->event)
		text_append(crowd->samples, sizeof(crowd->samples), ", %" PRIu64 " lost stacks", crowd->lost);
	if (crowd->lost_inherited)
		text_append(crowd->samples, sizeof(crowd->samples), ", " ORIGIN_LOST_INHERITED " %" PRIu64,
		    crowd->lost_inherited);
}

int crowd_make(struct crowd *crowd, const struct origin *const *origins, size_t count, size_t process_count)
{
	struct program *programs = calloc(count + 1, sizeof(*programs));
	bool counted = true;

	*crowd = (struct crowd){.file_count = count, .process_count = process_count};
	if (!programs)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct origin *o = origins[i];

		programs[i] = (struct program){*o->program ? o->program : "unknown program", 1};
		crowd->ended += origin_is_last(o);
		crowd->detached += origin_is_detach(o);
		crowd->gaps |= o->gaps;
		counted = samples_add(crowd, o) && counted;
		if (!i || o->period < crowd->period_least)
			crowd->period_least = o->period;
		if (!i || o->period > crowd->period_most)
			crowd->period_most = o->period;
	}
	samples_print(crowd, origins, count, counted);
	programs_print(crowd, programs, count);
	crowd->programs[utf8_valid_prefix(crowd->programs, strlen(crowd->programs))] =
	    '\0'; /* it may be cut */
	free(programs);
	return 0;
}

const char *crowd_describe(const struct crowd *crowd, char *text, size_t text_bytes)
{
	text[0] = '\0';
	if (crowd->process_count > 1)
		text_append(text, text_bytes, "%zu processes: %s", crowd->process_count, crowd->programs);
	return text;
}
