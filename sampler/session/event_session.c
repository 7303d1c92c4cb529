/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/event_session.h"

#include "sampler/linux/clock.h"
#include "sampler/session/control.h"
#include "sampler/snapshot/event_scheduler.h"
#include "sampler/session/front_message.h"
#include "sampler/session/session.h"
#include "sampler/unwind/module.h"
#include "sampler/terminal/log_line.h"
#include "sampler/cli/options.h"
#include "sampler/snapshot/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that is gone leaves its books to be closed: so long may that wait. The rings wake us when they
 * fill. */
enum { TICK_MS = 20 };

struct observe {
	const struct options *options;
	struct snapshot_settings settings;
	struct event_scheduler *events;
	struct modules *modules;
	struct control *control;
	struct output output;
	pid_t front;
	int front_fd, epoll_fd, signal_fd; /* front_fd -1: none, or gone */
	bool command_ended, done_sent, stopping;
};

static uint32_t on_asked(void *context, pid_t pid, uint64_t asker)
{
	const struct observe *o = context;
	if (pid == 0 || pid == o->front || pid == getpid())
		return event_scheduler_want_all(o->events, "heaptap snapshot", asker);
	return event_scheduler_ask(o->events, pid, asker);
}

static void on_written(void *context, uint64_t asker, pid_t pid, const char *path, int error)
{
	const struct observe *o = context;
	control_answer(o->control, asker, pid, path, error);
}

static int watch(const struct observe *o, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	return epoll_ctl(o->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static int open_signals(const struct options *options, bool foreground)
{
	static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	for (size_t i = 0; foreground && i < sizeof(stops) / sizeof(stops[0]); i++)
		sigaddset(&mask, stops[i]);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error like another */
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	if (options->signal) {
		sigaddset(&mask, options->signal);
		signal(options->signal, SIG_DFL); /* an ignored signal would not reach the descriptor */
	}
	sigprocmask(SIG_BLOCK, &mask, NULL);
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_all(struct observe *o)
{
	struct rlimit files;
	int error = output_init(&o->output, o->options->output), ignored;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	o->settings = session_settings(o->options);
	o->modules = modules_new(0);
	o->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	o->signal_fd = open_signals(o->options, o->front_fd < 0);
	if (error || !o->modules || o->epoll_fd < 0 || o->signal_fd < 0)
		return error ? error : -ENOMEM;
	const struct event_scheduler_setup setup = {
	    .settings = &o->settings,
	    .modules = o->modules,
	    .output = &o->output,
	    .epoll_fd = o->epoll_fd,
	    .answer = on_written,
	    .context = o,
	};
	error = watch(o, o->signal_fd);
	if (!error && o->front_fd >= 0)
		error = fcntl(o->front_fd, F_SETFL, O_NONBLOCK) != 0 ? -errno : watch(o, o->front_fd);
	if (!error)
		o->events = event_scheduler_new(&setup, &error);
	if (!error)
		o->control = control_open(o->epoll_fd, on_asked, o, &ignored);
	return error;
}

static void close_all(struct observe *o)
{
	control_close(o->control);
	event_scheduler_free(o->events);
	if (o->modules)
		modules_free(o->modules);
	output_fini(&o->output);
	if (o->signal_fd >= 0)
		close(o->signal_fd);
	if (o->epoll_fd >= 0)
		close(o->epoll_fd);
}

static void on_front(struct observe *o)
{
	struct front_message message;
	int error;
	while ((error = front_message_read(o->front_fd, &message)) == 0) {
		if (message.kind == FRONT_MESSAGE_STARTED) {
			session_attach_command(o->events, message.pid, o->front_fd, 0);
		} else if (message.kind == FRONT_MESSAGE_CANCELLED) {
			o->command_ended = o->done_sent = true;
			event_scheduler_cancel(o->events);
		} else if (message.kind == FRONT_MESSAGE_ENDED) {
			o->command_ended = true;
			event_scheduler_end(o->events, message.status);
		}
	}
	if (error == -EAGAIN)
		return;
	close(o->front_fd);
	o->front_fd = -1;
	event_scheduler_orphan(o->events);
	o->command_ended = o->done_sent = true;
}

static void on_signals(struct observe *o)
{
	struct signalfd_siginfo info;
	while (read(o->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo;
		if (number == o->options->signal)
			event_scheduler_want_all(o->events, "a signal to the sampler", 0);
		else if (number != SIGCHLD && !o->stopping) {
			o->stopping = true;
			event_scheduler_stop(o->events);
		}
	}
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		event_scheduler_reap(o->events, pid, status);
}

/* True when there is nothing left to do. */
static bool is_over(struct observe *o)
{
	if (!o->command_ended && !o->stopping)
		return false;
	if (!event_scheduler_settled(o->events))
		return false;
	if (!o->done_sent && o->front_fd >= 0)
		front_message_write(o->front_fd, FRONT_MESSAGE_DONE, 0, 0, NULL);
	o->done_sent = true;
	return o->stopping || event_scheduler_empty(o->events);
}

static int loop(struct observe *o)
{
	for (uint64_t due_ns = 0;;) {
		struct epoll_event events[64];
		int timeout =
		    due_ns < (uint64_t)TICK_MS * 1000000 ? (int)((due_ns + 999999) / 1000000) : TICK_MS;
		int count = epoll_wait(o->epoll_fd, events, 64, timeout);
		if (count < 0 && errno != EINTR)
			return 1;
		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;
			if (fd == o->front_fd)
				on_front(o);
			else if (fd == o->signal_fd)
				on_signals(o);
			else
				(void)control_event(o->control, fd); /* or a ring */
		}
		due_ns = event_scheduler_tend(o->events, clock_now_ns());
		if (is_over(o))
			return 0;
	}
}

int event_session_run(const struct options *options, int front_fd)
{
	struct observe o = {
	    .options = options, .front = getppid(), .front_fd = front_fd, .epoll_fd = -1, .signal_fd = -1};
	int error = open_all(&o);
	char text[256];
	if (error) {
		snprintf(text, sizeof(text), "cannot start the sampler: %s", strerror(-error));
		front_message_write(front_fd, FRONT_MESSAGE_FAILED, 0, 0, text);
		return 1;
	}
	front_message_write(front_fd, FRONT_MESSAGE_READY, 0, 0, "none");
	int status = loop(&o);
	close_all(&o);
	return status;
}

static const char *why_not(int error)
{
	switch (-error) {
	case ESRCH:
		return "there is no such process";
	case EACCES:
	case EPERM:
		return "it is another user's, or has made itself undumpable: that takes root";
	case EMFILE:
		return "not enough descriptors (ulimit -n): it takes one per thread, CPU and event";
	default:
		return strerror(-error);
	}
}

int event_session_pid(const struct options *options)
{
	struct observe o = {.options = options, .front_fd = -1, .epoll_fd = -1, .signal_fd = -1};
	int error = open_all(&o);
	if (!error)
		error = event_scheduler_attach(o.events, options->pid);
	if (error) {
		log_line("pid %d cannot be sampled: %s", (int)options->pid, why_not(error));
		close_all(&o);
		return 1;
	}
	if (options->verbosity > 0)
		log_line("pid %d: sampling", (int)options->pid);
	o.command_ended = o.done_sent = true;
	int status = loop(&o);
	close_all(&o);
	return status;
}
