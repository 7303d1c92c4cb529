/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/export/answer.h"

#include "pprof/analysis/row_label.h"
#include "pprof/analysis/totals.h"
#include "pprof/export/growth_text.h"
#include "pprof/model/estimate.h"
#include "pprof/text/amount.h"
#include "pprof/text/short_name.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMNS = 72, NAME_BYTES = 4 * NAME_COLUMNS + 8 };

/* Less than this part of the peak at the end is what a program leaves behind, not what it needs. */
#define LEFT_PART           0.1
/* What a function mostly called is worth a word from this part on. */
#define THROUGH_PART        0.5
/* A rise of resident memory is looked at as if this were one sample of it. */
#define RESIDENT_STEP_BYTES (512.0 * 1024)
/* The heap has a part in what resident memory grows by, if it rose by more than this part of that. */
#define HEAP_PART           0.25

static const char *name_of(const struct traces *t, uint32_t frame, char text[NAME_BYTES])
{
	short_name_fit(t->frames.rows[frame].label, NAME_COLUMNS, "...", text, NAME_BYTES);
	return text;
}

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* ---- what is held */

/* Functions that the system's libraries have below each program: a stack that is headed by one of them has no
 * function of the program. */
static bool is_start_up(const char *name)
{
	static const char *const names[] = {
	    "_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone", "clone3"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, "__libc_start_main@", strlen("__libc_start_main@")) == 0;
}

static bool is_function(const struct traces *t, uint32_t frame)
{
	const struct frames_row *row = &t->frames.rows[frame];

	return row->role != FRAME_UNNAMED && row->name[0] != '[' && !is_start_up(row->name);
}

struct holding {
	const struct traces *traces;
	size_t column;
	struct totals totals; /* of what is selected, sorted */
	double bytes;
	double *values; /* by row of the traces, for callers_find() */
};

static void holding_fini(struct holding *holding)
{
	totals_fini(&holding->totals);
	free(holding->values);
}

/* 0, -ENOMEM, or -EFBIG. */
static int holding_make(struct holding *holding, const struct traces *t, size_t column)
{
	int err;

	*holding = (struct holding){.traces = t, .column = column};
	holding->values = calloc((size_t)t->row_count + 1, sizeof(*holding->values));
	if (!holding->values)
		return -ENOMEM;
	err = totals_make(&holding->totals, t, column, MEASURE_INUSE);
	if (err)
		return err;
	totals_sort(&holding->totals, t, TOTALS_BY_FLAT);
	for (size_t row = 0; row < t->row_count; row++)
		holding->values[row] = (double)traces_value(t, row, column, MEASURE_INUSE);
	holding->bytes = (double)holding->totals.sum.value;
	return 0;
}

/* " (> std::make_shared)" */
static void append_callee(char *text, const struct holding *holding, uint32_t frame)
{
	const struct traces *t = holding->traces;
	struct callers callers;
	char name[NAME_BYTES];

	if (callers_find(&callers, t, holding->values, frame) != 0)
		return;
	const bool library = callers.library_share >= THROUGH_PART;
	if (library || callers.through_share >= THROUGH_PART)
		text_append(text, ANSWER_BYTES, " (> %s)",
		    name_of(t, library ? callers.library : callers.through, name));
}

/* ", 93 % of it by f" */
static void append_share(char *text, const struct holding *holding, const struct totals_row *row, bool more)
{
	const double percent = 100 * (double)row->flat.value / holding->bytes;

	if (percent >= 99.5)
		text_append(text, ANSWER_BYTES, ", all of it by ");
	else
		text_append(text, ANSWER_BYTES, percent < 0.95 ? ", %.1f %% %sby " : ", %.0f %% %sby ",
		    percent, more ? "" : "of it ");
}

static const struct totals_row *first_function(const struct holding *holding)
{
	for (size_t i = 0; i < holding->totals.count; i++)
		if (holding->totals.rows[i].flat.value > 0 &&
		    is_function(holding->traces, holding->totals.rows[i].frame))
			return &holding->totals.rows[i];
	return NULL;
}

/* Who holds it: the first row, which is said to have no name if that is so, and the first with a name. */
static void append_holders(struct answer *answer, const struct holding *holding)
{
	const struct traces *t = holding->traces;
	const struct totals_row *first = holding->totals.rows, *named = first_function(holding);
	char name[NAME_BYTES];

	if (t->options.by != GROUP_FUNCTION || holding->bytes <= 0 || !holding->totals.count ||
	    first->flat.value <= 0)
		return;
	if (first != named) {
		append_share(answer->held, holding, first, false);
		text_append(answer->held, ANSWER_BYTES, "code without a function's name (%s)",
		    name_of(t, first->frame, name));
	}
	if (!named)
		return;
	append_share(answer->held, holding, named, first != named);
	text_append(answer->held, ANSWER_BYTES, "%s", name_of(t, named->frame, name));
	append_callee(answer->held, holding, named->frame);
	answer->held_function = t->frames.rows[named->frame].name;
}

/* "53.1 MiB +- 5.1 MiB", or how few samples it is from. */
static void append_bytes(char *text, const struct holding *holding, const char *what)
{
	const struct totals_sum *sum = &holding->totals.sum;
	const bool is_estimate = !holding->traces->unsure && sum->variance > 0;
	const bool is_few = is_estimate && estimate_is_few(holding->bytes, sum->samples, sum->variance);
	const long samples = lround(fmax(sum->samples, 1));
	char amount[AMOUNT_BYTES], error[AMOUNT_BYTES];

	text_append(text, ANSWER_BYTES, "%s", amount_bytes(holding->bytes, amount));
	if (is_estimate && !is_few)
		text_append(text, ANSWER_BYTES, " +- %s", amount_bytes(sqrt(sum->variance), error));
	text_append(text, ANSWER_BYTES, " %s", what);
	if (is_few)
		text_append(
		    text, ANSWER_BYTES, " (by %ld sample%s only: a hint)", samples, plural((size_t)samples));
}

static const char *when(const struct answer_facts *facts)
{
	return facts->is_peak ? " at the peak" : facts->has_ended ? " at the end" : "";
}

static bool is_selected(const struct holding *holding)
{
	return holding->totals.sum.value != traces_all(holding->traces, holding->column, MEASURE_INUSE);
}

/* 0 or an error; what is held now is worth no second look if it is nothing. */
static int describe_peak(struct answer *answer, const struct answer_facts *facts)
{
	struct holding peak;
	int err = holding_make(&peak, facts->traces, facts->peak);

	if (!err && peak.bytes > 0) {
		text_append(answer->held, ANSWER_BYTES, "; ");
		append_bytes(answer->held, &peak, "at the peak");
		append_holders(answer, &peak);
	}
	holding_fini(&peak);
	return err;
}

static double peak_bytes(const struct answer_facts *facts)
{
	double sum = 0;

	for (size_t row = 0; facts->has_peak && row < facts->traces->row_count; row++)
		sum += (double)traces_value(facts->traces, row, facts->peak, MEASURE_INUSE);
	return sum;
}

static bool has_any(const struct answer_facts *facts, enum measure_kind kind)
{
	return traces_has(facts->traces, kind) && traces_all(facts->traces, facts->column, kind) != 0;
}

/* Nothing of what was allocated was sampled, which says nothing of what is in use. A block may have no
 * bytes. */
static bool is_unsampled(const struct answer_facts *facts)
{
	return traces_has(facts->traces, MEASURE_ALLOC) && !has_any(facts, MEASURE_ALLOC) &&
	    !has_any(facts, MEASURE_INUSE) && !has_any(facts, MEASURE_OBJECTS) &&
	    !has_any(facts, MEASURE_INUSE_OBJECTS);
}

static int describe_held(struct answer *answer, const struct answer_facts *facts)
{
	const struct traces *t = facts->traces;
	const bool is_sampled = !t->unsure && traces_doubt_all(t, facts->column, MEASURE_ALLOC).variance > 0;
	struct holding now;
	char what[128];
	int err = holding_make(&now, t, facts->column);

	if (err) {
		holding_fini(&now);
		return err;
	}
	const bool is_left = facts->has_ended && !facts->is_peak && now.bytes < LEFT_PART * peak_bytes(facts);

	snprintf(what, sizeof(what), "in use%s%s%s", when(facts),
	    is_selected(&now) ? ", of what is selected" : "",
	    facts->is_attached ? ", of what was allocated since heaptap attached" : "");
	if (is_unsampled(facts))
		text_append(answer->held, ANSWER_BYTES, "No allocation was sampled");
	else if (now.bytes == 0)
		text_append(
		    answer->held, ANSWER_BYTES, "Nothing%s is %s", is_sampled ? " sampled" : "", what);
	else
		append_bytes(answer->held, &now, what);
	if (is_left)
		err = describe_peak(answer, facts);
	else if (!is_unsampled(facts))
		append_holders(answer, &now);
	text_append(answer->held, ANSWER_BYTES, ".");
	holding_fini(&now);
	return err;
}

/* ---- what grows */

static void describe_growing(struct answer *answer, const struct answer_facts *facts, double series_s)
{
	const struct growth *growth = facts->growth;
	const struct growth_row *row = &growth->rows[0];
	const struct trend *trend = &row->trend;
	char name[NAME_BYTES], clock[GROWTH_TEXT_BYTES], rate[GROWTH_TEXT_BYTES], error[GROWTH_TEXT_BYTES];

	text_append(answer->grows, ANSWER_BYTES, "%s grows%s since %s, by %s%s",
	    name_of(facts->traces, row->frame, name),
	    row->is_caller ? " (several functions below it together)" : "",
	    growth_text_clock(row->since_ns, series_s, clock), growth_text_rate(trend->bytes_per_s, rate),
	    growth_text_error(trend->bytes_per_s, trend->bytes_per_s_variance, error));
	if (growth->growing_count > 1)
		text_append(answer->grows, ANSWER_BYTES, "; %zu more grow%s", growth->growing_count - 1,
		    growth->growing_count == 2 ? "s" : "");
	text_append(answer->grows, ANSWER_BYTES, ".");
	answer->grows_function = facts->traces->frames.rows[row->frame].name;
}

/* No row for itself, but all of them together. */
static void describe_total(struct answer *answer, const struct growth_row *total, double series_s)
{
	char clock[GROWTH_TEXT_BYTES], rate[GROWTH_TEXT_BYTES], error[GROWTH_TEXT_BYTES];

	text_append(answer->grows, ANSWER_BYTES,
	    "What is in use grows since %s, by %s%s, and no function alone by more than chance.",
	    growth_text_clock(total->since_ns, series_s, clock),
	    growth_text_rate(total->trend.bytes_per_s, rate),
	    growth_text_error(total->trend.bytes_per_s, total->trend.bytes_per_s_variance, error));
}

static void describe_rose(struct answer *answer, const struct answer_facts *facts, double series_s)
{
	const struct growth_row *row = &facts->growth->rows[0];
	char name[NAME_BYTES], since[GROWTH_TEXT_BYTES], until[GROWTH_TEXT_BYTES], amount[AMOUNT_BYTES];

	growth_text_clock(row->since_ns, series_s, since);
	growth_text_clock(row->until_ns, series_s, until);
	text_append(answer->grows, ANSWER_BYTES, "Nothing grows; %s rose by %s ",
	    name_of(facts->traces, row->frame, name), amount_bytes(row->trend.bytes, amount));
	if (strcmp(since, until) == 0)
		text_append(answer->grows, ANSWER_BYTES, "at %s", until);
	else
		text_append(answer->grows, ANSWER_BYTES, "from %s to %s", since, until);
	text_append(answer->grows, ANSWER_BYTES, " and is flat since.");
	answer->grows_function = facts->traces->frames.rows[row->frame].name;
}

/*
 * Does the resident memory of the processes rise, as sums of the heap are judged (trend.h)? It is counted and
 * not sampled, but has steps of its own: so its bytes are looked at as if samples of RESIDENT_STEP_BYTES had
 * come and gone.
 */
static struct trend find_resident(const struct answer_facts *facts, int64_t times_ns[TREND_POINTS_MOST])
{
	const struct trend none = {.kind = TREND_NONE};
	const size_t all = facts->point_count, count = all < TREND_POINTS_MOST ? all : TREND_POINTS_MOST;
	struct trend_point points[TREND_POINTS_MOST];
	double came = 0, before = 0;

	for (size_t i = 0; i < count; i++) {
		const size_t at = count > 1 ? i * (all - 1) / (count - 1) : i;
		const double bytes = facts->rss_bytes ? (double)facts->rss_bytes[at] : -1;

		if (bytes < 0)
			return none;
		came += fmax(bytes - before, 0);
		before = bytes;
		times_ns[i] = facts->times_ns[at];
		points[i] = (struct trend_point){.time_s = ((double)times_ns[i] - (double)times_ns[0]) / 1e9,
		    .inuse_bytes = bytes,
		    .inuse_samples = bytes / RESIDENT_STEP_BYTES,
		    .allocated_bytes = came,
		    .allocated_samples = came / RESIDENT_STEP_BYTES};
	}
	return trend_find(points, count, trend_bar(1, count));
}

/* "Resident memory grows since 12:00:00, by 3.1 MiB a minute (to 110.9 MiB); the sampled heap does not." */
static bool describe_resident(struct answer *answer, const struct answer_facts *facts, double series_s)
{
	int64_t times_ns[TREND_POINTS_MOST];
	const struct trend trend = find_resident(facts, times_ns);
	const struct growth_row *heap = &facts->growth->total;
	char clock[GROWTH_TEXT_BYTES], rate[GROWTH_TEXT_BYTES], amount[AMOUNT_BYTES], inuse[AMOUNT_BYTES];

	if (trend.kind != TREND_GROWS)
		return false;
	text_append(answer->grows, ANSWER_BYTES, "Resident memory grows since %s, by %s, to %s; ",
	    growth_text_clock(times_ns[trend.since], series_s, clock),
	    growth_text_rate(trend.bytes_per_s, rate),
	    amount_bytes((double)facts->rss_bytes[facts->point_count - 1], amount));
	/* That no function grows by more than chance does not mean that the heap has no part in it. */
	if (heap->rise_bytes > HEAP_PART * trend.bytes)
		text_append(answer->grows, ANSWER_BYTES,
		    "the sampled heap rose by %s, but in no function by more than chance.",
		    amount_bytes(heap->rise_bytes, inuse));
	else
		text_append(answer->grows, ANSWER_BYTES, "the sampled heap does not (%s in use).",
		    amount_bytes(heap->inuse_bytes, inuse));
	return true;
}

/* An interval of a fifth of the time gives at least TREND_POINTS_LEAST snapshots, so it is shorter than the
 * interval that gave fewer. */
const char *answer_more_snapshots(const struct origin *origin, char text[ANSWER_MORE_BYTES])
{
	static const int intervals_s[] = {10, 5, 2, 1};
	const size_t count = sizeof(intervals_s) / sizeof(*intervals_s);
	const bool is_known =
	    origin && origin->ours && origin->start_ns > 0 && origin->time_ns > 0 && !*origin->merged;
	const int64_t begin_ns = !is_known          ? 0
	    : origin->start_ns > origin->session_ns ? origin->start_ns
	                                            : origin->session_ns;
	size_t i = 0;

	while (is_known && i < count &&
	    intervals_s[i] > (origin->time_ns - begin_ns) / (TREND_POINTS_LEAST + 1) / 1000000000)
		i++;
	if (i == count)
		snprintf(text, ANSWER_MORE_BYTES, "a longer run gives more");
	else if (origin && origin->is_daemons)
		snprintf(
		    text, ANSWER_MORE_BYTES, "interval = %ds in heaptap.conf gives more", intervals_s[i]);
	else
		snprintf(text, ANSWER_MORE_BYTES, "-i %ds gives more", intervals_s[i]);
	return text;
}

static void describe_too_few(struct answer *answer, const struct answer_facts *facts)
{
	const size_t count = facts->growth->point_count;
	char there[32] = "are none", more[ANSWER_MORE_BYTES];

	if (count)
		snprintf(there, sizeof(there), "%s %zu", count == 1 ? "is" : "are", count);
	text_append(answer->grows, ANSWER_BYTES,
	    "What grows is not known yet: that takes %d snapshots, and there %s (%s%s).", TREND_POINTS_LEAST,
	    there, facts->is_alone ? "give the folder of all; " : "",
	    answer_more_snapshots(facts->origin, more));
}

static void describe_grows(struct answer *answer, const struct answer_facts *facts)
{
	const struct growth *growth = facts->growth;
	const size_t count = facts->point_count;
	const double series_s =
	    count ? ((double)facts->times_ns[count - 1] - (double)facts->times_ns[0]) / 1e9 : 0;
	char span[GROWTH_TEXT_BYTES];

	if (growth->point_count < TREND_POINTS_LEAST)
		describe_too_few(answer, facts);
	else if (growth->growing_count)
		describe_growing(answer, facts, series_s);
	else if (growth->total.trend.kind == TREND_GROWS)
		describe_total(answer, &growth->total, series_s);
	else if (describe_resident(answer, facts, series_s))
		return;
	else if (growth->count)
		describe_rose(answer, facts, series_s);
	else
		text_append(answer->grows, ANSWER_BYTES,
		    "Nothing grows by more than chance, over %zu snapshots in %s.", facts->point_count,
		    growth_text_span(series_s, span));
}

/* ---- the whole */

/* It may be cut within a character. */
static void end(char *text)
{
	text[utf8_valid_prefix(text, strlen(text))] = '\0';
}

int answer_make(struct answer *answer, const struct answer_facts *facts)
{
	int err = 0;

	*answer = (struct answer){.held_function = "", .grows_function = ""};
	if (traces_has(facts->traces, MEASURE_INUSE)) {
		err = describe_held(answer, facts);
		if (err == -EFBIG) /* no room for who holds it */
			err = 0;
		if (facts->growth && !facts->traces->unsure)
			describe_grows(answer, facts);
	}
	if (facts->unseen && *facts->unseen)
		text_append(answer->unseen, ANSWER_BYTES, "Not seen: %s.", facts->unseen);
	end(answer->held);
	end(answer->grows);
	end(answer->unseen);
	return err;
}

void answer_json(struct json *json, const struct answer *answer)
{
	json_object(json, "answer");
	json_text(json, "held", answer->held);
	json_text(json, "grows", answer->grows);
	json_text(json, "unseen", answer->unseen);
	json_text(json, "held_function", answer->held_function);
	json_text(json, "grows_function", answer->grows_function);
	json_end(json);
}
