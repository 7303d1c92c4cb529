/* SPDX-License-Identifier: Apache-2.0 */
/* A frame in a table: its name, its line if lines are told apart, and for whom it allocates. */
#include "sampler/report.h"

#include "pprof/callers.h"

#include <inttypes.h>
#include <string.h>

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

int report_frame(const struct screen *screen, const struct traces *traces, uint32_t number, int room)
{
	const struct traces_frame *frame = &traces->frames[number];
	char text[2048];

	if (!traces->options.lines || !*frame->file)
		return screen_text(screen, frame->name, room);
	snprintf(text, sizeof(text), "%s  %s:%" PRId64, frame->name, file_name(frame->file), frame->line);
	return screen_text(screen, text, room);
}

/* As many of the callers as fit with their share; half a name is worse than none. */
static size_t callers_fit(const struct traces *traces, const struct callers *callers, int room, char share[16])
{
	size_t fit = 0;
	int columns = 0;

	/* A file instead of a name says nothing. */
	while (fit < callers->count && traces->frames[callers->frames[fit]].name[0] != '[')
		fit++;
	for (size_t i = 0; i < fit; i++)
		columns += 3 + screen_columns(traces->frames[callers->frames[i]].name);
	while (fit) {
		share[0] = '\0';
		if (callers->shares[fit - 1] < 0.995)
			snprintf(share, 16, " %.0f%%", 100 * callers->shares[fit - 1]);
		if (room == 0 || columns + (int)strlen(share) <= room)
			break;
		columns -= 3 + screen_columns(traces->frames[callers->frames[--fit]].name);
	}
	return fit;
}

void report_frame_callers(const struct screen *screen, const struct traces *traces, const double *values, uint32_t frame,
    int room)
{
	int taken = report_frame(screen, traces, frame, room);
	struct callers callers;
	char share[16];
	size_t fit;

	if (callers_find(&callers, traces, values, frame) || (room > 0 && taken >= room))
		return;
	fit = callers_fit(traces, &callers, room > 0 ? room - taken : 0, share);
	if (!fit)
		return;
	fputs(screen_style(screen, SCREEN_DIM), screen->out);
	for (size_t i = 0; i < fit; i++) {
		fputs(" < ", screen->out);
		screen_text(screen, traces->frames[callers.frames[i]].name, 0);
	}
	fprintf(screen->out, "%s%s", share, screen_style(screen, SCREEN_PLAIN));
}

const char *report_kind(const struct traces *traces, enum measure_kind kind)
{
	static const char *const words[MEASURE_COUNT] = {
	    [MEASURE_INUSE] = "bytes in use",
	    [MEASURE_INUSE_OBJECTS] = "objects in use",
	    [MEASURE_ALLOC] = "bytes allocated",
	    [MEASURE_OBJECTS] = "allocations",
	    [MEASURE_TEMPORARY] = "objects freed again",
	};

	return kind == MEASURE_OTHER ? traces->types[traces->default_type] : words[kind];
}
