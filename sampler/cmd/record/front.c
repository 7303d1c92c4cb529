/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/front.h"

#include "pprof/store/exit_code.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/books/choice.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/record/front_message.h"
#include "sampler/cmd/record/inheritance.h"
#include "sampler/cmd/record/installed_program.h"
#include "sampler/cmd/record/notify_relay.h"
#include "sampler/cmd/record/session.h"
#include "sampler/core/own_resources.h"
#include "sampler/inject/preload_check.h"
#include "sampler/inject/preload_library.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/proc.h"
#include "sampler/perf/event_attr.h"
#include "sampler/perf/features.h"
#include "sampler/write/output.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_LOOK_MS 1000
#define END_LOOK_MS     100
#define READY_MS        10000 /* a sampler that is not ready by then is not waited for */

#define SAMPLER_STACK_BYTES (UINT64_C(1) << 20) /* that it needs at most */

/* In the child that becomes the sampler. */
static void sampler_settle(int front_fd, int paths_fd)
{
	/* Faults, stops, and the signals that signals_open() takes keep their dispositions. */
	static const int left[] = {
	    SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGKILL, SIGSTOP, SIGCONT, SIGCHLD, SIGTERM};
	sigset_t none, ignored;

	own_resources_raise_limits(); /* before a function needs a large stack */
	setsid();
	signal(SIGCHLD, SIG_DFL); /* if it were ignored, the sampler could not wait for its writers */
	/* All others are ignored, so that the last profiles are still written. A service manager sends a
	 * signal to each process of a unit: SIGABRT by its watchdog, any number by KillSignal=. And a
	 * limit of CPU time ends each process by itself. */
	sigfillset(&ignored);
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		sigdelset(&ignored, left[i]);
	for (int number = 1; number <= SIGRTMAX; number++)
		if (sigismember(&ignored, number) == 1)
			signal(number, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "heaptap-sampler");
	descriptors_drop((const int[]){front_fd, paths_fd}, 2);
}

/* Forks the sampler. Returns true in the sampler itself, where front_fd is its end of the socket. */
static bool sampler_fork(struct front *front)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		log_line("no socket for the sampler: %s", strerror(errno));
		return false;
	}
	front->sampler = fork();
	if (front->sampler == 0) {
		front->front_fd = pair[1];
		sampler_settle(pair[1], front->pusher.paths_fd);
		return true;
	}
	close(pair[1]);
	if (front->sampler > 0) {
		front->front_fd = pair[0];
	} else {
		log_line("cannot fork the sampler: %s", strerror(errno));
		close(pair[0]);
	}
	return false;
}

void front_forget_sampler(struct front *front)
{
	close(front->front_fd);
	front->front_fd = -1;
}

/* Logs how the sampler has ended before it was ready. */
static void say_sampler_died(struct front *front)
{
	struct rlimit stack = {.rlim_cur = RLIM_INFINITY};
	int status = 0;

	if (front->sampler <= 0 || waitpid(front->sampler, &status, 0) != front->sampler)
		status = 0;
	front->sampler = -1;
	getrlimit(RLIMIT_STACK, &stack);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && stack.rlim_cur < SAMPLER_STACK_BYTES)
		log_line(
		    "the sampler died while it was starting: the limit of its stack (ulimit -s) is %" PRIu64
		    " KiB",
		    (uint64_t)stack.rlim_cur >> 10);
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		log_line(
		    "the sampler died while it was starting, of %s: a fault of heaptap's, please report it",
		    strsignal(WTERMSIG(status)));
	else
		log_line(
		    "the sampler died while it was starting: dmesg says if the kernel killed it for memory");
}

/* Waits until the sampler is ready. If it is not, logs why; then front_fd is -1, and the value is empty. */
static void sampler_await_ready(struct front *front)
{
	struct pollfd poll_fd = {.fd = front->front_fd, .events = POLLIN};
	struct front_message message;
	int ret;

	if (front->front_fd < 0)
		return;
	do
		ret = poll(&poll_fd, 1, READY_MS);
	while (ret < 0 && errno == EINTR);
	if (ret == 0)
		log_line("the sampler was not ready after %d s: is the machine overloaded?", READY_MS / 1000);
	else if (ret < 0)
		log_line("cannot wait for the sampler: %s", strerror(errno));
	else if (front_message_read(front->front_fd, &message))
		say_sampler_died(front);
	else if (message.kind == FRONT_MESSAGE_FAILED)
		log_line("%s", message.text);
	else if (message.kind == FRONT_MESSAGE_READY) {
		memcpy(front->value, message.text, sizeof(front->value));
		front->socket_error = message.status;
	} else
		log_line("the sampler sent an unexpected message: a fault of heaptap's, please report it");
	if (!front->value[0])
		front_forget_sampler(front);
}

#define TOLD_NS UINT64_C(4000000000)  /* on a busy machine a second may become two */
#define MOST_NS UINT64_C(60000000000) /* one look of the sampler at many processes takes a few seconds */
#define LOOK_NS UINT64_C(2000000000)  /* a longer time between two looks means that the front could not run */

void front_timeout_restart(struct front_timeout *timeout, uint64_t now_ns)
{
	*timeout = (struct front_timeout){.looked_ns = now_ns};
}

enum front_timeout_state front_timeout_look(struct front_timeout *timeout, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns - timeout->looked_ns;

	timeout->looked_ns = now_ns;
	timeout->silent_ns += since_ns < LOOK_NS ? since_ns : LOOK_NS;
	if (timeout->silent_ns >= MOST_NS)
		return FRONT_TIMEOUT_OVER;
	if (timeout->silent_ns < TOLD_NS || timeout->silent_ns < 2 * timeout->told_ns)
		return FRONT_TIMEOUT_NOT_YET;
	timeout->told_ns = timeout->silent_ns;
	return FRONT_TIMEOUT_TELL;
}

static void on_sampler(struct front *front)
{
	struct front_message message;
	int ret = front_message_read(front->front_fd, &message);

	front_timeout_restart(&front->timeout, clock_now_ns());
	if (!ret && message.kind == FRONT_MESSAGE_DONE) {
		front->done = true;
	} else if (ret) {
		if (front->ended)
			log_line("the sampler died: its last profiles are missing");
		else
			log_line("the sampler died; %s goes on without it", front->options->operands[0]);
		front_forget_sampler(front);
	}
}

/* COMMAND has ended, and the sampler is waited for. Has it said nothing for too long? */
static void look_at_timeout(struct front *front)
{
	const pid_t pid = front->sampler;

	switch (front_timeout_look(&front->timeout, clock_now_ns())) {
	case FRONT_TIMEOUT_TELL:
		if (front->options->verbosity >= 0)
			log_line(
			    "waiting for the sampler (pid %d), which does not answer: Ctrl-C ends the wait",
			    (int)pid);
		break;
	case FRONT_TIMEOUT_OVER:
		log_line(
		    "the sampler (pid %d) has not answered for a minute: heaptap does not wait any longer, "
		    "and the last profiles may be missing",
		    (int)pid);
		front->done = true;
		break;
	default:
		break;
	}
}

/* Handles what has come: polls as in supervise(). */
static void on_events(struct front *front, const struct pollfd *polls)
{
	struct signalfd_siginfo info;

	if (polls[3].revents) /* before COMMAND's end is noted */
		notify_relay_pass(&front->notify, front->command);
	/* Signals first: the kernel hands out SIGINT before SIGCHLD. So a Ctrl-C that has ended COMMAND is
	 * not taken for a wish to end the front. */
	while (read(front->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		front_on_signal(front, &info);
		front_reap(front); /* signals may come without end, and COMMAND's end causes none */
	}
	if (polls[4].revents)
		front_reap(front);
	if (front->front_fd >= 0 && polls[1].revents)
		on_sampler(front);
	if (polls[2].revents)
		pusher_finish(&front->pusher);
}

/* Waits for events and handles them. While it waits for the sampler, it also returns once a second. */
static void supervise(struct front *front)
{
	struct pollfd polls[] = {
	    {.fd = front->signal_fd, .events = POLLIN},
	    {.fd = front->front_fd, .events = POLLIN},
	    {.fd = front->pusher.fd, .events = POLLIN},
	    {.fd = front->notify.fd, .events = POLLIN},
	    {.fd = front->parent.fd, .events = POLLIN},
	};
	const bool had_ended = front->ended, waits = had_ended && front->front_fd >= 0;
	const bool looks = front->estranged && !had_ended;

	if (poll(polls, 5, looks ? END_LOOK_MS : waits ? TIMEOUT_LOOK_MS : -1) > 0)
		on_events(front, polls);
	if (looks && (front->command_fd < 0 || pidfd_has_ended(front->command_fd)))
		front_note_end(front, FRONT_STATUS_UNKNOWN);
	if (front->ended && !had_ended) {
		front_tell_sampler(front, FRONT_MESSAGE_ENDED);
		front_timeout_restart(&front->timeout, clock_now_ns());
	}
	/* After any event: a process that sends us signals all the time must not hide that the sampler is
	 * silent. */
	if (waits && front->front_fd >= 0 && !front->done)
		look_at_timeout(front);
}

/* Waits until the pusher ends, which it does within ten seconds. */
static void pusher_await(struct front *front)
{
	if (front->front_fd >= 0)
		front_forget_sampler(front);
	front->done = false;
	pusher_end(&front->pusher);
	while (front->pusher.fd >= 0 && !front->done)
		supervise(front);
}

static int library_prepare(struct options *options, char *path, size_t path_bytes)
{
	char why[PRELOAD_CHECK_WHY_BYTES];

	if (preload_library_find(path, path_bytes)) {
		log_line("%s not found next to heaptap or in %s", PRELOAD_LIBRARY_NAME, HEAPTAP_LIBDIR);
		return -ENOENT;
	}
	if (preload_check_library(path, false, why)) {
		log_line("%s %s", path, why);
		return -ENOEXEC;
	}
	if (!preload_library_is_preloadable(path)) {
		log_line(
		    "LD_PRELOAD cannot hold a path with a space, ':' or '$': install %s elsewhere", path);
		return -EINVAL;
	}
	options->record.heap.library = path;
	return 0;
}

/* Checks whether our library can be preloaded into COMMAND, and logs why not. (A program with a sanitizer
 * must be started without the library.) */
static enum preload_check_kind forecast(const struct options *options)
{
	enum preload_check_kind kind = preload_check_inspect(options->operands[0]);
	const char *obstacle = preload_check_obstacle(kind);

	if (obstacle && options->verbosity >= 0)
		log_line("%s %s; it runs, but its heap will not be seen", options->operands[0], obstacle);
	if (kind == PRELOAD_CHECK_MUSL && options->verbosity > 0)
		log_line("%s uses musl as its C library", options->operands[0]);
	return kind;
}

static int stand_in(struct front *front)
{
	int ret;

	sampler_await_ready(front);
	if (!front->value[0])
		return front_command_become(front, NULL);
	if (front->options->serve.listen_count &&
	    web_server_start(&front->web, front->options, front->sampler))
		return STATUS_USAGE;
	ret = front_command_start(front);
	if (ret)
		return ret;
	descriptors_drop((const int[]){front->signal_fd, front->front_fd, front->witness.fd, front->parent.fd,
	                     front->command_fd, front->pusher.fd, front->web.fd, front->notify.fd,
	                     front->notify.manager_fd},
	    9);
	while (!front->ended || (front->front_fd >= 0 && !front->done))
		supervise(front);
	if (front->pusher.fd >= 0)
		pusher_await(front);
	if (front->status == FRONT_STATUS_UNKNOWN)
		return EXIT_FAILURE;
	return WIFSIGNALED(front->status) ? STATUS_SIGNAL + WTERMSIG(front->status)
	                                  : WEXITSTATUS(front->status);
}

/* Sets options->record.events. 0, or -errno after a line about what is wrong with -e. */
static int events_prepare(struct options *options, struct event *events)
{
	char error[EVENTS_ERROR_BYTES];

	if (events_choose(options->record.event_texts, options->record.event_count, events, error)) {
		log_line("%s", error);
		return -EINVAL;
	}
	for (size_t i = 0; i < options->record.event_count && options->verbosity > 0; i++)
		if (events[i].kernel_refused)
			log_line("event '%s': " FEATURES_USER_SIDE, events[i].text);
	options->record.events = events;
	return 0;
}

/* Keeps the states that COMMAND gets, and then changes them. The snapshot signal is blocked until COMMAND
 * exists: a signal that comes too early must not end the front. */
static void prepare_signals(struct front *front)
{
	const struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t set;

	sigemptyset(&set);
	if (front->options->record.heap.signal)
		sigaddset(&set, front->options->record.heap.signal);
	sigprocmask(SIG_BLOCK, &set, &front->inheritance.mask);
	sigaction(SIGCHLD, &action, &front->inheritance.child_action);
}

/* Are --only and --exclude valid? 0, or -errno with a line on stderr. */
static int check_choice(const struct options *options)
{
	char error[512];
	struct choice *choice;
	int ret = choice_new(
	    options->record.heap.only, options->record.heap.exclude, &choice, error, sizeof(error));

	if (ret)
		log_line("%s", ret == -EINVAL ? error : strerror(-ret));
	choice_free(choice);
	return ret;
}

int front_run(struct options *options)
{
	static struct event
	    events[EVENTS_MAX]; /* static: the options point to the events, and outlive this call */
	struct front front = {.options = options,
	    .sampler = -1,
	    .command = -1,
	    .front_fd = -1,
	    .witness = {.pid = -1, .fd = -1},
	    .parent = {-1, -1},
	    .command_fd = -1,
	    .notify = {-1, -1, ""},
	    .pusher = {-1, -1, -1},
	    .web = {-1, -1}};
	char library[PATH_MAX];
	const char *obstacle;
	int ret;

	if (!options->record.pid_count) {
		prepare_signals(&front);
		obstacle = inheritance_obstacle();
		if (obstacle)
			return front_command_become(&front, obstacle);
	}
	ret = output_check_folder(options->output, options->verbosity < 0);
	if (ret)
		return proc_is_shortage(-ret) && !options->record.pid_count
		    ? front_command_become(&front, NULL)
		    : STATUS_USAGE;
	if (check_choice(options))
		return STATUS_USAGE;
	if (options->record.event_count && events_prepare(options, events))
		return STATUS_USAGE;
	if (options->record.pid_count)
		return session_attach(options);
	if (options->verbosity > 0 && inheritance_has_children())
		log_line("%s is not the parent of the children that pid %d has: it cannot wait for them",
		    options->operands[0], (int)getpid());
	if (!options->record.no_heap) {
		if (library_prepare(options, library, sizeof(library)))
			return STATUS_USAGE;
		front.forecast = forecast(options);
	}
	if (options->push.url && pusher_start(&front.pusher, options))
		return STATUS_USAGE;
	options->push.paths_fd = front.pusher.paths_fd;
	/* The sampler returns to main(), as the front does: both end there. */
	if (sampler_fork(&front))
		return session_run(options, front.front_fd);
	pusher_close_paths(&front.pusher);
	return stand_in(&front);
}
