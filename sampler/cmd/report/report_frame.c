/* SPDX-License-Identifier: Apache-2.0 */
/* A frame in a table: its name, its line if lines are told apart, and its main callers. */
#include "sampler/cmd/report/report.h"

#include "pprof/analysis/row_label.h"
#include "pprof/text/utf8.h"

#include <inttypes.h>
#include <string.h>

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

int report_frame(const struct screen *screen, const struct traces *traces, uint32_t number, int room)
{
	enum { NAME_LEAST = 8 };
	const struct frames_row *frame = &traces->frames.rows[number];
	char place[256];
	int taken;

	if (!traces->options.lines || !*frame->file)
		return screen_name(screen, frame->label, room);
	snprintf(place, sizeof(place), "  %.200s:%" PRId64, file_name(frame->file), frame->line);
	place[utf8_valid_prefix(place, strlen(place))] = '\0'; /* it may be cut */
	taken = screen_columns(place);
	if (room > 0 && taken + NAME_LEAST > room)
		taken = 0;
	const int name_columns = screen_name(screen, frame->label, room > 0 ? room - taken : 0);

	return name_columns + (taken ? screen_text(screen, place, 0) : 0);
}

enum { CALLERS_SHOWN = 3 };

struct shown {
	size_t callers[CALLERS_SHOWN]; /* numbers of the callers that have a name */
	size_t count;
	char share[16]; /* of the last caller; "" if it is everything */
	int name_room;  /* for a single name that is too long; 0: no name is cut */
};

/* Is it the name of a function, not an address or a file? */
static bool is_named(const struct frames_row *frame)
{
	return frame->name[0] != '[' && !strstr(frame->name, "+0x");
}

/* Chooses callers with names, as many as fit together with the share of the last one. Where callers are left
 * out, " .. " stands for " < ". */
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
		screen_name(
		    screen, traces->frames.rows[callers->frames[shown->callers[i]]].label, shown->name_room);
		next = shown->callers[i] + 1;
	}
	fprintf(screen->out, "%s%s", shown->share, screen_style(screen, SCREEN_PLAIN));
}

/* One function that was called on the way to the allocator: " > std::vector::resize 80%". */
struct callee {
	const char *name;
	char share[16];
};

enum { CALLEES_MOST = 2 };

/* The library function that own code called, and the last one before the allocator. Returns how many. */
static int find_callees(
    struct callee callees[CALLEES_MOST], const struct traces *traces, const struct callers *callers)
{
	const bool same = callers->library == callers->through;
	const double shares[CALLEES_MOST] = {callers->library_share, callers->through_share};
	const uint32_t frames[CALLEES_MOST] = {callers->library, callers->through};
	int count = 0;

	for (int i = 0; i < CALLEES_MOST; i++) {
		if (shares[i] <= 0 || (i && same && count))
			continue;
		struct callee *callee = &callees[count++];

		callee->name = traces->frames.rows[frames[i]].label;
		callee->share[0] = '\0';
		if (shares[i] < 0.995)
			snprintf(callee->share, sizeof(callee->share), " %.0f%%", 100 * shares[i]);
	}
	return count;
}

static int callee_columns(const struct callee *callee)
{
	return 3 + (int)strlen(callee->share) + screen_columns(callee->name);
}

/* In at most `room` columns (0: any number). Returns the columns that it took. */
static int print_callee(const struct screen *screen, const struct callee *callee, int room)
{
	const int columns = 3 + (int)strlen(callee->share);

	fprintf(screen->out, "%s > ", screen_style(screen, SCREEN_DIM));
	const int taken = screen_name(screen, callee->name, room ? room - columns : 0);

	fprintf(screen->out, "%s%s", callee->share, screen_style(screen, SCREEN_PLAIN));
	return columns + taken;
}

/* Callers that fit behind what was printed. */
static void callers_beside(
    struct shown *shown, const struct traces *traces, const struct callers *callers, int room, int taken)
{
	*shown = (struct shown){.count = 0};
	if (!room || taken < room)
		callers_choose(shown, traces, callers, room ? room - taken : 0);
}

/* Callers in a line of their own: the first one is cut if it does not fit even there. */
static void callers_alone(
    struct shown *shown, const struct traces *traces, const struct callers *callers, int room)
{
	callers_choose(shown, traces, callers, room);
	for (size_t i = 0; i < callers->count && !shown->count; i++) {
		if (!is_named(&traces->frames.rows[callers->frames[i]]))
			continue;
		shown->callers[shown->count++] = i;
		shown->share[0] = '\0';
		shown->name_room = room - (i ? 4 : 3);
	}
}

/* The callee, and the callers, begin a line of their own where they do not fit behind the function. */
void report_frame_callers(
    const struct screen *screen, const struct traces *traces, const double *values, uint32_t frame, int used)
{
	const int room = screen_room(screen, used);
	int taken = report_frame(screen, traces, frame, room);
	struct callers callers;
	struct shown shown;

	if (callers_find(&callers, traces, values, frame))
		return;
	struct callee callees[CALLEES_MOST];
	const int through = find_callees(callees, traces, &callers);

	for (int i = 0; i < through; i++) {
		if (room && taken + callee_columns(&callees[i]) > room) {
			fprintf(screen->out, "\n%*s", used, "");
			taken = 0;
		}
		taken += print_callee(screen, &callees[i], room);
	}
	taken += through > 0; /* a space more keeps callers apart from the callee */
	callers_beside(&shown, traces, &callers, room, taken);
	if (shown.count && through)
		putc(' ', screen->out);
	if (!shown.count) {
		callers_alone(&shown, traces, &callers, room);
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
	    [GROUP_AGE] = "age",
	    [GROUP_LIFETIME] = "lifetime"};

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
