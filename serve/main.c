/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap-serve: answers browsers and scrapers. `heaptap serve` and `heaptap record --listen` start it. */
#include "pprof/store/exit_code.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "serve/broker.h"
#include "serve/listen_address.h"
#include "serve/web.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct listening {
	struct listen_address addresses[COMMAND_LINE_LISTEN_MAX];
	int fds[COMMAND_LINE_LISTEN_MAX];
	size_t count;
	bool ours; /* we have bound them, not systemd */
};

/* If other machines can reach an address, clients must show a token. */
static int check_token(
    const struct listening *listening, const struct token *token, bool session, char *error, size_t bytes)
{
	/* record --listen takes no token for clients: its --token-file is for --push. */
	const char *way_out =
	    session ? "let heaptap serve do that, with --token-file FILE" : "give --token-file FILE too";
	char text[LISTEN_ADDRESS_BYTES];

	for (size_t i = 0; i < listening->count; i++) {
		if (listening->addresses[i].is_local || token->text[0])
			continue;
		listen_address_text(&listening->addresses[i], text);
		snprintf(error, bytes,
		    "--listen %s: other machines can reach it, and would see names, paths and memory of "
		    "programs; %s",
		    text, way_out);
		return -EPERM;
	}
	return 0;
}

/* The addresses of the command line, else of systemd's sockets, else of the configuration, else the usual
 * one. */
static int parse_addresses(struct listening *listening, struct command_line *line,
    const struct daemon_section *section, char *error, size_t bytes)
{
	static const char *const usual = COMMAND_LINE_LISTEN_DEFAULT;
	int err = 0;

	if (!line->listen_count) {
		listening->count =
		    listen_address_activated(listening->fds, listening->addresses, COMMAND_LINE_LISTEN_MAX);
		if (listening->count)
			return 0;
		command_line_take_listen(line, section);
	}
	const char *const *texts = line->listen_count ? line->listen : &usual;
	size_t count = line->listen_count ? line->listen_count : 1;
	listening->ours = true;
	for (size_t i = 0; i < count && !err; i++)
		err = listen_address_parse(&listening->addresses[listening->count++], texts[i], error, bytes);
	return err;
}

static int open_sockets(struct listening *listening, char *error, size_t bytes)
{
	char text[LISTEN_ADDRESS_BYTES];

	for (size_t i = 0; i < listening->count && listening->ours; i++) {
		listening->fds[i] = listen_address_open(&listening->addresses[i]);
		if (listening->fds[i] >= 0)
			continue;
		listen_address_text(&listening->addresses[i], text);
		snprintf(error, bytes, "cannot listen on %s: %s", text, strerror(-listening->fds[i]));
		return listening->fds[i];
	}
	return 0;
}

static int check_operands(const struct command_line *line, char *error, size_t bytes)
{
	struct stat status;

	for (int i = 0; i < line->operand_count && !line->sampler; i++) {
		if (stat(line->operands[i], &status) == 0)
			continue;
		snprintf(error, bytes, "%s: %s", line->operands[i], strerror(errno));
		return -ENOENT;
	}
	return 0;
}

static int prepare(
    struct command_line *line, struct listening *listening, struct token *token, char *error, size_t bytes)
{
	static struct daemon_section section; /* the line borrows from it */
	int err = check_operands(line, error, bytes);

	if (!err && !line->sampler) /* record --listen gives everything as options */
		err = command_line_read_section(&section, error, bytes);
	if (!err)
		command_line_take_token(line, &section);
	if (!err)
		err = parse_addresses(listening, line, &section, error, bytes);
	if (!err && line->token_file)
		err = client_token_read(token, line->token_file, error, bytes);
	if (!err)
		err = check_token(listening, token, line->sampler != 0, error, bytes);
	return err ? err : open_sockets(listening, error, bytes);
}

static void close_sockets(const struct listening *listening)
{
	for (size_t i = 0; i < listening->count; i++)
		close(listening->fds[i]);
}

static void remove_sockets(const struct listening *listening)
{
	for (size_t i = 0; i < listening->count && listening->ours; i++)
		listen_address_remove(&listening->addresses[i]);
}

enum { END_MS = 10000 }; /* for the web process to end */

/* As waitpid(2), for so long at most. Returns 0 if the process has not ended. SIGCHLD is blocked. */
static pid_t wait_for(pid_t web, int *status, uint64_t patience_ms)
{
	const uint64_t end_ns = clock_now_ns() + patience_ms * CLOCK_NS_PER_MS;
	sigset_t child;
	pid_t ended;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while ((ended = waitpid(web, status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
		uint64_t now_ns = clock_now_ns(), left_ns = now_ns < end_ns ? end_ns - now_ns : 0;
		const struct timespec left = {
		    (time_t)(left_ns / CLOCK_NS_PER_S), (long)(left_ns % CLOCK_NS_PER_S)};

		if (!left_ns)
			return 0;
		(void)sigtimedwait(&child, NULL, &left);
	}
	return ended;
}

/* The web process ends when it alone has its end of the socket pair. If it does not end in time, it is
 * killed. Returns the exit status of the whole. */
static int await_web(pid_t web)
{
	pid_t ended;
	int status;

	ended = wait_for(web, &status, END_MS);
	if (ended == 0) {
		log_line("the web process does not end, and is killed");
		kill(web, SIGKILL);
		waitpid(web, &status, 0);
		return EXIT_FAILURE;
	}
	if (ended < 0)
		return EXIT_FAILURE;
	if (WIFSIGNALED(status)) {
		log_line("the web process was killed by signal %d (%s)", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
		return EXIT_FAILURE;
	}
	return WEXITSTATUS(status);
}

/* The web process in a fork, the broker here. */
static int run(const struct command_line *line, const struct listening *listening, const struct token *token)
{
	int pair[2], status;
	pid_t web;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		log_line("no socket for the web process: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	web = fork();
	if (web == 0) {
		const struct web_setup setup = {.line = line,
		    .addresses = listening->addresses,
		    .fds = listening->fds,
		    .count = listening->count,
		    .token = token,
		    .broker_fd = pair[1]};

		close(pair[0]);
		if (line->front_fd >= 0)
			close(line->front_fd);
		return web_run(&setup);
	}
	close(pair[1]);
	close_sockets(listening);
	if (web < 0) {
		log_line("cannot start the web process: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	/* Clients that connect from now on are answered as soon as the web process can. */
	if (line->front_fd >= 0 && send(line->front_fd, "", 1, MSG_NOSIGNAL) < 0)
		log_line("the session has ended already");
	broker_run(line, pair[0]);
	status = await_web(web);
	remove_sockets(listening);
	return status;
}

int main(int argc, char *argv[])
{
	static struct command_line line;
	static struct listening listening;
	struct token token = {.text = ""};
	char error[1024];

	signal(SIGPIPE, SIG_IGN);
	if (command_line_parse(&line, argc, argv, error, sizeof(error)) ||
	    prepare(&line, &listening, &token, error, sizeof(error))) {
		log_line("%s", error);
		exit(STATUS_USAGE);
	}
	exit(run(&line, &listening, &token));
}
