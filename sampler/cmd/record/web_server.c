/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/web_server.h"

#include "pprof/store/exit_code.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/record/installed_program.h"
#include "sampler/inject/reap.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROGRAM "heaptap-serve"

enum { READY_MS = 10000 };

static void add_options(struct installed_program_words *words, const struct options *options)
{
	installed_program_add(words, PROGRAM);
	for (size_t i = 0; i < options->serve.listen_count; i++)
		installed_program_add_text(words, "listen", options->serve.listen[i]);
	if (options->verbosity)
		installed_program_add(words, options->verbosity < 0 ? "--quiet" : "--verbose");
}

int web_server_run(struct options *options)
{
	struct installed_program_words words = {0};
	char path[PATH_MAX];

	if (installed_program_find(PROGRAM, path))
		return STATUS_USAGE;
	add_options(&words, options);
	installed_program_add_text(&words, "token-file", options->serve.token_file);
	installed_program_add_text(&words, "socket", options->socket);
	installed_program_add(&words, "--");
	for (int i = 0; i < options->operand_count; i++)
		installed_program_add(&words, "%s", options->operands[i]);
	installed_program_become(path, &words);
	installed_program_words_free(&words);
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
	log_line(PROGRAM " was not ready after %d s", READY_MS / 1000);
	return -ETIMEDOUT;
}

int web_server_start(struct web_server *server, const struct options *options, pid_t sampler)
{
	struct installed_program_words words = {0};
	char path[PATH_MAX];
	int pair[2], err = installed_program_find(PROGRAM, path);
	pid_t pid;

	*server = (struct web_server){-1, -1};
	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		err = -errno;
		log_line("cannot start " PROGRAM ": %s", strerror(-err));
		return err;
	}
	add_options(&words, options);
	installed_program_add(&words, "--sampler=%d", (int)sampler);
	installed_program_add(&words, "--front-fd=%d", pair[1]);
	pid = words.failed ? -1 : fork();
	if (pid == 0)
		installed_program_become_beside(path, &words, &pair[1], 1);
	err = pid < 0 ? -errno : 0;
	close(pair[1]);
	installed_program_words_free(&words);
	if (err)
		log_line("cannot start " PROGRAM ": %s", strerror(-err));
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
