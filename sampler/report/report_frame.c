/* SPDX-License-Identifier: Apache-2.0 */
/* A frame in a table: its name, its line if lines are told apart, and its main callers. */
#include "sampler/report/report.h"

#include "pprof/analysis/callers.h"

#include <inttypes.h>
#include <string.h>

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

int report_frame(const struct screen *screen, const struct traces *traces, uint32_t number, int room)
{
	const struct frames_row *frame = &traces->frames.rows[number];
	char text[2048];

	if (!traces->options.lines || !*frame->file)
		return screen_text(screen, frame->label, room);
	snprintf(text, sizeof(text), "%s  %s:%" PRId64, frame->label, file_name(frame->file), frame->line);
	return screen_text(screen, text, room);
}

enum { CALLERS_SHOWN = 3 };

struct shown {
	size_t callers[CALLERS_SHOWN]; /* numbers of the callers that have a name */
	size_t count;
	char share[16]; /* of the last one, "" if it is all of it */
};

/* Is it the name of a function, not an address or a file? */
static bool is_named(const struct frames_row *frame)
{
	return frame->name[0] != '[' && !strstr(frame->name, "+0x");
}

/* Chooses callers with names, as many as fit together with the share of the last one; no name is cut. " .. "
 * for " < " where some are left out. */
static void callers_choose(
    struct shown *shown, const struct traces *traces, const struct callers *callers, int room)
{
	int columns[CALLERS_SHOWN + 1] = {0};

	*shown = (struct shown){.count = 0};
	for (size_t i = 0; i < callers->count && shown->count < CALLERS_SHOWN; i++) {
		const struct frames_row *frame = &traces->frames.rows[callers->frames[i]];
		bool after_gap = i > (shown->count ? shown->callers[shown->count - 1] + 1 : 0);

		if (!is_named(frame))
			continue;
		columns[shown->count + 1] =
		    columns[shown->count] + (after_gap ? 4 : 3) + screen_columns(frame->label);
		shown->callers[shown->count++] = i;
	}
	for (; shown->count; shown->count--) {
		double share = callers->shares[shown->callers[shown->count - 1]];

		shown->share[0] = '\0';
		if (share < 0.995)
			snprintf(shown->share, sizeof(shown->share), " %.0f%%", 100 * share);
		if (room == 0 || columns[shown->count] + (int)strlen(shown->share) <= room)
			break;
	}
}

static void print_callers(const struct screen *screen, const struct traces *traces,
    const struct callers *callers, const struct shown *shown)
{
	size_t next = 0;

	fputs(screen_style(screen, SCREEN_DIM), screen->out);
	for (size_t i = 0; i < shown->count; i++) {
		fputs(shown->callers[i] > next ? " .. " : " < ", screen->out);
		screen_text(screen, traces->frames.rows[callers->frames[shown->callers[i]]].label, 0);
		next = shown->callers[i] + 1;
	}
	fprintf(screen->out, "%s%s", shown->share, screen_style(screen, SCREEN_PLAIN));
}

/* " > std::vector::resize 80%": returns the columns it took of `room` (0: any number); 0 if there is none or
 * too little room to recognise it. */
static int print_through(
    const struct screen *screen, const struct traces *traces, const struct callers *callers, int room)
{
	enum { LEAST_ROOM = 16 };
	char share[16] = "";
	int columns;

	if (callers->through_share <= 0 || (room && room < LEAST_ROOM))
		return 0;
	if (callers->through_share < 0.995)
		snprintf(share, sizeof(share), " %.0f%%", 100 * callers->through_share);
	fprintf(screen->out, "%s > ", screen_style(screen, SCREEN_DIM));
	columns = 3 + (int)strlen(share);
	columns +=
	    screen_text(screen, traces->frames.rows[callers->through].label, room ? room - columns : 0);
	fprintf(screen->out, "%s%s", share, screen_style(screen, SCREEN_PLAIN));
	return columns;
}

void report_frame_callers(
    const struct screen *screen, const struct traces *traces, const double *values, uint32_t frame, int used)
{
	int room = screen_room(screen, used), taken = report_frame(screen, traces, frame, room);
	struct callers callers;
	struct shown shown = {.count = 0};
	int through = 0;

	if (callers_find(&callers, traces, values, frame))
		return;
	if (room == 0 || taken < room)
		through = print_through(screen, traces, &callers, room ? room - taken : 0);
	taken += through + (through ? 1 : 0); /* a space more keeps callers apart from the callee */
	if (room == 0 || taken < room)
		callers_choose(&shown, traces, &callers, room ? room - taken : 0);
	if (shown.count && through)
		putc(' ', screen->out);
	/* A function without a name says little without its callers: then they get a line of their own. */
	if (!shown.count && room && !is_named(&traces->frames.rows[frame])) {
		callers_choose(&shown, traces, &callers, room);
		if (shown.count)
			fprintf(screen->out, "\n%*s", used, "");
	}
	if (shown.count)
		print_callers(screen, traces, &callers, &shown);
}

const char *report_columns(const struct read_options *read)
{
	static const char *const groups[] = {[GROUP_THREAD] = "thread",
	    [GROUP_PROCESS] = "process",
	    [GROUP_SIZE] = "size of a block",
	    [GROUP_AGE] = "age"};

	if (read->by != GROUP_FUNCTION)
		return groups[read->by];
	return read->cum       ? "function"
	    : read->all_frames ? "function < callers"
	                       : "function > callee < callers";
}

const char *report_kind(const struct traces *traces, enum measure_kind kind)
{
	static const char *const words[MEASURE_COUNT] = {
	    [MEASURE_INUSE] = "bytes in use",
	    [MEASURE_INUSE_OBJECTS] = "objects in use",
	    [MEASURE_ALLOC] = "bytes allocated",
	    [MEASURE_OBJECTS] = "allocations",
	    [MEASURE_FREED] = "objects freed again",
	    [MEASURE_TEMPORARY] = "objects freed soon",
	};

	return kind == MEASURE_OTHER ? traces->types[traces->default_type] : words[kind];
}
