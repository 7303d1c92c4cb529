/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's main loop: one thread, one epoll set.
 *
 *   front socket   COMMAND started, ended; COMMAND's pidfd stands in for a front that has died
 *   pool          an image has claimed a region
 *   rings          enough records to be worth a wakeup
 *   pidfds         a process has ended
 *   signals        SIGCHLD: a snapshot is written; SIGUSR1: somebody wants one of every process
 *   control        `heaptap snapshot` asks for one
 *   the tick       rings and stack buffers below the watermark, images that are becoming ready, new places,
 *                  snapshots that are due or asked for in the shared memory
 */
#include "sampler/session/session.h"

#include "sampler/linux/clock.h"
#include "sampler/loader/preload_library.h"
#include "sampler/region/region_takeover.h"
#include "sampler/snapshot/scheduler.h"
#include "sampler/session/control.h"
#include "sampler/snapshot/event_scheduler.h"
#include "sampler/symbol/debuginfod.h"
#include "sampler/session/self_limits.h"
#include "sampler/heap/intake.h"
#include "sampler/heap/lifetime.h"
#include "sampler/region/region_pool.h"
#include "sampler/session/front_message.h"
#include "sampler/terminal/log_line.h"
#include "sampler/cli/options.h"
#include "sampler/snapshot/output.h"
#include "sampler/session/poll_interval.h"
#include "sampler/perf/probe.h"
#include "sampler/heap/registry.h"
#include "sampler/snapshot/sink.h"
#include "sampler/snapshot/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	LIVE_MAX = 1 << 20, /* live samples of an image and its children */
	/* Here and below, auto has the hook copy stacks first and trap when its buffers are full. */
	COPY_PERIOD_BYTES = 16 << 10,
};
#define PROGRESS_NS UINT64_C(2000000000) /* after COMMAND's end, and then after twice the time */

struct session {
	const struct options *options;
	struct snapshot_settings settings;
	struct probe probe;
	struct modules *modules;
	struct intake intake;
	struct region_pool *pool;
	struct scheduler *scheduler;
	struct event_scheduler *events; /* NULL: none asked for, or not to be had */
	int events_error;               /* why not */
	struct control *control;
	struct output output;
	pid_t front;
	int front_fd, epoll_fd, signal_fd;
	int command_fd; /* COMMAND's pidfd, for when there is no front to tell of its end; -1 */
	struct registry registry;
	struct self_limits guard;
	uint64_t period_bytes; /* in force; the guard may have raised it */
	bool done_sent;
	uint64_t ended_ns,
	    progress_ns; /* COMMAND's end, 0: not yet; how long after it to say how far we are */
	struct poll_interval pace;
};

struct snapshot_settings session_settings(const struct options *options)
{
	return (struct snapshot_settings){
	    .interval_ns = options->interval_ns,
	    .keep = options->keep,
	    .detail = (int)options->symbols,
	    .verbosity = options->verbosity,
	    .labels = options->labels,
	    .period_bytes = options->period_bytes,
	    .stack_bytes = options->stack_bytes,
	    .debuginfod = options->debuginfod,
	    .sink = options->sync ? &sink_files_synced : &sink_files,
	    .delta = options->delta,
	    .timeline = options->timeline,
	    .lifetimes = options->lifetimes,
	    .events = options->events,
	    .event_count = options->event_count,
	};
}

void session_attach_command(struct event_scheduler *events, pid_t command, int front_fd, int error)
{
	char text[256];
	bool no_room = !events && (error == -EPERM || error == -ENOMEM);
	if (!events && !error)
		return;
	if (events)
		error = event_scheduler_attach_command(events, command);
	snprintf(text, sizeof(text), "no events are sampled: %s%s", strerror(-error),
	    no_room ? " (no room for their rings: ulimit -l, kernel.perf_event_mlock_kb)" : "");
	front_message_write(
	    front_fd, error ? FRONT_MESSAGE_FAILED : FRONT_MESSAGE_ATTACHED, command, 0, error ? text : NULL);
}

static int watch(struct session *s, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* ---- snapshots */

static void describe_session(void *context, char *text, size_t bytes)
{
	const struct session *s = context;
	char period[32];
	int at = snprintf(text, bytes,
	    "period %s, backend %s, stack dump %u bytes; of all processes: %llu records lost in the rings, "
	    "%llu bad",
	    summary_bytes((double)s->period_bytes, period, sizeof(period)), backend_name(s->probe.backend),
	    s->probe.dump_bytes, (unsigned long long)s->intake.ring_lost, (unsigned long long)s->intake.bad);
	char more[2][256];
	registry_describe_missed(&s->registry, more[0], sizeof(more[0]));
	backend_fallback_describe(&s->registry.fallback, more[1], sizeof(more[1]));
	for (int i = 0; i < 2 && at < (int)bytes; i++)
		if (more[i][0])
			at += snprintf(text + at, bytes - (size_t)at, "; %s", more[i]);
}

static void on_closed(void *context, struct process *process)
{
	struct session *s = context;
	scheduler_close(s->scheduler, process);
}

static uint32_t want_all(struct session *s, const char *cause, uint64_t asker)
{
	return scheduler_want_all(s->scheduler, cause, asker) +
	    event_scheduler_want_all(s->events, cause, asker);
}

/* The front's number and our own stand for everything we watch. */
static uint32_t on_asked(void *context, pid_t pid, uint64_t asker)
{
	struct session *s = context;
	if (pid == 0 || pid == s->front || pid == getpid())
		return want_all(s, "heaptap snapshot", asker);
	uint32_t count = scheduler_ask(s->scheduler, pid, asker);
	return count ? count : event_scheduler_ask(s->events, pid, asker);
}

static void on_written(void *context, uint64_t asker, pid_t pid, const char *path, int error)
{
	const struct session *s = context;
	control_answer(s->control, asker, pid, path, error);
}

/* Without them the heap is still worth it. */
static void open_events(struct session *s)
{
	const struct event_scheduler_setup setup = {
	    .settings = &s->settings,
	    .modules = s->modules,
	    .output = &s->output,
	    .epoll_fd = s->epoll_fd,
	    .registry = &s->registry,
	    .answer = on_written,
	    .context = s,
	};
	s->events = event_scheduler_new(&setup, &s->events_error);
}

/* ---- events */

static void on_front(struct session *s)
{
	struct front_message message;
	int error;
	while ((error = front_message_read(s->front_fd, &message)) == 0) {
		if (message.kind == FRONT_MESSAGE_STARTED) {
			s->registry.command = message.pid;
			s->command_fd = (int)syscall(SYS_pidfd_open, message.pid, 0);
			session_attach_command(s->events, message.pid, s->front_fd, s->events_error);
		} else if (message.kind == FRONT_MESSAGE_CANCELLED) {
			s->registry.command_ended = s->done_sent = true;
			event_scheduler_cancel(s->events);
		} else if (message.kind == FRONT_MESSAGE_ENDED) {
			s->registry.command_ended = s->registry.status_known = true;
			s->registry.command_status = message.status;
			event_scheduler_end(s->events, message.status);
		}
	}
	if (error == -EAGAIN)
		return;
	/* The front is gone: if it never started COMMAND there is nothing to wait for. Nor is there without a
	 * pidfd: it was there when the front told us, so COMMAND had ended by then. */
	close(s->front_fd);
	s->front_fd = -1;
	s->done_sent = true;
	s->registry.front_gone = true;
	event_scheduler_orphan(s->events);
	if (s->command_fd < 0 || watch(s, s->command_fd, EPOLLIN) != 0)
		s->registry.command_ended = true;
}

/* Nobody is there to tell its status, which only its parent knows. */
static void on_command_ended(struct session *s)
{
	close(s->command_fd); /* and out of the set with it */
	s->command_fd = -1;
	s->registry.command_ended = true;
}

static void on_signals(struct session *s)
{
	struct signalfd_siginfo info;
	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if ((int)info.ssi_signo == s->options->signal)
			want_all(s, "a signal to the sampler", 0);
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		scheduler_reap(s->scheduler, pid, status);
		event_scheduler_reap(s->events, pid, status);
	}
}

static void say_unseen(struct session *s)
{
	if (s->registry.command_seen || s->options->verbosity < 0)
		return;
	log_line("no profile of %s: it did not load libheaptap.so (statically linked, setuid, or it "
	         "cleared LD_PRELOAD)",
	    s->options->operands[0]);
	s->registry.command_seen = true;
}

static void say_missed(const struct session *s)
{
	char text[256];
	uint64_t unsaid = scheduler_unsaid(s->scheduler);
	if (unsaid)
		log_line("and %" PRIu64 " more processes, profiled like these (-v shows each)", unsaid);
	registry_describe_missed(&s->registry, text, sizeof(text));
	if (text[0] && s->options->verbosity >= 0)
		log_line("%s", text);
}

/* Who has to wait wants to know for what. */
static void say_progress(struct session *s)
{
	uint64_t now_ns = clock_now_ns(), written, ended;
	if (!s->ended_ns) {
		s->ended_ns = now_ns;
		s->progress_ns = PROGRESS_NS;
	}
	if (s->done_sent || s->options->verbosity < 0 || now_ns - s->ended_ns < s->progress_ns)
		return;
	s->progress_ns *= 2;
	scheduler_progress(s->scheduler, &written, &ended);
	if (written < ended)
		log_line("writing %" PRIu64 " of %" PRIu64 " profiles", written + 1, ended);
}

/* True when there is nothing left to do. */
static bool after_command(struct session *s)
{
	if (s->registry.command_ended)
		say_progress(s);
	if (!s->registry.command_ended || !scheduler_settled(s->scheduler) ||
	    !event_scheduler_settled(s->events))
		return false;
	if (!s->done_sent) {
		say_unseen(s);
		say_missed(s);
		front_message_write(s->front_fd, FRONT_MESSAGE_DONE, 0, 0, NULL);
		s->done_sent = true;
	}
	return registry_empty(&s->registry) && event_scheduler_empty(s->events);
}

static void guard(struct session *s)
{
	enum self_limits_verdict verdict = self_limits_look(&s->guard, clock_now_ns());
	if (verdict == SELF_LIMITS_FINE || s->period_bytes >= PERIOD_BYTES_MAX)
		return;
	char period[32];
	s->period_bytes *= 2;
	s->guard.raised++;
	registry_set_period(&s->registry, s->period_bytes);
	if (s->options->verbosity > 0 || s->guard.raised == 1)
		log_line("the sampler takes more %s than it may: the period is %s now",
		    verdict == SELF_LIMITS_MEMORY ? "memory" : "CPU time",
		    summary_bytes((double)s->period_bytes, period, sizeof(period)));
}

/* What nobody tells us of. Returns in how many nanoseconds a snapshot is due. */
static uint64_t look(struct session *s, bool ended)
{
	const uint64_t arrivals = s->registry.arrivals, requests = s->registry.requests;
	struct poll_interval_findings found = {.processes = registry_tend(&s->registry)};
	uint64_t looked_ns = clock_now_ns();
	found.samples = registry_drain(&s->registry);
	if (ended || s->registry.command_ended)
		registry_finish_ended(&s->registry);
	uint64_t now_ns = clock_now_ns(), due_ns = scheduler_tend(s->scheduler, now_ns, s->period_bytes);
	uint64_t events_due_ns = event_scheduler_tend(s->events, now_ns);
	found.processes += s->registry.arrivals - arrivals;
	found.requests = s->registry.requests - requests;
	poll_interval_note(&s->pace, &found, looked_ns);
	return events_due_ns < due_ns ? events_due_ns : due_ns;
}

static int loop(struct session *s)
{
	poll_interval_begin(&s->pace, clock_now_ns());
	for (uint64_t due_ns = 0;;) {
		struct epoll_event events[64];
		uint64_t timeout_ns = poll_interval_timeout_ns(&s->pace, clock_now_ns());
		int count =
		    poll_interval_wait(s->epoll_fd, events, 64, due_ns < timeout_ns ? due_ns : timeout_ns);
		if (count < 0 && errno != EINTR)
			return 1;
		bool ended = false;
		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;
			if (fd == s->front_fd)
				on_front(s);
			else if (fd == s->signal_fd)
				on_signals(s);
			else if (fd == s->command_fd)
				on_command_ended(s);
			else if (control_event(s->control, fd))
				continue;
			else if (fd == region_pool_socket_fd(s->pool))
				region_pool_knock(s->pool);
			else if (fd != region_pool_fd(s->pool))
				ended = true; /* a pidfd, or a ring: then the look costs little */
		}
		due_ns = look(s, ended);
		guard(s);
		if (after_command(s))
			return 0;
	}
}

/* The signals of users that ask for nothing must not end us either. */
static int open_signals(int snapshot_signal)
{
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	if (snapshot_signal)
		sigaddset(&mask, snapshot_signal);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	if (snapshot_signal)
		signal(snapshot_signal, SIG_DFL); /* an ignored signal would not reach the descriptor */
	sigprocmask(SIG_BLOCK, &mask, NULL);
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_scheduler(struct session *s)
{
	int error;
	open_events(s);
	s->control = control_open(s->epoll_fd, on_asked, s, &error);
	if (!s->control && s->options->verbosity > 0)
		log_line("heaptap snapshot will not find us: no socket: %s", strerror(-error));
	const struct scheduler_setup setup = {
	    .settings = &s->settings,
	    .registry = &s->registry,
	    .output = &s->output,
	    .answer = on_written,
	    .describe = describe_session,
	    .events = s->events,
	    .context = s,
	};
	s->scheduler = scheduler_new(&setup);
	return s->scheduler ? 0 : -ENOMEM;
}

static int open_session(struct session *s)
{
	const struct region_options region = {
	    .period_bytes = s->options->period_bytes,
	    .dump_bytes = s->probe.rings ? s->probe.dump_bytes : 0,
	    .clock_id = region_clock(),
	    .live_max = LIVE_MAX,
	    .copy_period_bytes = s->options->backend == BACKEND_AUTO && region_clock() == CLOCK_MONOTONIC
	        ? COPY_PERIOD_BYTES
	        : 0,
	    .mode = s->probe.backend == BACKEND_UPROBE ? REGION_MODE_TRIGGER : REGION_MODE_COPY,
	    .snapshot_signal = (uint32_t)s->options->signal,
	    .start_paused = s->options->paused,
	    .no_peak = s->options->no_peak,
	    .record_mmap = s->options->record_mmap,
	};
	int error = output_init(&s->output, s->options->output);
	s->settings = session_settings(s->options);
	s->modules = modules_new(0);
	if (error || !s->modules)
		return error ? error : -ENOMEM;
	lifetime_set_temporary(s->options->temporary_ns);
	error = intake_init(&s->intake, s->modules, s->probe.regs_mask, s->probe.rings != NULL);
	if (error)
		return error;
	s->pool = region_pool_new(&region);
	if (!s->pool)
		return -errno;
	if (region_pool_socket_error(s->pool) && s->options->verbosity >= 0)
		log_line("what other users execute is not profiled: no socket for them: %s",
		    strerror(-region_pool_socket_error(s->pool)));
	s->signal_fd = open_signals(s->options->signal);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->signal_fd < 0 || s->epoll_fd < 0)
		return -errno;
	error = watch(s, s->signal_fd, EPOLLIN);
	if (!error && s->front_fd >= 0) /* an adopter has no front */
		error =
		    fcntl(s->front_fd, F_SETFL, O_NONBLOCK) != 0 ? -errno : watch(s, s->front_fd, EPOLLIN);
	if (!error)
		error = watch(s, region_pool_fd(s->pool), EPOLLOUT | EPOLLET);
	if (!error && region_pool_socket_fd(s->pool) >= 0)
		error = watch(s, region_pool_socket_fd(s->pool), EPOLLIN);
	s->registry = (struct registry){
	    .intake = &s->intake,
	    .pool = s->pool,
	    .probe = &s->probe,
	    .modules = s->modules,
	    .epoll_fd = s->epoll_fd,
	    .verbosity = s->options->verbosity,
	    .may_yield = s->options->backend == BACKEND_AUTO,
	    .labels = s->options->labels,
	    .closed = on_closed,
	    .context = s,
	};
	registry_init(&s->registry);
	if (!error)
		error = open_scheduler(s);
	for (size_t i = 0; s->probe.rings && i < rings_count(s->probe.rings) && !error; i++)
		error = watch(s, rings_fd(s->probe.rings, i), EPOLLIN);
	return error;
}

static void close_session(struct session *s)
{
	/* the kernel takes 160 ms to close a uprobe and its rings: nobody who reads the log is to wait */
	log_line_end();
	registry_fini(&s->registry);
	region_pool_free(s->pool);
	scheduler_free(s->scheduler);
	event_scheduler_free(s->events);
	control_close(s->control);
	intake_fini(&s->intake);
	if (s->modules)
		modules_free(s->modules);
	probe_close(&s->probe);
	output_fini(&s->output);
}

/* A uprobe on the library that the target has mapped. The target says which that is, and is not believed. */
static int adopt_probe(struct session *s, pid_t pid, uint64_t trigger_address)
{
	char own[PATH_MAX], library[32];
	uint64_t mapped_offset, offset;
	int fd = preload_library_find(own, sizeof(own));
	if (fd == 0)
		fd = region_takeover_library(pid, trigger_address, own, &mapped_offset);
	if (fd < 0)
		return fd;
	int error = probe_find_trigger(fd, &offset);
	if (!error && offset != mapped_offset)
		error = -EPROTO;
	snprintf(library, sizeof(library), "/proc/self/fd/%d", fd);
	if (!error)
		error = probe_open(
		    &s->probe, BACKEND_UPROBE, library, s->options->stack_bytes, s->options->period_bytes);
	close(fd);
	return error;
}

/* Breakpoints would have to be put on each process anew, threads and all: a uprobe, or the copy backend. */
static int adopt(struct session *s, struct options *options, pid_t pid)
{
	struct region *region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	int error = region_takeover_open(pid, region);
	if (error) {
		free(region);
		return error;
	}
	options->period_bytes = s->period_bytes = atomic_load(&region_header(region)->period_bytes);
	if (adopt_probe(s, pid, region_header(region)->trigger_address) != 0)
		error = probe_open(&s->probe, BACKEND_COPY, "", options->stack_bytes, options->period_bytes);
	if (!error)
		error = open_session(s);
	if (error) {
		region_close(region);
		free(region);
		return error;
	}
	s->registry.command_ended = s->registry.front_gone = s->done_sent = true;
	return registry_adopt(&s->registry, region);
}

static const char *why_not_adopted(int error)
{
	switch (-error) {
	case ENOENT:
		return "it is not being profiled (no region of ours is mapped there)";
	case EBUSY:
		return "its sampler is alive; `heaptap snapshot PID` asks that one";
	case EPERM:
		return "opening another process' mapping needs root";
	case EPROTO:
		return "its region is another version's, or damaged";
	default:
		return strerror(-error);
	}
}

int session_adopt(struct options *options)
{
	struct session s = {
	    .options = options, .front_fd = -1, .epoll_fd = -1, .signal_fd = -1, .command_fd = -1};
	char *end;
	long pid = strtol(options->operands[0], &end, 10);
	if (*end || pid <= 0 || options->operand_count != 1) {
		log_line("'%s' is no process id; usage: heaptap adopt [OPTIONS] PID", options->operands[0]);
		return 2;
	}
	self_limits_begin();
	int error = adopt(&s, options, (pid_t)pid);
	if (error) {
		log_line("pid %ld cannot be adopted: %s", pid, why_not_adopted(error));
		return 1;
	}
	if (options->verbosity > 0)
		log_line("pid %ld adopted, backend %s", pid, backend_name(s.probe.backend));
	int status = loop(&s);
	close_session(&s);
	return status;
}

int session_run(const struct options *options, int front_fd)
{
	struct session s = {.options = options,
	    .front = getppid(),
	    .front_fd = front_fd,
	    .epoll_fd = -1,
	    .signal_fd = -1,
	    .command_fd = -1};
	char text[512];
	self_limits_begin();
	s.period_bytes = options->period_bytes;
	s.guard = (struct self_limits){
	    .rss_max_bytes = options->rss_max_bytes, .cpu_max_percent = options->cpu_max_percent};
	int error;
	/* The heap's rings take what the limits leave: the least that the events' need is kept from them. */
	struct rings *kept = options->event_count ? rings_open(EVENT_RING_BYTES_LEAST, &error) : NULL;
	error = probe_open(
	    &s.probe, options->backend, options->library, options->stack_bytes, options->period_bytes);
	rings_close(kept);
	if (error) {
		snprintf(text, sizeof(text), "backend %s cannot be had: %s", backend_name(options->backend),
		    s.probe.reason);
		front_message_write(front_fd, FRONT_MESSAGE_FAILED, 0, 0, text);
		return 1;
	}
	if (options->verbosity > 0)
		log_line("backend %s: %s", backend_name(s.probe.backend), s.probe.reason);
	if (options->debuginfod && !debuginfod_has_servers())
		log_line("--debuginfod: there is nobody to ask, $DEBUGINFOD_URLS names no server");
	error = open_session(&s);
	if (error) {
		snprintf(text, sizeof(text), "cannot start the sampler: %s", strerror(-error));
		front_message_write(front_fd, FRONT_MESSAGE_FAILED, 0, 0, text);
		return 1;
	}
	front_message_write(front_fd, FRONT_MESSAGE_READY, 0, 0, region_pool_env(s.pool));
	int status = loop(&s);
	close_session(&s);
	return status;
}
