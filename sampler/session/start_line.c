/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/start_line.h"

#include "sampler/linux/program_path.h"
#include "sampler/snapshot/output.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"

#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

/* "512 KiB": as it was given, without decimals. */
static void append_period(uint64_t bytes, char *text, size_t text_bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	size_t unit = 0;

	for (; bytes % 1024 == 0 && unit < 3; bytes /= 1024)
		unit++;
	text_append(text, text_bytes, "a sample per %" PRIu64 " %s", bytes, units[unit]);
}

static void append_what(const struct options *options, bool heap, char *text, size_t text_bytes)
{
	if (heap && options->period_bytes == 1)
		text_append(text, text_bytes, "every allocation");
	else if (heap)
		append_period(options->period_bytes, text, text_bytes);
	for (size_t i = 0; i < options->event_count; i++)
		text_append(text, text_bytes, "%s%s", i || heap ? ", " : "", options->event_texts[i]);
	if (options->paused)
		text_append(text, text_bytes, ", from its heaptap_start() on");
}

void start_line_make(const struct options *options, bool heap, pid_t command, char *text, size_t text_bytes)
{
	char files[PATH_MAX];

	text[0] = '\0';
	text_append(text, text_bytes, "recording pid %d (", (int)command);
	append_what(options, heap, text, text_bytes);
	if (output_describe(options->output, files, sizeof(files)))
		text_append(text, text_bytes, ")");
	else
		text_append(text, text_bytes, ") to %s", files);
	text_append(text, text_bytes, "\na snapshot of it now: heaptap snapshot %d", (int)command);
}

void start_line_say(const struct options *options, bool seen, pid_t command)
{
	bool heap = seen && !options->no_heap;
	char path[PATH_MAX], line[LOG_LINE_BYTES];

	if (options->verbosity < 0 || (!heap && !options->event_count) ||
	    !program_path_find(options->operands[0], path, sizeof(path)) || access(path, X_OK) != 0)
		return;
	start_line_make(options, heap, command, line, sizeof(line));
	log_lines(line);
}
