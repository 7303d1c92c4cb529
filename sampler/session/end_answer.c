/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/end_answer.h"

#include "sampler/linux/clock.h"

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

static end_answer_writer *write_answer;

void end_answer_by(end_answer_writer *writer)
{
	write_answer = writer;
}

/* ---- which files */

struct paths {
	char *list[PATHS_MOST + 1];
	int count;
};

/* What is not there any more was not kept (--keep). */
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

/* ---- the child */

static void run_child(const struct paths *paths, int width, int fd)
{
	FILE *out = fdopen(fd, "w");

	if (!out)
		_exit(EXIT_FAILURE);
	/* What it has to complain about, whoever runs heaptap report learns. */
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

char *end_answer_make(const struct heap_source *source, int width)
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
