/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's main loop: one thread, one epoll set.
 *
 *   front socket   COMMAND started, ended; if the front has died, COMMAND's pidfd
 *   pool           an image has claimed a region
 *   rings          records above the watermark
 *   pidfds         a process has ended
 *   signals        see signals.h
 *   control        `heaptap snapshot` asks for one
 *   the tick       rings and stack buffers below the watermark, images that have become ready, new places,
 *                  snapshots that are due or asked for in the shared memory
 */
#include "sampler/session/session.h"

#include "sampler/session/session_state.h"

#include "pprof/text/log_line.h"
#include "sampler/cli/options.h"
#include "sampler/cli/status.h"
#include "sampler/linux/clock.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/session/front_message.h"
#include "sampler/session/heap_capture.h"
#include "sampler/session/progress.h"
#include "sampler/session/serving.h"
#include "sampler/session/signals.h"
#include "sampler/snapshot/sink.h"
#include "sampler/symbol/debuginfod.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Without a heap: how late the books of an ended process may be closed. The rings wake us when they fill. */
enum { TICK_NS = 20 * 1000000 };

/* ---- requests for snapshots */

static void want_all(const struct session *s, const char *cause)
{
	serving_find_processes(&s->serving);
	scheduler_want_all(s->scheduler, cause, 0);
}

/* ---- COMMAND, the front, signals */

/* Attaches the counters to COMMAND, which waits for the front's permission to exec. */
static void attach_events(const struct session *s, pid_t command)
{
	char text[256];
	int error = s->events ? event_registry_attach_command(s->events, command) : s->events_error;
	bool no_room = !s->events && (error == -EPERM || error == -ENOMEM);

	if (!s->events && !error)
		return;
	snprintf(text, sizeof(text), "no events are sampled: %s%s", strerror(-error),
	    no_room ? " (no room for their rings: ulimit -l, kernel.perf_event_mlock_kb)" : "");
	front_message_write(s->front_fd, error ? FRONT_MESSAGE_FAILED : FRONT_MESSAGE_ATTACHED, command, 0,
	    error ? text : NULL);
}

static void on_front(struct session *s)
{
	struct front_message message;
	int error;

	while ((error = front_message_read(s->front_fd, &message)) == 0) {
		if (message.kind == FRONT_MESSAGE_STARTED) {
			s->launch.pid = message.pid;
			if (s->heap)
				registry_know_command(&s->heap->registry);
			s->command_fd = (int)syscall(SYS_pidfd_open, message.pid, 0);
			attach_events(s, message.pid);
		} else if (message.kind == FRONT_MESSAGE_CANCELLED) {
			s->launch.ended = s->done_sent = true;
			event_registry_cancel(s->events, s->launch.pid);
		} else if (message.kind == FRONT_MESSAGE_ENDED) {
			s->launch.ended = true;
			s->launch.status_known = message.status >= 0;
			s->launch.status = message.status;
		}
	}
	if (error == -EAGAIN)
		return;
	/* The front is gone: if it never started COMMAND there is nothing to wait for. Without a pidfd
	 * there is nothing to wait for either: pidfd_open failed because COMMAND had already ended. */
	epoll_set_close(s->epoll_fd, s->front_fd);
	s->front_fd = -1;
	s->done_sent = true;
	s->launch.front_gone = true;
	if (s->command_fd < 0 || epoll_set_add(s->epoll_fd, s->command_fd) != 0)
		s->launch.ended = true;
}

/* The front is gone, so the status is unknown: only the parent gets it. */
static void on_command_ended(struct session *s)
{
	epoll_set_close(s->epoll_fd, s->command_fd);
	s->command_fd = -1;
	s->launch.ended = true;
}

/*
 * A service manager stops a unit with one SIGTERM to each of its processes: first the profiled ones end, then
 * the sampler, after it has written their profiles. So only a second SIGTERM is meant for the sampler itself:
 * then snapshots of the processes that still live are written.
 */
static void on_terminate(struct session *s)
{
	if (s->terminations++ != 1)
		return;
	s->stopping = true;
	event_registry_stop(s->events);
	scheduler_want_all(s->scheduler, "a second SIGTERM to the sampler", 0);
}

static void reap(struct session *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!serving_reap(&s->serving, pid, status))
			scheduler_reap(s->scheduler, pid, status);
}

static void on_signals(struct session *s)
{
	int number;

	while ((number = signals_read(s->signal_fd)) != 0) {
		if (number == s->options->signal) {
			want_all(s, "a signal to heaptap");
		} else if (number == SIGTERM && s->role == SIGNALS_FRONT) {
			on_terminate(s);
		} else if (number != SIGCHLD && !s->stopping) {
			s->stopping = true;
			event_registry_stop(s->events);
		}
	}
	reap(s);
}

/* ---- the loop */

/* Reports what the user has to know before the front exits. */
static void summarize(struct session *s)
{
	uint64_t unsaid = s->events ? event_source_unsaid(&s->event_source) : 0;

	if (s->heap)
		heap_capture_summarize(s->heap, false);
	if (unsaid)
		log_line("and the events of %" PRIu64 " processes more", unsaid);
	s->summarized = true;
}

/* To be called again until done_sent is set: while the front is stopped, there may be no room for a message.
 * (If it is gone, on_front() hears of it.) */
static void say_done(struct session *s)
{
	if (!s->summarized)
		summarize(s);
	output_let_go(&s->output); /* who waits for the front may unmount it */
	s->done_sent = front_message_write(s->front_fd, FRONT_MESSAGE_DONE, 0, 0, NULL) != -EAGAIN;
}

static void say_progress(struct session *s)
{
	uint64_t now_ns = clock_now_ns();

	if (progress_begin(&s->progress, now_ns))
		scheduler_hurry_writing(s->scheduler, !s->launch.front_gone);
	if (!s->done_sent && !s->launch.front_gone && progress_is_alive(&s->progress, now_ns))
		front_message_write(s->front_fd, FRONT_MESSAGE_ALIVE, 0, 0, NULL);
	if (!s->done_sent && s->options->verbosity >= 0)
		progress_tell(&s->progress, s->scheduler, now_ns);
}

/* The last profiles of COMMAND, and of all that have ended before it: such an end may be one of those that
 * are looked for at times alone, while the front goes when it is told that all is done. */
static bool all_written(struct session *s)
{
	if (!scheduler_settled(s->scheduler) || !event_registry_settled(s->events))
		return false;
	if (s->events && !s->done_sent)
		event_registry_sweep(s->events, true);
	return scheduler_settled(s->scheduler);
}

/* True when there is nothing left to do. */
static bool is_over(struct session *s)
{
	if (!attachments_settled(s->attachments))
		return false;
	if (s->launch.ended)
		say_progress(s);
	if (s->stopping && !s->launch.ended)
		return scheduler_idle(s->scheduler);
	if (!s->launch.ended || !all_written(s))
		return false;
	if (!s->done_sent)
		say_done(s);
	if (s->stopping) /* told to for the second time: now, whether the front can be told or not */
		return scheduler_idle(s->scheduler);
	if (!s->done_sent)
		return false;
	return (!s->heap || registry_empty(&s->heap->registry)) && event_registry_empty(s->events);
}

/* Handles everything that causes no event. Returns the time until the next look, in nanoseconds, at most. */
static uint64_t look(struct session *s, bool ended)
{
	if (s->heap && heap_capture_look(s->heap, ended || s->launch.ended))
		scheduler_hurry(s->scheduler);
	event_registry_tend(s->events, clock_now_ns());
	uint64_t due_ns = scheduler_tend(s->scheduler, clock_now_ns());
	uint64_t now_ns = clock_now_ns();
	if (s->options->duration_ns && !s->end_ns && attachments_settled(s->attachments))
		s->end_ns = now_ns + s->options->duration_ns;
	if (s->end_ns && now_ns >= s->end_ns && !s->stopping) {
		s->stopping = true;
		event_registry_stop(s->events);
	}
	if (s->end_ns > now_ns && s->end_ns - now_ns < due_ns)
		due_ns = s->end_ns - now_ns;
	uint64_t serving_ns = serving_tend(&s->serving, now_ns);
	if (serving_ns < due_ns)
		due_ns = serving_ns;
	uint64_t tick_ns = s->heap ? poll_interval_timeout_ns(&s->heap->pace, clock_now_ns()) : TICK_NS;
	return due_ns < tick_ns ? due_ns : tick_ns;
}

int session_loop(struct session *s)
{
	for (uint64_t timeout_ns = 0;;) {
		struct epoll_event events[64];
		int count = poll_interval_wait(s->epoll_fd, events, 64, timeout_ns);

		if (count < 0 && errno != EINTR) {
			log_line("the sampler cannot wait for events: %s", strerror(errno));
			return EXIT_FAILURE;
		}
		bool ended = false;
		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;

			if (fd == s->front_fd)
				on_front(s);
			else if (fd == s->signal_fd)
				on_signals(s);
			else if (fd == s->command_fd)
				on_command_ended(s);
			else if (!serving_event(&s->serving, fd) && !attachments_event(s->attachments, fd) &&
			    !(s->heap && heap_capture_event(s->heap, fd)))
				ended =
				    true; /* a pidfd, or a ring of the events: an extra check costs little */
		}
		timeout_ns = look(s, ended);
		if (s->heap)
			heap_capture_limit(s->heap);
		if (s->stopping && !s->attachments_stopped) {
			attachments_stop(s->attachments);
			s->attachments_stopped = true;
			reap(s); /* signals have been read meanwhile */
		}
		if (is_over(s))
			return EXIT_SUCCESS;
	}
}

/* ---- beginning and end */

static void fill_settings(struct snapshot_settings *settings, const struct options *options)
{
	*settings = (struct snapshot_settings){
	    .interval_ns = options->interval_ns,
	    .keep = options->keep,
	    .min_samples = options->min_samples,
	    .detail = options->symbols,
	    .verbosity = options->verbosity,
	    .debuginfod = options->debuginfod,
	    .delta = options->delta,
	    .timeline = options->timeline,
	    .lifetimes = options->lifetimes,
	    .thresholds = {options->on, options->on_count, options->on_limit_ns},
	};
}

static void open_events(struct session *s)
{
	s->event_source = (struct event_source){
	    .base = {.kind = &event_source_kind, .scheduler = s->scheduler},
	    .heaps = s->heap ? &s->heap->registry : NULL,
	};
	const struct event_registry_setup setup = {
	    .events = s->options->events,
	    .event_count = s->options->event_count,
	    .stack_bytes = s->options->stack_bytes,
	    .by_thread = s->options->labels & HEAP_LABEL_THREAD,
	    .modules = s->modules,
	    .memory = &s->memory,
	    .verbosity = s->options->verbosity,
	    .epoll_fd = s->epoll_fd,
	    .launch = &s->launch,
	    .listener = scheduler_listener(&s->event_source.base),
	};
	s->event_source.registry = s->events = event_registry_new(&setup, &s->events_error);
}

static int open_ground(struct session *s)
{
	int error = output_init(&s->output, s->options->output);

	fill_settings(&s->settings, s->options);
	sink_files_init(&s->files, &s->output, s->options->sync);
	s->settings.sink = &s->files.base;
	if (s->options->push.url) {
		sink_announced_init(&s->announced, &s->files.base, s->options->push.paths_fd);
		s->settings.sink = &s->announced.base;
	}
	s->modules = modules_new(0);
	s->memory.max_bytes = memory_bound_bytes(s->options->rss_max_bytes);
	if (error || !s->modules)
		return error ? error : -ENOMEM;
	s->signal_fd = signals_open(s->role, s->options->signal);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->signal_fd < 0 || s->epoll_fd < 0)
		return -errno;
	error = epoll_set_add(s->epoll_fd, s->signal_fd);
	if (!error && s->front_fd >= 0)
		error = fcntl(s->front_fd, F_SETFL, O_NONBLOCK) != 0
		    ? -errno
		    : epoll_set_add(s->epoll_fd, s->front_fd);
	const struct scheduler_setup setup = {.settings = &s->settings,
	    .output = &s->output,
	    .answer = serving_answer,
	    .context = &s->serving,
	    .memory = {serving_give, &s->serving}};
	s->scheduler = scheduler_new(&setup);
	return error || s->scheduler ? error : -ENOMEM;
}

int session_open(struct session *s)
{
	int error = open_ground(s), control_error;

	if (error)
		return error;
	open_events(s);
	if (!s->heap && s->events_error) /* with a heap, the session goes on without events */
		return s->events_error;
	const struct heap_capture_setup heap = {
	    .launch = &s->launch,
	    .modules = s->modules,
	    .memory = &s->memory,
	    .epoll_fd = s->epoll_fd,
	    .scheduler = s->scheduler,
	    .events = s->events ? &s->event_source : NULL,
	};
	if (s->heap)
		error = heap_capture_open(s->heap, &heap);
	s->serving.scheduler = s->scheduler;
	s->serving.heap = s->heap;
	s->serving.events = s->events;
	s->serving.front = s->front;
	control_error = error ? 0 : serving_open(&s->serving, s->epoll_fd);
	if (control_error && s->options->verbosity > 0)
		log_line("`heaptap snapshot` will not work: no control socket: %s", strerror(-control_error));
	return error;
}

void session_close(struct session *s)
{
	if (s->heap && s->heap->registry.launch)
		heap_capture_summarize(s->heap, true);
	/* the kernel takes 160 ms to close a uprobe and its rings: a reader of the log must not wait for
	 * that */
	log_line_end();
	serving_close(&s->serving);
	scheduler_free(s->scheduler);
	event_registry_free(s->events);
	if (s->heap)
		heap_capture_close(s->heap);
	if (s->modules)
		modules_free(s->modules);
	output_fini(&s->output);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
}

struct session session_of(const struct options *options, enum signals_role role, int front_fd)
{
	self_limits_begin();
	return (struct session){.options = options,
	    .front = role == SIGNALS_FRONT ? getppid() : 0,
	    .role = role,
	    .front_fd = front_fd,
	    .epoll_fd = -1,
	    .signal_fd = -1,
	    .command_fd = -1};
}

/* Without COMMAND there is no front that reports its end. */
void session_without_command(struct session *s, pid_t pid)
{
	s->launch = (struct launch){.pid = pid, .ended = true, .front_gone = true};
	s->done_sent = true;
}

static int fail(int front_fd, const char *what, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "%s: %s", what, why);
	front_message_write(front_fd, FRONT_MESSAGE_FAILED, 0, 0, text);
	return EXIT_FAILURE;
}

static const char *why_not_started(int error)
{
	return error == -EFBIG
	    ? "the hard limit of a file's size (ulimit -H -f) is below the 500 MB of the memory "
	      "that it shares with programs, most of it holes"
	    : strerror(-error);
}

int session_run(const struct options *options, int front_fd)
{
	struct session s = session_of(options, SIGNALS_FRONT, front_fd);
	struct heap_capture heap = {0};
	char text[64];

	if (!options->no_heap) {
		s.heap = &heap;
		snprintf(text, sizeof(text), "backend %s is not available", backend_name(options->backend));
		if (heap_capture_probe(&heap, options) != 0)
			return fail(front_fd, text, heap.probe.reason);
		if (options->verbosity > 0)
			log_line("stacks by %s, %s", backend_name(heap.probe.backend), heap.probe.reason);
	}
	if (options->debuginfod && !debuginfod_has_servers())
		log_line("--debuginfod: no effect, $DEBUGINFOD_URLS names no server");
	int error = session_open(&s);
	if (error)
		return fail(front_fd, "cannot start the sampler", why_not_started(error));
	front_message_write(
	    front_fd, FRONT_MESSAGE_READY, 0, 0, s.heap ? region_pool_env(heap.pool) : "none");
	int status = session_loop(&s);
	session_close(&s);
	return status;
}

static const char *why_not_adopted(int error)
{
	switch (-error) {
	case ENOENT:
		return "it is not being profiled (it has not mapped heaptap's shared memory)";
	case EBUSY:
		return "its sampler is alive; use `heaptap snapshot PID`";
	case EPERM:
		return "opening another process' mapping needs root";
	case EPROTO:
		return "its shared memory was made by another version of heaptap, or is damaged";
	default:
		return strerror(-error);
	}
}

int session_adopt(struct options *options)
{
	struct session s = session_of(options, SIGNALS_ADOPTED, -1);
	struct heap_capture heap = {0};
	struct region *region;
	char *end;
	long pid = strtol(options->operands[0], &end, 10);

	if (*end || pid <= 0 || options->operand_count != 1) {
		log_line(
		    "'%s' is not a process id; usage: heaptap adopt [OPTIONS] PID", options->operands[0]);
		return STATUS_USAGE;
	}
	if (output_check_folder(options->output, options->verbosity < 0))
		return STATUS_USAGE;
	s.heap = &heap;
	session_without_command(&s, 0);
	int error = heap_capture_find_orphan(&heap, options, (pid_t)pid, &region);
	if (!error) {
		error = session_open(&s);
		if (!error)
			error = registry_adopt(&heap.registry, region);
		else
			region_close(region), free(region);
	}
	if (error) {
		log_line("pid %ld cannot be adopted: %s", pid, why_not_adopted(error));
		return EXIT_FAILURE;
	}
	if (options->verbosity > 0)
		log_line("pid %ld adopted, backend %s", pid, backend_name(heap.probe.backend));
	int status = session_loop(&s);
	session_close(&s);
	return status;
}
