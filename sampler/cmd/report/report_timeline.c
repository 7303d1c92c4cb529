/* SPDX-License-Identifier: Apache-2.0 */
/* What was in use and resident at each snapshot: a picture in text, or JSON. */
#include "sampler/cmd/report/report.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"

#include <stdlib.h>
#include <string.h>

enum {
	WIDTH_USUAL = 80,
	WIDTH_LEAST = 40,
	PICTURE_AT = 13, /* "   512 MiB |" */
	HEIGHT = 10,
	PARTS = 8, /* of a character's height */
	CLOCK_BYTES = 32,
	TITLE_BYTES = 256,
};

struct point {
	int64_t time_ns;
	double inuse_bytes, rss_bytes; /* rss_bytes below 0: not known */
};

struct timeline {
	struct point *points;
	size_t count;
	double most_bytes;
	bool has_rss;
};

/* Of one process each of its states, its end too; of several the moments at which they are added up. */
static int timeline_make(struct timeline *timeline, const struct profile_input *input)
{
	const bool several = input->growth_first > 0;

	timeline->count = several                        ? input->growth_count
	    : input->sets[input->now].process_count == 1 ? input->series_count
	                                                 : 0;
	timeline->points = calloc(timeline->count + 1, sizeof(*timeline->points));
	if (!timeline->points)
		return -1;
	for (size_t i = 0; i < timeline->count; i++) {
		struct point *point = &timeline->points[i];
		const int64_t rss_bytes = several ? input->growth_rss_bytes[i] : input->origins[i].rss_bytes;
		int64_t sum = 0;

		for (size_t row = 0; row < input->traces.row_count; row++)
			traces_sum(
			    &sum, traces_value(&input->traces, row, input->growth_first + i, MEASURE_INUSE));
		*point = (struct point){several ? input->growth_times_ns[i] : input->origins[i].time_ns,
		    sum > 0 ? (double)sum : 0, (double)rss_bytes};
		timeline->has_rss |= rss_bytes >= 0;
		if (point->inuse_bytes > timeline->most_bytes)
			timeline->most_bytes = point->inuse_bytes;
		if (point->rss_bytes > timeline->most_bytes)
			timeline->most_bytes = point->rss_bytes;
	}
	return 0;
}

/* ---- the picture */

/* The newest point at or before the time of a column of the picture. */
static const struct point *point_at(const struct timeline *timeline, int column, int columns)
{
	const struct point *points = timeline->points;
	const double begin_ns = (double)points[0].time_ns,
	             span_ns = (double)points[timeline->count - 1].time_ns - begin_ns;
	const double at_ns = begin_ns + span_ns * column / (columns > 1 ? columns - 1 : 1);
	size_t i = 0;

	while (i + 1 < timeline->count && (double)points[i + 1].time_ns <= at_ns)
		i++;
	return &points[i];
}

/* The height of a value in parts; what is not nothing has one part at least. */
static int parts_of(const struct timeline *timeline, double bytes)
{
	const double parts = timeline->most_bytes > 0 ? bytes / timeline->most_bytes * HEIGHT * PARTS : 0;

	return parts > 0 && parts < 1 ? 1 : (int)(parts + 0.5);
}

static void print_cell(const struct screen *screen, int inuse, int rss, int floor)
{
	static const char *const blocks[PARTS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	const int parts = inuse - floor < PARTS ? inuse - floor : PARTS;

	if (parts > 0 && screen->is_ascii)
		putc(parts > PARTS / 2 ? '#' : '_', screen->out);
	else if (parts > 0)
		fputs(blocks[parts], screen->out);
	else
		putc(rss > floor ? '.' : ' ', screen->out);
}

static void print_picture(const struct screen *screen, const struct timeline *timeline)
{
	const struct point *last = &timeline->points[timeline->count - 1];
	const int width = screen->width ? screen->width : WIDTH_USUAL;
	const int columns = (width > WIDTH_LEAST ? width : WIDTH_LEAST) - PICTURE_AT;
	const bool days = last->time_ns - timeline->points[0].time_ns >= INT64_C(86400000000000);
	const char *format = days ? "%m-%d %H:%M" : "%H:%M:%S";
	char text[AMOUNT_BYTES], from[CLOCK_BYTES], to[CLOCK_BYTES];

	for (int row = HEIGHT - 1; row >= 0; row--) {
		const double top = timeline->most_bytes * (row + 1) / HEIGHT;

		fprintf(screen->out, "%10s |", row % 3 == 0 ? amount_bytes(top, text) : "");
		for (int i = 0; i < columns; i++) {
			const struct point *point = point_at(timeline, i, columns);

			print_cell(screen, parts_of(timeline, point->inuse_bytes),
			    parts_of(timeline, point->rss_bytes), row * PARTS);
		}
		putc('\n', screen->out);
	}
	clock_text(timeline->points[0].time_ns, format, from, CLOCK_BYTES);
	fprintf(screen->out, "%10s +", "0 B");
	for (int i = 0; i < columns; i++)
		putc('-', screen->out);
	fprintf(screen->out, "\n%*s%s%*s\n", PICTURE_AT - 1, "", from, columns - (int)strlen(from),
	    clock_text(last->time_ns, format, to, CLOCK_BYTES));
}

static void print_text(const struct screen *screen, const struct timeline *timeline, size_t processes)
{
	const struct point *last = &timeline->points[timeline->count - 1], *most = last;
	char text[AMOUNT_BYTES], at_end[AMOUNT_BYTES], line[TITLE_BYTES], when[CLOCK_BYTES];

	for (size_t i = 0; i < timeline->count; i++)
		if (timeline->points[i].inuse_bytes > most->inuse_bytes)
			most = &timeline->points[i];
	fprintf(screen->out, "\n%sIn use (%s)%s over %zu snapshots%s%s\n", screen_style(screen, SCREEN_HEAD),
	    screen->is_ascii ? "#" : "█", timeline->has_rss ? " and resident (.)" : "", timeline->count,
	    processes > 1 ? " of several processes, added up" : "", screen_style(screen, SCREEN_PLAIN));
	print_picture(screen, timeline);
	snprintf(line, sizeof(line), "most in use: %s at %s; at the end: %s",
	    amount_bytes(most->inuse_bytes, text),
	    clock_text(most->time_ns, "%Y-%m-%d %H:%M:%S", when, CLOCK_BYTES),
	    amount_bytes(last->inuse_bytes, at_end));
	screen_lines(screen, 0, line);
}

/* ---- JSON */

static void write_json(FILE *out, const struct timeline *timeline, const struct profile_input *input,
    const struct report_answer *answer)
{
	struct json json = {.out = out};

	report_json_head(&json, input, answer, input->now);
	json_array(&json, "timeline");
	for (size_t i = 0; i < timeline->count; i++) {
		json_object(&json, NULL);
		json_integer(&json, "time_ns", timeline->points[i].time_ns);
		json_integer(&json, "inuse_bytes", (int64_t)timeline->points[i].inuse_bytes);
		if (timeline->points[i].rss_bytes >= 0)
			json_integer(&json, "rss_bytes", (int64_t)timeline->points[i].rss_bytes);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

int report_timeline(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct read_options *read)
{
	const size_t processes = input->sets[input->now].process_count;
	struct timeline timeline = {0};
	char more[ANSWER_MORE_BYTES], line[128];
	int status = 1;

	if (input->state != READ_NEWEST)
		log_line("--timeline shows what was in use at each snapshot: --state does not go with it");
	else if (!traces_has(&input->traces, MEASURE_INUSE))
		log_line("--timeline: this profile does not say what was in use");
	else if (timeline_make(&timeline, input))
		log_line("not enough memory");
	else if (!timeline.count)
		log_line(
		    "--timeline: %zu processes have fewer than %d snapshots at which they can be added up",
		    processes, TREND_POINTS_LEAST);
	else
		status = 0;
	if (!status && read->json)
		write_json(screen->out, &timeline, input, answer);
	else if (!status && timeline.count == 1) {
		snprintf(line, sizeof(line), "a timeline takes two snapshots, and there is one (%s)",
		    answer_more_snapshots(&input->origins[input->now], more));
		screen_lines(screen, 0, line);
	} else if (!status)
		print_text(screen, &timeline, processes);
	free(timeline.points);
	return status;
}
