/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/broker.h"

#include "pprof/store/spool_files.h"
#include "pprof/text/clock.h"
#include "sampler/core/control_client.h"
#include "sampler/core/control_peer.h"
#include "sampler/core/control_server.h"
#include "sampler/linux/regular_file.h"
#include "serve/command_line.h"
#include "serve/control_sockets.h"
#include "serve/file_list.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* Questions that wait for an answer: one list of each control socket, and profiles of several. */
	ASKS_MAX = CONTROL_SOCKETS_MAX + 256,
	LIST_MS = 3000,
	LIST_FOREIGN_MS = 1000, /* all clients wait for another user's sampler */
	PROFILE_MS = 60000,
	READ_MS = 30000, /* the web process has so long to read a reply */
	QUESTIONS_AT_ONCE = 64,
};

/* A question of the web process that waits for the answers of a control socket. */
struct ask {
	int fd; /* -1: free */
	uint64_t id, server;
	uint64_t end_ns; /* the sampler has time until then */
	enum control_verb verb;
	bool accepted; /* the sampler has said that it will answer */
};

struct broker {
	const struct command_line *line;
	int web_fd, signal_fd;
	struct control_sockets sockets;
	struct file_list files;
	struct ask asks[ASKS_MAX];
	bool stuck; /* the web process does not read, or a signal came meanwhile */
};

/* ---- replies */

/* Takes over passed_fd. The web process reads replies at once, unless somebody has taken it over. */
static void reply(struct broker *broker, struct broker_reply *message, int passed_fd)
{
	struct pollfd polls[2] = {
	    {.fd = broker->web_fd, .events = POLLOUT}, {.fd = broker->signal_fd, .events = POLLIN}};

	while (!broker->stuck &&
	    broker_message_send(broker->web_fd, message, sizeof(*message), passed_fd) == -EAGAIN) {
		int ready = poll(polls, 2, READ_MS);

		broker->stuck =
		    ready == 0 || (ready > 0 && polls[1].revents) || (ready < 0 && errno != EINTR);
	}
	if (passed_fd >= 0)
		close(passed_fd);
}

static void set_text(struct broker_reply *message, const char *text)
{
	size_t length = strnlen(text, sizeof(message->text) - 1);

	memcpy(message->text, text, length);
	message->text[length] = '\0';
}

static void refuse(struct broker *broker, uint64_t id, int error, const char *why)
{
	struct broker_reply message = {.id = id, .error = error, .last = 1};

	set_text(&message, why ? why : strerror(-error));
	reply(broker, &message, -1);
}

/* Replies with a descriptor that holds so many bytes, or with the error in fd. */
static void hand_over(struct broker *broker, uint64_t id, int fd, uint64_t bytes)
{
	struct broker_reply message = {.id = id, .bytes = bytes, .last = 1};

	if (fd < 0)
		refuse(broker, id, fd, NULL);
	else
		reply(broker, &message, fd);
}

/* ---- control sockets */

static struct ask *free_ask(struct broker *broker)
{
	for (struct ask *ask = broker->asks; ask < broker->asks + ASKS_MAX; ask++)
		if (ask->fd < 0)
			return ask;
	return NULL;
}

static void end_ask(struct ask *ask)
{
	close(ask->fd);
	ask->fd = -1;
}

/* 0: answers will come; or -errno. */
static int begin_ask(struct broker *broker, const struct broker_question *question, uint64_t server,
    const struct control_request *control)
{
	uint64_t patience_ms = PROFILE_MS + question->duration_ms;
	struct control_sockets_item *item = control_sockets_find(&broker->sockets, server);
	struct ask *ask = free_ask(broker);
	int fd = !item ? -ENOENT : ask ? control_sockets_connect(&broker->sockets, item) : -EBUSY, err;

	if (fd < 0)
		return fd;
	if (control->verb == CONTROL_LIST)
		patience_ms = control_peer_is_trusted(item->listed.user) ? LIST_MS : LIST_FOREIGN_MS;
	err = control_client_send(fd, control);
	if (err) {
		close(fd);
		return err;
	}
	*ask = (struct ask){.fd = fd,
	    .id = question->id,
	    .server = server,
	    .end_ns = clock_now_ns() + patience_ms * CLOCK_NS_PER_MS,
	    .verb = control->verb};
	return 0;
}

/* When the last list has come, sends the last reply to the question for lists. */
static void finish_list(struct broker *broker, uint64_t id)
{
	struct broker_reply message = {.id = id, .last = 1};

	for (const struct ask *ask = broker->asks; ask < broker->asks + ASKS_MAX; ask++)
		if (ask->fd >= 0 && ask->id == id)
			return;
	reply(broker, &message, -1);
}

/* Tells the web process that a sampler is there but cannot answer now. That is no end of its processes. */
static void say_late(struct broker *broker, uint64_t id, uint64_t server, int error)
{
	struct broker_reply message = {.id = id, .server = server, .error = error};

	if (error == -ETIMEDOUT || error == -EBUSY || error == -EAGAIN || error == -EMFILE ||
	    error == -ENFILE)
		reply(broker, &message, -1);
}

static void give_up(struct broker *broker, struct ask *ask, int error, const char *why)
{
	const struct ask copy = *ask;

	end_ask(ask);
	if (copy.verb == CONTROL_LIST) {
		say_late(broker, copy.id, copy.server, error);
		finish_list(broker, copy.id);
	} else {
		refuse(broker, copy.id, error, why);
	}
}

/* If the list cannot be handed on, *fd is -1 or -errno. */
static void take_list(struct broker *broker, struct broker_reply *message, int *fd)
{
	struct control_sockets_item *item = control_sockets_find(&broker->sockets, message->server);

	if (!item) { /* the socket has gone meanwhile */
		close(*fd);
		*fd = -1;
		return;
	}
	message->user = item->listed.user;
	message->foreign = !control_peer_is_trusted(item->listed.user);
	*fd = control_sockets_take_list(&broker->sockets, item, *fd, &message->bytes, &message->left_out);
}

/* What an answer without a result means. */
static const struct refusal {
	int error;
	const char *why; /* NULL: the text of the answer */
} refusals[] = {
    [CONTROL_BUSY] = {-EBUSY, "too many requests wait for this process' sampler"},
    [CONTROL_UNKNOWN] = {-ESRCH, "the process is not profiled any more"},
    [CONTROL_UNSAMPLED] = {-ENOENT, "the process has taken no sample yet"},
    [CONTROL_UNSUPPORTED] = {-EOPNOTSUPP, "the process' sampler has no such profile"},
    [CONTROL_OFF] = {-ECANCELED, "the daemon is off"},
    [CONTROL_GONE] = {-ESRCH, "the process has ended"},
    [CONTROL_FAILED] = {-EIO, NULL},
};

/* The answer with the result. A sampler may be anybody's, and answer something else. */
static const enum control_answer_kind results[] = {
    [CONTROL_LIST] = CONTROL_LISTED,
    [CONTROL_SNAPSHOT] = CONTROL_WRITTEN,
    [CONTROL_PROFILE] = CONTROL_PROFILED,
    [CONTROL_CPU] = CONTROL_PROFILED,
};

static void take_result(
    struct broker *broker, struct ask *ask, const struct control_answer *answer, int profile_fd)
{
	const uint64_t id = ask->id;
	const bool list = ask->verb == CONTROL_LIST;
	struct broker_reply message = {
	    .id = id, .server = ask->server, .bytes = answer->bytes, .last = !list};

	if (answer->kind == CONTROL_WRITTEN)
		set_text(&message, answer->text);
	end_ask(ask);
	if (list)
		take_list(broker, &message, &profile_fd);
	reply(broker, &message, profile_fd);
	if (list)
		finish_list(broker, id);
}

static void take_answer(
    struct broker *broker, struct ask *ask, const struct control_answer *answer, int profile_fd)
{
	const struct refusal *refusal = &refusals[answer->kind];

	if (answer->kind == results[ask->verb]) {
		take_result(broker, ask, answer, profile_fd);
		return;
	}
	if (profile_fd >= 0)
		close(profile_fd);
	if (refusal->error)
		give_up(broker, ask, refusal->error, refusal->why ? refusal->why : answer->text);
	else if (answer->kind == CONTROL_ASKED && ask->verb != CONTROL_LIST && !ask->accepted)
		ask->accepted = true;
	else
		give_up(broker, ask, -EPROTO, "the process' sampler answers something else");
}

static void on_socket(struct broker *broker, struct ask *ask)
{
	struct control_answer answer;
	int profile_fd, got = control_client_receive(ask->fd, 0, &answer, &profile_fd);

	if (got == -EAGAIN)
		return;
	if (got == 1)
		take_answer(broker, ask, &answer, profile_fd);
	else
		give_up(broker, ask, got ? got : -ECONNRESET, "the process' sampler has ended");
}

/* ---- questions */

static void ask_lists(struct broker *broker, const struct broker_question *question)
{
	const struct control_request control = {.verb = CONTROL_LIST};

	control_sockets_look(&broker->sockets);
	for (size_t i = 0; i < broker->sockets.count; i++) {
		uint64_t server = broker->sockets.items[i].number;

		say_late(broker, question->id, server, begin_ask(broker, question, server, &control));
	}
	finish_list(broker, question->id);
}

static void ask_process(struct broker *broker, const struct broker_question *question, enum control_verb verb)
{
	const struct control_request control = {
	    .verb = verb, .target = CONTROL_PID, .pid = question->pid, .duration_ms = question->duration_ms};
	int err = begin_ask(broker, question, question->server, &control);

	if (err)
		refuse(broker, question->id, err, NULL);
}

static void read_cmdline(struct broker *broker, const struct broker_question *question)
{
	const struct control_sockets_item *item = control_sockets_find(&broker->sockets, question->server);
	uint64_t bytes = 0;
	int fd = item ? control_sockets_command_line(item, question->pid, &bytes) : -ENOENT;

	hand_over(broker, question->id, fd, bytes);
}

static void scan(struct broker *broker, const struct broker_question *question)
{
	struct file_list_store stores[CONTROL_SOCKETS_MAX];
	size_t bytes = 0, count = 0;
	char *text = NULL;
	int err;

	file_list_fini(&broker->files);
	for (size_t i = 0; i < broker->sockets.count; i++) {
		const struct listed *listed = &broker->sockets.items[i].listed;

		if (listed->store)
			stores[count++] = (struct file_list_store){
			    listed->store, listed->store_depth, listed->store_since_ns};
	}
	err = file_list_find(&broker->files, broker->line->operands, stores, count);
	if (!err)
		text = file_list_print(&broker->files, &bytes);
	hand_over(broker, question->id,
	    text      ? control_server_memory(text, bytes)
	        : err ? err
	              : -ENOMEM,
	    bytes);
	free(text);
}

/* Opens the file that the scan has found, and no other: a symbolic link in its place may lead out of the
 * folder. If a new file has the name now, the next scan finds it. */
static void open_file(struct broker *broker, const struct broker_question *question)
{
	const struct file_list_item *item = file_list_by_number(&broker->files, question->file);
	struct stat status = {0};
	int fd = item ? regular_file_open(AT_FDCWD, item->path, 0, &status) : -ENOENT;

	if (fd >= 0 && (status.st_dev != item->device || status.st_ino != item->inode)) {
		close(fd);
		fd = -ENOENT;
	}
	hand_over(broker, question->id, fd, (uint64_t)status.st_size);
}

static void read_spools(struct broker *broker, const struct broker_question *question)
{
	struct spool_list spools;
	char *text = NULL;
	size_t bytes = 0;
	int err = spool_list_read(&spools);

	if (!err)
		text = spool_list_print(&spools, &bytes);
	hand_over(broker, question->id, text ? control_server_memory(text, bytes) : -ENOMEM, (uint64_t)bytes);
	free(text);
	spool_list_fini(&spools);
}

static void cancel(struct broker *broker, uint64_t id)
{
	for (struct ask *ask = broker->asks; ask < broker->asks + ASKS_MAX; ask++)
		if (ask->fd >= 0 && ask->id == id)
			end_ask(ask); /* the sampler sees that nobody waits */
}

static void handle(struct broker *broker, const struct broker_question *question)
{
	switch ((enum broker_verb)question->verb) {
	case BROKER_LIST:
		ask_lists(broker, question);
		break;
	case BROKER_PROFILE:
		ask_process(broker, question, CONTROL_PROFILE);
		break;
	case BROKER_CPU:
		ask_process(broker, question, CONTROL_CPU);
		break;
	case BROKER_SNAPSHOT:
		/* A snapshot is written for clients that have shown the token, so never if there is none. */
		if (broker->line->token_file)
			ask_process(broker, question, CONTROL_SNAPSHOT);
		else
			refuse(broker, question->id, -EPERM, NULL);
		break;
	case BROKER_CMDLINE:
		read_cmdline(broker, question);
		break;
	case BROKER_SCAN:
		scan(broker, question);
		break;
	case BROKER_OPEN:
		open_file(broker, question);
		break;
	case BROKER_SPOOLS:
		read_spools(broker, question);
		break;
	case BROKER_CANCEL:
		cancel(broker, question->id);
		break;
	}
}

/* False: the web process has ended. */
static bool on_web(struct broker *broker)
{
	struct broker_question question;
	int passed_fd, got = 1;

	for (int i = 0; i < QUESTIONS_AT_ONCE && got == 1; i++) {
		got = broker_message_receive(broker->web_fd, &question, sizeof(question), &passed_fd);
		if (got != 1)
			break;
		if (passed_fd >= 0)
			close(passed_fd);
		handle(broker, &question);
	}
	return got == 1 || got == -EAGAIN;
}

/* ---- the loop */

static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static int open_signals(void)
{
	static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t mask;

	sigemptyset(&mask);
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		if (!is_ignored(stops[i])) /* nohup, or a shell's job in the background */
			sigaddset(&mask, stops[i]);
	sigaddset(&mask, SIGCHLD);
	signal(SIGCHLD, SIG_DFL); /* if it is ignored, there is no status of the web process */
	sigprocmask(SIG_BLOCK, &mask, NULL);
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Was a signal to stop received? SIGCHLD is none. */
static bool is_stopped(const struct broker *broker)
{
	struct signalfd_siginfo info;
	bool stopped = false;

	while (read(broker->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		stopped = stopped || info.ssi_signo != SIGCHLD;
	return stopped;
}

/* The front sends nothing: its descriptor is readable when the front ends. poll(2) takes no more entries than
 * we may have descriptors. */
static bool wait_once(struct broker *broker)
{
	struct pollfd polls[3 + ASKS_MAX] = {{.fd = broker->signal_fd, .events = POLLIN},
	    {.fd = broker->web_fd, .events = POLLIN}, {.fd = broker->line->front_fd, .events = POLLIN}};
	struct ask *asked[ASKS_MAX];
	nfds_t count = 0;
	uint64_t now_ns;

	for (struct ask *ask = broker->asks; ask < broker->asks + ASKS_MAX; ask++) {
		if (ask->fd < 0)
			continue;
		polls[3 + count] = (struct pollfd){.fd = ask->fd, .events = POLLIN};
		asked[count++] = ask;
	}
	if (poll(polls, 3 + count, 1000) < 0 && errno != EINTR)
		return false;
	now_ns = clock_now_ns();
	for (nfds_t i = 0; i < count; i++) {
		if (polls[3 + i].revents)
			on_socket(broker, asked[i]);
		else if (now_ns >= asked[i]->end_ns)
			give_up(broker, asked[i], -ETIMEDOUT, "the process' sampler does not answer");
	}
	if ((polls[0].revents && is_stopped(broker)) || polls[2].revents)
		return false;
	return (!polls[1].revents || on_web(broker)) && !broker->stuck;
}

void broker_run(const struct command_line *line, int web_fd)
{
	static struct broker broker;

	broker.line = line;
	broker.web_fd = web_fd;
	broker.signal_fd = open_signals();
	broker.sockets = (struct control_sockets){.daemon_path = line->socket,
	    .with_daemon = !line->sampler && (line->socket || !line->operand_count),
	    .with_sessions = line->sampler || !line->operand_count,
	    .only = line->sampler};
	for (size_t i = 0; i < ASKS_MAX; i++)
		broker.asks[i].fd = -1;
	while (wait_once(&broker))
		;
	for (size_t i = 0; i < ASKS_MAX; i++)
		if (broker.asks[i].fd >= 0)
			end_ask(&broker.asks[i]);
	file_list_fini(&broker.files);
	close(broker.signal_fd);
	close(web_fd);
}
