/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/start_line.h"

#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/books/unseen.h"
#include "sampler/inject/program_symbols.h"
#include "sampler/inject/script_line.h"
#include "sampler/linux/installed_file.h"
#include "sampler/linux/regular_file.h"
#include "sampler/write/output.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
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

void start_line_make(
    const struct options *options, const struct start_line *start, char *text, size_t text_bytes)
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
}

/* ---- what is not seen */

enum { SCRIPT_DEPTH = 4 }; /* an interpreter may be a script itself: the kernel allows so many */

/* Replaces the path of a script by that of its interpreter, or of the program that env starts. False if
 * the file is no script. */
static bool follow_script(int fd, char *path, size_t path_bytes)
{
	char head[SCRIPT_LINE_BYTES + 1] = "", program[SCRIPT_LINE_BYTES];
	struct script_line line;
	const ssize_t got = pread(fd, head, SCRIPT_LINE_BYTES, 0);

	if (got < 2 || !script_line_parse(head, (size_t)got, &line))
		return false;
	if (script_line_env(&line, program))
		return installed_file_in_path(program, path, path_bytes);
	snprintf(path, path_bytes, "%s", line.interpreter);
	return true;
}

/* Logs what will not be seen of COMMAND's memory. How much that will be is not known yet. */
static void say_unseen(const struct options *options, char path[PATH_MAX])
{
	struct program_symbols symbols = {.whole = false};
	struct unseen_facts facts = {.with_mmap = options->record.heap.record_mmap};
	char line[UNSEEN_LINE_BYTES];
	struct unseen unseen;
	struct stat status;
	bool script = true;

	for (int depth = 0; script && depth <= SCRIPT_DEPTH; depth++) {
		int fd = regular_file_open(AT_FDCWD, path, 0, &status);

		if (fd < 0)
			return;
		script = follow_script(fd, path, PATH_MAX);
		if (!script && program_symbols_read_file(&symbols, fd) != 0)
			symbols = (struct program_symbols){.whole = false};
		close(fd);
	}
	facts.own_malloc = symbols.own_malloc;
	facts.runtime = symbols.runtime;
	facts.runtime_by_malloc = unseen_facts_runtime_by_malloc(getpid(), symbols.runtime.kind);
	memcpy(facts.allocator, symbols.allocator, sizeof(facts.allocator));
	snprintf(facts.allocator_file, sizeof(facts.allocator_file), "%s", strrchr(path, '/') + 1);
	unseen_describe(&unseen, &facts);
	if (unseen.count)
		log_line("%s", unseen_line(&unseen.texts[0], line));
}

void start_line_say(const struct options *options, const struct start_line *start)
{
	const bool heap = start->heap && !options->record.no_heap;
	const struct start_line known = {start->command, heap, start->socket_error};
	char path[PATH_MAX], line[LOG_LINE_BYTES];

	if (options->verbosity < 0 || (!heap && !options->record.event_count) ||
	    !installed_file_in_path(options->operands[0], path, sizeof(path)) || access(path, X_OK) != 0)
		return;
	start_line_make(options, &known, line, sizeof(line));
	log_lines(line);
	if (heap && strchr(path, '/'))
		say_unseen(options, path);
}
