/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/pusher.h"

#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/record/installed_program.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROGRAM "heaptap-push"

enum { PIPE_BYTES = 1 << 20 }; /* paths of some ten thousand profiles */

static void add_options(struct installed_program_words *words, const struct options *options)
{
	const struct push_options *push = &options->push;

	installed_program_add(words, PROGRAM);
	installed_program_add_text(words, "to", push->url);
	installed_program_add_text(words, "token-file", push->token_file);
	installed_program_add_text(words, "user", push->user);
	installed_program_add_text(words, "tenant", push->tenant);
	installed_program_add_text(words, "ca-file", push->ca_file);
	installed_program_add_text(words, "types", push->types);
	for (size_t i = 0; i < push->label_count; i++)
		installed_program_add_text(words, "label", push->labels[i]);
	if (push->timeout_ns)
		installed_program_add(words, "--timeout=%" PRIu64 "ms", push->timeout_ns / 1000000);
	if (options->verbosity)
		installed_program_add(words, options->verbosity < 0 ? "--quiet" : "--verbose");
}

int pusher_run(struct options *options)
{
	struct installed_program_words words = {0};
	char path[PATH_MAX];

	if (installed_program_find(PROGRAM, path))
		return STATUS_USAGE;
	add_options(&words, options);
	installed_program_add_text(&words, "config", options->push.config);
	if (options->push.follow)
		installed_program_add(&words, "--follow");
	if (options->push.dry_run)
		installed_program_add(&words, "--dry-run");
	installed_program_add(&words, "--");
	for (int i = 0; i < options->operand_count; i++)
		installed_program_add(&words, "%s", options->operands[i]);
	installed_program_become(path, &words);
	installed_program_words_free(&words);
	return STATUS_USAGE;
}

/* ---- beside a session */

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
	struct installed_program_words words = {0};
	char path[PATH_MAX];
	int pair[2], paths[2], err = installed_program_find(PROGRAM, path);
	pid_t pid;

	*pusher = (struct pusher){-1, -1, -1};
	if (err)
		return err;
	err = open_ends(pair, paths);
	if (err) {
		log_line("cannot start " PROGRAM ": %s", strerror(-err));
		return err;
	}
	add_options(&words, options);
	installed_program_add(&words, "--paths-fd=%d", paths[0]);
	installed_program_add(&words, "--end-fd=%d", pair[1]);
	pid = words.failed ? -1 : fork();
	if (pid == 0)
		installed_program_become_beside(path, &words, (const int[]){paths[0], pair[1]}, 2);
	close(paths[0]);
	close(pair[1]);
	installed_program_words_free(&words);
	*pusher = (struct pusher){pair[0], paths[1], pid};
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
