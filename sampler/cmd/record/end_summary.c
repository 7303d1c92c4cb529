/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/end_summary.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "pprof/text/utf8.h"
#include "sampler/books/process_life.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/core/heap_capture.h"
#include "sampler/linux/screen.h"
#include "sampler/write/heap_source.h"
#include "sampler/write/summary_screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PATIENCE_MS = 5000, /* the user waits */
	PATHS_MOST = HEAP_SOURCE_WRITTEN + 2 * (SUMMARY_ROWS + 1),
	ANSWER_MOST = 4096,
};

static end_summary_answer *write_answer;

void end_summary_answer_by(end_summary_answer *write)
{
	write_answer = write;
}

/* ---- the answer: which files */

struct paths {
	char *list[PATHS_MOST + 1];
	int count;
};

/* --keep has removed a file that is not there any more. */
static void add(struct paths *paths, char *path)
{
	if (path && paths->count < PATHS_MOST && access(path, R_OK) == 0)
		paths->list[paths->count++] = path;
}

static void add_row(struct paths *paths, const struct summary_row *row)
{
	add(paths, row->path);
	add(paths, row->peak_path);
}

/* False: there are no snapshots, or not all files are known. */
static bool find(struct paths *paths, const struct heap_source *source)
{
	const struct summary_list *ended = &source->ended;

	if (!ended->processes || !source->written_count || source->written_more || ended->rest.processes)
		return false;
	for (size_t i = 0; i < source->written_count; i++)
		add(paths, source->written[i]);
	for (size_t i = 0; i < ended->row_count; i++)
		add_row(paths, &ended->rows[i]);
	if (ended->has_command)
		add_row(paths, &ended->command);
	return paths->count > 0;
}

/* ---- the answer: made in a child */

static void run_child(const struct paths *paths, int width, int fd)
{
	FILE *out = fdopen(fd, "w");

	if (!out)
		_exit(EXIT_FAILURE);
	/* Its complaints are those of `heaptap report`, which repeats them. */
	if (!freopen("/dev/null", "w", stderr))
		_exit(EXIT_FAILURE);
	write_answer(out, paths->list, paths->count, width);
	fflush(out);
	_exit(EXIT_SUCCESS);
}

/* All that comes, until the end of file. False: not in time, or too much. */
static bool read_all(int fd, char text[ANSWER_MOST])
{
	const uint64_t end_ns = clock_now_ns() + (uint64_t)PATIENCE_MS * CLOCK_NS_PER_MS;
	size_t length = 0;
	ssize_t got = -1;

	for (uint64_t now_ns; (now_ns = clock_now_ns()) < end_ns && length < ANSWER_MOST - 1;) {
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

		if (poll(&poll_fd, 1, (int)((end_ns - now_ns) / CLOCK_NS_PER_MS) + 1) <= 0)
			continue;
		got = read(fd, text + length, ANSWER_MOST - 1 - length);
		if (got <= 0 && !(got < 0 && errno == EINTR))
			break;
		length += got > 0 ? (size_t)got : 0;
	}
	while (length > 1 && text[length - 1] == '\n' && text[length - 2] == '\n')
		length--; /* a report has an empty line behind it */
	text[length] = '\0';
	return got == 0 && length > 0;
}

/* Lines for free(), each with a newline. NULL if there is no snapshot but the last ones, if not all files are
 * known, or if the child took too long. */
static char *make_answer(const struct heap_source *source, int width)
{
	struct paths paths = {.count = 0};
	char text[ANSWER_MOST];
	int ends[2], status;
	pid_t child;

	if (!write_answer || !find(&paths, source) || pipe(ends))
		return NULL;
	child = fork();
	if (child == 0) {
		close(ends[0]);
		run_child(&paths, width, ends[1]);
	}
	close(ends[1]);
	bool made = child > 0 && read_all(ends[0], text);
	close(ends[0]);
	if (child > 0) {
		if (!made)
			kill(child, SIGKILL);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		made = made && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
	}
	return made ? strdup(text) : NULL;
}

/* ---- the summary */

/* Lines about what could not be profiled. */
static void print_missed(
    struct end_summary *summary, const struct options *options, const struct heap_capture *h, FILE *out)
{
	const struct registry *registry = &h->registry;
	char text[sizeof(summary->missed)];
	const char *why = registry->unprofiled.command_declined_text;

	if (!why && region_pool_unmapped(registry->setup.pool))
		why = "the sampler's own limit of address space (ulimit -v) leaves no room for the "
		      "memory that it shares with a program";
	if (registry->unprofiled.command_unchosen)
		why = "not chosen by --only and --exclude";
	bool started = registry->setup.launch->pid && options->operand_count; /* not attached to */
	snprintf(text, sizeof(text), "%s", started ? options->operands[0] : "");
	utf8_disarm(text, strlen(text)); /* no name adds a line */
	if ((!registry->unprofiled.command_seen || registry->unprofiled.command_unchosen) && started)
		fprintf(out, "no profile of %s: %s\n", text,
		    why ? why
		        : "it did not load libheaptap.so (statically linked, setuid, or it cleared "
		          "LD_PRELOAD)");
	unprofiled_describe(
	    &registry->unprofiled, registry->setup.pool, summary->missed, sizeof(summary->missed));
	if (summary->missed[0])
		fprintf(out, "%s\n", summary->missed);
	if (heap_source_dropped_describe(h->source.dropped, SNAPSHOT_DROP_USER, text, sizeof(text)))
		fprintf(out, "%s\n", text);
	summary->said = true;
}

/* COMMAND may have started programs just before its end, which were found afterwards: then all are named
 * again. */
static void print_missed_since(const struct end_summary *summary, const struct heap_capture *h, FILE *out)
{
	char text[sizeof(summary->missed)];

	unprofiled_describe(&h->registry.unprofiled, h->registry.setup.pool, text, sizeof(text));
	if (summary->said && strcmp(text, summary->missed) != 0)
		fprintf(out, "%s%s\n", summary->missed[0] ? "in all, " : "", text);
}

void end_summary_say(
    struct end_summary *summary, const struct options *options, struct heap_capture *h, bool last)
{
	static const char prefix[] = "heaptap: ";
	char *missed = NULL, *screen = NULL;
	size_t bytes;
	FILE *out = open_memstream(&missed, &bytes);

	if (out && last)
		print_missed_since(summary, h, out);
	else if (out)
		print_missed(summary, options, h, out);
	if (out)
		fclose(out);
	int width = screen_width(STDERR_FILENO);
	const struct summary_facts facts = {
	    .missed = missed ? missed : "",
	    .min_samples = options->record.min_samples,
	    .running = last ? 0 : process_life_running(&h->registry),
	    .width = width > (int)sizeof(prefix) ? width - (int)sizeof(prefix) + 1 : 0,
	};
	char *answer =
	    options->verbosity >= 0 && !facts.running ? make_answer(&h->source, facts.width) : NULL;
	out = open_memstream(&screen, &bytes);
	if (out) {
		fputs(answer ? answer : "", out);
		summary_screen_print(out, &h->source.ended, &facts);
		fclose(out);
	}
	if (screen && options->verbosity >= 0)
		log_lines(screen);
	free(answer);
	free(missed);
	free(screen);
	summary_list_clear(&h->source.ended);
}
