/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/threshold_watch.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/text.h"
#include "proto/weight.h"
#include "sampler/intake/region.h"
#include "sampler/linux/proc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CGROUP_COLUMNS = 60 };

#define RSS_BYTES_PER_S (UINT64_C(4) << 30)

/* What was read of a measure. */
struct measure {
	bool known; /* it was read in this look */
	struct threshold_reading reading;
};

struct threshold_watch {
	struct threshold_settings settings;
	bool has[THRESHOLD_MEMORY_HIGH + 1]; /* is there a rule about it? */
	bool begun[THRESHOLD_MEMORY_HIGH + 1];
	uint64_t rss_due_ns, rss_highest_bytes, peak_order;
	struct memory_high *cgroup;
	struct threshold_state states[]; /* by rule */
};

struct threshold_watch *threshold_watch_new(const struct threshold_settings *settings)
{
	struct threshold_watch *watch =
	    calloc(1, sizeof(*watch) + settings->count * sizeof(watch->states[0]));

	if (!watch)
		return NULL;
	watch->settings = *settings;
	for (size_t i = 0; i < settings->count; i++)
		watch->has[settings->rules[i].measure] = true;
	return watch;
}

void threshold_watch_free(struct threshold_watch *watch)
{
	if (watch)
		memory_high_put(watch->cgroup);
	free(watch);
}

/* ---- reading */

/* The process' counts are not trusted: any number may be there. */
static uint64_t bytes_of(uint64_t bytes_q8)
{
	return (int64_t)bytes_q8 < 0 ? 0 : bytes_q8 >> WEIGHT_BYTES_SHIFT;
}

static void read_inuse(
    struct threshold_watch *watch, const struct region_place *place, struct measure *measure)
{
	struct threshold_reading *reading = &measure->reading;
	uint64_t order = atomic_load(&place->peak_order), peak = bytes_of(atomic_load(&place->peak_bytes_q8));

	reading->bytes = reading->highest_bytes = bytes_of(region_read_tally(&place->live).bytes_q8);
	reading->error_bytes = (uint64_t)sqrt(region_live_variance(place));
	if (order != watch->peak_order && peak > reading->bytes)
		reading->highest_bytes = peak;
	watch->peak_order = order;
	measure->known = true;
}

static void read_alloc(const struct region_place *place, struct measure *measure)
{
	measure->reading.bytes = measure->reading.highest_bytes =
	    bytes_of(region_read_tally(&place->allocated).bytes_q8);
	measure->known = true;
}

/* A zombie and a process that has just ended have no resident memory to read. */
static void read_rss(struct threshold_watch *watch, pid_t pid, struct measure *measure)
{
	char text[PROC_STATUS_BYTES];

	if (pid <= 0 || proc_read(pid, "status", text, sizeof(text)) <= 0)
		return;
	uint64_t kib = proc_status_number(text, "\nVmRSS:", 10, 0);
	uint64_t highest = proc_status_number(text, "\nVmHWM:", 10, 0) << 10;
	if (!kib)
		return;
	measure->reading.bytes = measure->reading.highest_bytes = kib << 10;
	if (highest > watch->rss_highest_bytes && highest > kib << 10)
		measure->reading.highest_bytes = highest;
	watch->rss_highest_bytes = highest;
	measure->known = true;
}

static void plan_rss(struct threshold_watch *watch, const struct measure *rss, uint64_t now_ns)
{
	uint64_t least = RSS_BYTES_PER_S;

	for (size_t i = 0; i < watch->settings.count; i++) {
		const struct threshold *rule = &watch->settings.rules[i];

		if (rule->measure != THRESHOLD_RSS)
			continue;
		uint64_t distance = threshold_distance(rule, &watch->states[i], &rss->reading);
		if (distance < least)
			least = distance;
	}
	watch->rss_due_ns = now_ns + (uint64_t)((double)least / RSS_BYTES_PER_S * CLOCK_NS_PER_S);
}

/* The process has changed its cgroup: crossings that wait were those of the old one. */
static void enter_cgroup(struct threshold_state *state, const struct memory_high *cgroup)
{
	state->crossings_seen = cgroup ? cgroup->crossings : 0;
	state->suppressed += state->waiting;
	state->waiting = 0;
}

/* The process may move to another cgroup. */
static void read_cgroup(
    struct threshold_watch *watch, const struct threshold_subject *subject, uint64_t now_ns)
{
	struct memory_high *before = watch->cgroup;

	if (*subject->cgroup && (!before || strcmp(before->cgroup, subject->cgroup) != 0)) {
		watch->cgroup =
		    memory_high_get(subject->cgroups, subject->cgroup_version, subject->cgroup, NULL, now_ns);
		for (size_t i = 0; i < watch->settings.count; i++)
			if (watch->settings.rules[i].measure == THRESHOLD_MEMORY_HIGH)
				enter_cgroup(&watch->states[i], watch->cgroup);
		memory_high_put(before);
	}
	if (watch->cgroup)
		memory_high_look(watch->cgroup, now_ns);
}

/* ---- causes */

/* The end of a long name tells more than its beginning. */
static void add_cgroup(const struct memory_high_level *level, char *text, size_t text_bytes)
{
	const char *name = memory_high_name(level);
	size_t length = strlen(name);

	text_append(text, text_bytes, "%s%s", length > CGROUP_COLUMNS ? "..." : "",
	    length > CGROUP_COLUMNS ? name + length - CGROUP_COLUMNS : name);
}

static const char *limit_name(int version)
{
	return version == 1 ? "memory.soft_limit" : "memory.high";
}

static void add_cgroup_cause(const struct memory_high *cgroup, char *text, size_t text_bytes)
{
	char limit[AMOUNT_BYTES], usage[AMOUNT_BYTES];

	text_append(text, text_bytes, "%s of cgroup ", limit_name(cgroup->version));
	add_cgroup(cgroup->crossed, text, text_bytes);
	if (cgroup->crossed_bytes)
		text_append(text, text_bytes, ", %s", amount_bytes((double)cgroup->crossed_bytes, usage));
	text_append(text, text_bytes, " >= %s", amount_bytes((double)cgroup->crossed->limit_bytes, limit));
}

/* "rss 2.1 GiB >= 2.0 GiB", "inuse 1.2 GiB +- 20.1 MiB, +300.0 MiB >= +256.0 MiB". If the value has fallen
 * since: "rss 1.0 GiB, was 2.1 GiB >= 2.0 GiB". */
static void add_cause(const struct threshold *rule, const struct threshold_reading *reading,
    uint64_t base_bytes, char *text, size_t text_bytes)
{
	char now[AMOUNT_BYTES], more[AMOUNT_BYTES], limit[AMOUNT_BYTES];
	uint64_t reached = rule->growth ? base_bytes + rule->bytes : rule->bytes;
	bool gone = reading->bytes < reached;
	uint64_t counts = gone ? reading->highest_bytes : reading->bytes;

	text_append(text, text_bytes, "%s %s", threshold_names[rule->measure],
	    amount_bytes((double)reading->bytes, now));
	if (reading->error_bytes)
		text_append(text, text_bytes, " +- %s", amount_bytes((double)reading->error_bytes, more));
	if (gone)
		text_append(text, text_bytes, ", was %s", amount_bytes((double)counts, more));
	if (rule->growth)
		text_append(
		    text, text_bytes, ", +%s", amount_bytes((double)counts - (double)base_bytes, more));
	text_append(
	    text, text_bytes, " >= %s%s", rule->growth ? "+" : "", amount_bytes((double)rule->bytes, limit));
}

/* ---- looking */

/* A forked child began with what it inherited: what is in use now, less what it allocated itself. A process
 * that was there before the session begins with all that it has now. */
static void begin(const struct threshold *rule, struct threshold_state *state, struct measure *measure,
    const struct threshold_subject *subject)
{
	struct threshold_reading first = measure->reading;

	if (rule->measure == THRESHOLD_INUSE && !subject->before) {
		uint64_t own = bytes_of(region_read_tally(&subject->place->allocated).bytes_q8);

		first.bytes = first.bytes > own ? first.bytes - own : 0;
	}
	bool fresh = !subject->forked && !subject->before;
	threshold_begin(rule, state, &first, fresh);
	if (!fresh) /* the highest value was its parent's, or from before the session */
		measure->reading.highest_bytes = measure->reading.bytes;
}

/* The next two functions append the cause if a snapshot is due. */
static bool look_at_cgroup(struct threshold_watch *watch, struct threshold_state *state, uint64_t now_ns,
    char *cause, size_t cause_bytes)
{
	const struct memory_high *cgroup = watch->cgroup;

	if (!cgroup)
		return false;
	bool crossed = cgroup->crossings != state->crossings_seen;
	state->crossings_seen = cgroup->crossings;
	if (!threshold_cross(state, crossed, cgroup->above, now_ns, watch->settings.limit_ns))
		return false;
	add_cgroup_cause(cgroup, cause, cause_bytes);
	return true;
}

static bool look_at_measure(struct threshold_watch *watch, size_t number, struct measure *measure,
    const struct threshold_subject *subject, uint64_t now_ns, char *cause, size_t cause_bytes)
{
	const struct threshold *rule = &watch->settings.rules[number];
	struct threshold_state *state = &watch->states[number];

	if (!measure->known)
		return false;
	if (!watch->begun[rule->measure])
		begin(rule, state, measure, subject);
	uint64_t base_bytes = state->base_bytes;
	if (!threshold_look(rule, state, &measure->reading, now_ns, watch->settings.limit_ns))
		return false;
	add_cause(rule, &measure->reading, base_bytes, cause, cause_bytes);
	return true;
}

/* Reads each measure that a rule is about. Resident memory has a pace of its own. */
static void read_measures(struct threshold_watch *watch, const struct threshold_subject *subject,
    uint64_t now_ns, bool now, struct measure *measures)
{
	if (watch->has[THRESHOLD_INUSE])
		read_inuse(watch, subject->place, &measures[THRESHOLD_INUSE]);
	if (watch->has[THRESHOLD_ALLOC])
		read_alloc(subject->place, &measures[THRESHOLD_ALLOC]);
	if (watch->has[THRESHOLD_RSS] && (now || now_ns >= watch->rss_due_ns))
		read_rss(watch, subject->pid, &measures[THRESHOLD_RSS]);
	if (watch->has[THRESHOLD_MEMORY_HIGH])
		read_cgroup(watch, subject, now_ns);
}

bool threshold_watch_look(struct threshold_watch *watch, const struct threshold_subject *subject,
    uint64_t now_ns, bool now, struct threshold_crossing *crossing)
{
	struct measure measures[THRESHOLD_MEMORY_HIGH + 1] = {0};
	char cause[128];

	crossing->name = NULL;
	crossing->cause[0] = '\0';
	read_measures(watch, subject, now_ns, now, measures);
	for (size_t i = 0; i < watch->settings.count; i++) {
		enum threshold_measure what = watch->settings.rules[i].measure;

		cause[0] = '\0';
		if (what == THRESHOLD_MEMORY_HIGH
		        ? !look_at_cgroup(watch, &watch->states[i], now_ns, cause, sizeof(cause))
		        : !look_at_measure(watch, i, &measures[what], subject, now_ns, cause, sizeof(cause)))
			continue;
		text_append(
		    crossing->cause, sizeof(crossing->cause), "%s%s", crossing->name ? "; " : "", cause);
		if (!crossing->name)
			crossing->name = threshold_names[what];
	}
	for (size_t i = 0; i <= THRESHOLD_MEMORY_HIGH; i++)
		watch->begun[i] = watch->begun[i] || measures[i].known;
	if (measures[THRESHOLD_RSS].known)
		plan_rss(watch, &measures[THRESHOLD_RSS], now_ns);
	return crossing->name != NULL;
}

uint64_t threshold_watch_suppressed(const struct threshold_watch *watch)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < watch->settings.count; i++)
		sum += watch->states[i].suppressed + watch->states[i].waiting;
	return sum;
}

bool threshold_watch_is_about(const struct threshold_watch *watch, enum threshold_measure measure)
{
	return watch->has[measure];
}

struct memory_high *threshold_watch_cgroup(const struct threshold_watch *watch)
{
	return watch->cgroup;
}

void threshold_describe_memory_high(const struct memory_high *watch, char *text, size_t text_bytes)
{
	const struct memory_high_level *level = watch ? memory_high_limited(watch) : NULL;
	char amount[AMOUNT_BYTES];

	text[0] = '\0';
	if (!watch) {
		text_append(text, text_bytes, "the process is in no memory cgroup");
	} else if (level) {
		text_append(text, text_bytes, "%s %s of cgroup ", limit_name(watch->version),
		    amount_bytes((double)level->limit_bytes, amount));
		add_cgroup(level, text, text_bytes);
		if (watch->version == 1)
			text_append(text, text_bytes, " (cgroup v1 has no memory.high)");
	} else if (watch->answer == MEMORY_HIGH_UNREADABLE) {
		text_append(text, text_bytes,
		    watch->cgroup[0] == '/' && !watch->cgroup[1]
		        ? "the process is in the root cgroup, which has no limit"
		        : "the files of its memory cgroup are not readable here");
	} else {
		uint64_t hard = memory_high_hard_limit(watch);

		if (watch->version == 1)
			text_append(text, text_bytes, "cgroup v1 has no memory.high, and ");
		text_append(text, text_bytes, "%s is not set for cgroup ",
		    watch->version == 1 ? "memory.soft_limit_in_bytes, which counts instead,"
		                        : "memory.high");
		add_cgroup(&watch->levels[0], text, text_bytes);
		text_append(text, text_bytes, " or above it");
		if (hard != MEMORY_HIGH_NO_LIMIT)
			text_append(text, text_bytes, "; its hard limit is %s: --on rss= comes before it",
			    amount_bytes((double)hard, amount));
	}
}
