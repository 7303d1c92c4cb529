/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/start_lines.h"

#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/write/output.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Appends the period as it was given, without decimals: "512 KiB". */
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
	if (heap && options->record.heap.period_bytes == 1)
		text_append(text, text_bytes, "every allocation");
	else if (heap)
		append_period(options->record.heap.period_bytes, text, text_bytes);
	for (size_t i = 0; i < options->record.event_count; i++)
		text_append(text, text_bytes, "%s%s", i || heap ? ", " : "", options->record.event_texts[i]);
	if (options->record.heap.paused)
		text_append(text, text_bytes, ", from its heaptap_start() on");
}

void start_lines_describe(
    const struct options *options, const struct start *start, char *text, size_t text_bytes)
{
	const int command = (int)start->command;
	char files[PATH_MAX];

	text[0] = '\0';
	text_append(text, text_bytes, "recording pid %d (", command);
	append_what(options, start->heap, text, text_bytes);
	if (output_describe(options->output, files, sizeof(files)))
		text_append(text, text_bytes, ")");
	else
		text_append(text, text_bytes, ") to %s", files);
	if (start->socket_error)
		text_append(text, text_bytes,
		    "\nno snapshot of it can be asked for, without a control socket: %s",
		    strerror(-start->socket_error));
	else
		text_append(text, text_bytes, "\na snapshot of it now: heaptap snapshot %d", command);
	if (options->record.pid_count)
		text_append(text, text_bytes, "\nto detach: Ctrl-C here, or kill %d", (int)getpid());
}

void start_lines_say(const struct options *options, const struct start *start)
{
	char lines[LOG_LINE_BYTES];

	start_lines_describe(options, start, lines, sizeof(lines));
	log_lines(lines);
}
