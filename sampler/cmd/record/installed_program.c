/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/installed_program.h"

#include "pprof/store/exit_code.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/core/own_resources.h"
#include "sampler/inject/foreign_preload.h"
#include "sampler/inject/reap.h"
#include "sampler/linux/installed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The words of the program's command line. Owned; the array ends with NULL. */
struct words {
	char **at;
	size_t count;
	bool failed; /* there was no memory */
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

/* Adds "--NAME=VALUE", unless value is NULL. */
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

/* Finds the path of a program. 0, or -errno after a line. */
static int find(const char *program, char path[PATH_MAX])
{
	int err = installed_file_find(program, path, PATH_MAX);

	if (err)
		log_line("%s not found next to heaptap or in %s", program, HEAPTAP_LIBDIR);
	return err;
}

/* Executes the program in place of this one. Returns, after a line, only if that fails. */
static void become(const char *path, const struct words *words)
{
	foreign_preload_hide(environ);
	if (words->failed)
		log_line("cannot run %s: out of memory", path);
	else if (execv(path, words->at))
		log_line("cannot run %s: %s", path, strerror(errno));
}

/* The same in a forked child, in a session of its own. Of the descriptors only stderr and `kept` stay open
 * (negative numbers are passed over). */
static _Noreturn void become_beside(
    const char *path, const struct words *words, const int *kept, size_t count)
{
	sigset_t none;

	setsid();
	descriptors_drop(kept, count);
	for (size_t i = 0; i < count; i++)
		if (kept[i] >= 0)
			fcntl(kept[i], F_SETFD, 0);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	become(path, words);
	_exit(STATUS_NOT_FOUND);
}

/* ---- heaptap-push */

#define PUSH "heaptap-push"

enum { PIPE_BYTES = 1 << 20 }; /* paths of some ten thousand profiles */

static void add_push_options(struct words *words, const struct options *options)
{
	const struct push_options *push = &options->push;

	add(words, PUSH);
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

int pusher_run(struct options *options)
{
	struct words words = {0};
	char path[PATH_MAX];

	if (find(PUSH, path))
		return STATUS_USAGE;
	add_push_options(&words, options);
	add_text(&words, "config", options->push.config);
	if (options->push.follow)
		add(&words, "--follow");
	if (options->push.dry_run)
		add(&words, "--dry-run");
	add(&words, "--");
	for (int i = 0; i < options->operand_count; i++)
		add(&words, "%s", options->operands[i]);
	become(path, &words);
	words_free(&words);
	return STATUS_USAGE;
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
	int pair[2], paths[2], err = find(PUSH, path);
	pid_t pid;

	*pusher = (struct pusher){-1, -1, -1};
	if (err)
		return err;
	err = open_ends(pair, paths);
	if (err) {
		log_line("cannot start " PUSH ": %s", strerror(-err));
		return err;
	}
	add_push_options(&words, options);
	add(&words, "--paths-fd=%d", paths[0]);
	add(&words, "--end-fd=%d", pair[1]);
	pid = words.failed ? -1 : fork();
	if (pid == 0)
		become_beside(path, &words, (const int[]){paths[0], pair[1]}, 2);
	close(paths[0]);
	close(pair[1]);
	words_free(&words);
	*pusher = (struct pusher){pair[0], paths[1], pid};
	if (pid > 0)
		return 0;
	log_line("cannot start " PUSH ": %s", strerror(errno));
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
		log_line(PUSH " ended before its time: not all profiles were sent");
	if (pusher->fd >= 0)
		close(pusher->fd);
	pusher->fd = -1;
}

/* ---- heaptap-serve */

#define SERVE "heaptap-serve"

enum { READY_MS = 10000 };

static void add_serve_options(struct words *words, const struct options *options)
{
	add(words, SERVE);
	for (size_t i = 0; i < options->serve.listen_count; i++)
		add_text(words, "listen", options->serve.listen[i]);
	if (options->verbosity)
		add(words, options->verbosity < 0 ? "--quiet" : "--verbose");
}

int web_server_run(struct options *options)
{
	struct words words = {0};
	char path[PATH_MAX];

	if (find(SERVE, path))
		return STATUS_USAGE;
	add_serve_options(&words, options);
	add_text(&words, "token-file", options->serve.token_file);
	add_text(&words, "socket", options->socket);
	add(&words, "--");
	for (int i = 0; i < options->operand_count; i++)
		add(&words, "%s", options->operands[i]);
	become(path, &words);
	words_free(&words);
	return STATUS_USAGE;
}

/* Waits for the program: a byte means that it listens, an end of file that it has logged why not. */
static int await_ready(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	char byte;
	int ready;

	do
		ready = poll(&poll_fd, 1, READY_MS);
	while (ready < 0 && errno == EINTR);
	if (ready == 1)
		return recv(fd, &byte, 1, 0) == 1 ? 0 : -EADDRNOTAVAIL;
	log_line(SERVE " was not ready after %d s", READY_MS / 1000);
	return -ETIMEDOUT;
}

int web_server_start(struct web_server *server, const struct options *options, pid_t sampler)
{
	struct words words = {0};
	char path[PATH_MAX];
	int pair[2], err = find(SERVE, path);
	pid_t pid;

	*server = (struct web_server){-1, -1};
	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		err = -errno;
		log_line("cannot start " SERVE ": %s", strerror(-err));
		return err;
	}
	add_serve_options(&words, options);
	add(&words, "--sampler=%d", (int)sampler);
	add(&words, "--front-fd=%d", pair[1]);
	pid = words.failed ? -1 : fork();
	if (pid == 0)
		become_beside(path, &words, &pair[1], 1);
	err = pid < 0 ? -errno : 0;
	close(pair[1]);
	words_free(&words);
	if (err)
		log_line("cannot start " SERVE ": %s", strerror(-err));
	else
		err = await_ready(pair[0]);
	if (!err) {
		*server = (struct web_server){pair[0], pid};
		return 0;
	}
	close(pair[0]);
	if (pid > 0)
		reap_within(pid, CLOCK_NS_PER_S);
	return err;
}

void web_server_end(struct web_server *server)
{
	if (server->fd >= 0)
		close(server->fd);
	server->fd = -1;
}
