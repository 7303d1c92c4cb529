/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/pusher.h"

#include "sampler/cli/options.h"
#include "sampler/cli/status.h"
#include "sampler/linux/companion.h"
#include "sampler/session/descriptors.h"
#include "pprof/text/log_line.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROGRAM "heaptap-push"

enum { PIPE_BYTES = 1 << 20 }; /* names of some ten thousand profiles */

/* The words of its command line: NULL-terminated, all owned. */
struct words {
	char **at;
	size_t count;
	bool failed;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *words, const char *format, ...)
{
	char **grown = reallocarray(words->at, words->count + 2, sizeof(*grown));
	va_list args;

	if (!grown) {
		words->failed = true;
		return;
	}
	words->at = grown;
	va_start(args, format);
	if (vasprintf(&words->at[words->count], format, args) < 0)
		words->failed = true;
	else
		words->count++;
	va_end(args);
	words->at[words->count] = NULL;
}

static void add_text(struct words *words, const char *name, const char *value)
{
	if (value)
		add(words, "--%s=%s", name, value);
}

static void words_free(struct words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->at[i]);
	free(words->at);
}

static void add_options(struct words *words, const struct options *options)
{
	const struct push_options *push = &options->push;

	add(words, PROGRAM);
	add_text(words, "to", push->url);
	add_text(words, "token-file", push->token_file);
	add_text(words, "user", push->user);
	add_text(words, "tenant", push->tenant);
	add_text(words, "ca-file", push->ca_file);
	add_text(words, "types", push->types);
	for (size_t i = 0; i < push->label_count; i++)
		add_text(words, "label", push->labels[i]);
	if (push->timeout_ns)
		add(words, "--timeout=%" PRIu64 "ms", push->timeout_ns / 1000000);
	if (options->verbosity)
		add(words, options->verbosity < 0 ? "--quiet" : "--verbose");
}

static int find(char path[PATH_MAX])
{
	int err = companion_find(PROGRAM, path, PATH_MAX);

	if (err)
		log_line(PROGRAM " not found next to heaptap or in %s", HEAPTAP_LIBDIR);
	return err;
}

int pusher_run(struct options *options)
{
	struct words words = {0};
	char path[PATH_MAX];

	if (find(path))
		return STATUS_USAGE;
	add_options(&words, options);
	add_text(&words, "config", options->push.config);
	if (options->push.follow)
		add(&words, "--follow");
	if (options->push.dry_run)
		add(&words, "--dry-run");
	add(&words, "--");
	for (int i = 0; i < options->operand_count; i++)
		add(&words, "%s", options->operands[i]);
	if (words.failed)
		log_line("cannot run " PROGRAM ": out of memory");
	else if (execv(path, words.at))
		log_line("cannot run %s: %s", path, strerror(errno));
	words_free(&words);
	return STATUS_USAGE;
}

/* ---- beside a session */

/* In the child that becomes heaptap-push. */
static void become(const char *path, struct words *words, const int kept[2])
{
	sigset_t none;

	setsid();
	descriptors_drop(kept, 2);
	for (int i = 0; i < 2; i++)
		fcntl(kept[i], F_SETFD, 0);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(path, words->at);
	log_line("cannot run %s: %s", path, strerror(errno));
	_exit(STATUS_NOT_FOUND);
}

static int open_ends(int pair[2], int paths[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	if (pipe2(paths, O_CLOEXEC | O_NONBLOCK)) {
		int error = errno;

		close(pair[0]);
		close(pair[1]);
		return -error;
	}
	fcntl(paths[1], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

int pusher_start(struct pusher *pusher, const struct options *options)
{
	struct words words = {0};
	char path[PATH_MAX];
	int pair[2], paths[2], err = find(path);
	pid_t pid;

	*pusher = (struct pusher){-1, -1};
	if (err)
		return err;
	err = open_ends(pair, paths);
	if (err) {
		log_line("cannot start " PROGRAM ": %s", strerror(-err));
		return err;
	}
	add_options(&words, options);
	add(&words, "--paths-fd=%d", paths[0]);
	add(&words, "--end-fd=%d", pair[1]);
	pid = words.failed ? -1 : fork();
	if (pid == 0)
		become(path, &words, (const int[]){paths[0], pair[1]});
	close(paths[0]);
	close(pair[1]);
	words_free(&words);
	*pusher = (struct pusher){pair[0], paths[1]};
	if (pid > 0)
		return 0;
	log_line("cannot start " PROGRAM ": %s", strerror(errno));
	pusher_close_paths(pusher);
	close(pair[0]);
	pusher->fd = -1;
	return -EAGAIN;
}

void pusher_close_paths(struct pusher *pusher)
{
	if (pusher->paths_fd >= 0)
		close(pusher->paths_fd);
	pusher->paths_fd = -1;
}

void pusher_end(struct pusher *pusher)
{
	shutdown(pusher->fd, SHUT_WR);
}

void pusher_finish(struct pusher *pusher)
{
	char byte;

	if (pusher->fd >= 0 && recv(pusher->fd, &byte, 1, MSG_DONTWAIT) == 0)
		log_line(PROGRAM " ended before its time: not all profiles were sent");
	if (pusher->fd >= 0)
		close(pusher->fd);
	pusher->fd = -1;
}
