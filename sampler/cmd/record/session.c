/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/session.h"

#include "sampler/books/arrivals.h"
#include "sampler/books/process_life.h"
#include "sampler/cmd/record/session_state.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/record/front_message.h"
#include "sampler/core/heap_capture.h"
#include "sampler/core/own_resources.h"
#include "sampler/core/requests.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/symbol/debuginfod.h"
#include "sampler/write/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALIVE_NS (UINT64_C(1) * CLOCK_NS_PER_S) /* between two FRONT_MESSAGE_ALIVE */
#define PROGRESS_NS \
	(UINT64_C(2) * CLOCK_NS_PER_S) /* after COMMAND's end, until the progress is logged first */

/* ---- the session's own load */

enum session_load session_look_at_load(struct session_limits *limits, uint64_t now_ns)
{
	if (now_ns - limits->looked_ns < CLOCK_NS_PER_S)
		return SESSION_LOAD_FINE;
	uint64_t elapsed_ns = now_ns - limits->looked_ns, cpu = own_resources_cpu_ns(),
	         used_ns = cpu - limits->cpu_ns;
	bool first = limits->looked_ns == 0;
	limits->looked_ns = now_ns;
	limits->cpu_ns = cpu;
	if (limits->rss_max_bytes && own_resources_rss_bytes() > limits->rss_max_bytes)
		return SESSION_LOAD_MEMORY;
	if (!first && limits->cpu_max_percent && used_ns > elapsed_ns / 100 * limits->cpu_max_percent)
		return SESSION_LOAD_CPU;
	return SESSION_LOAD_FINE;
}

/* Looks, and doubles the period of all program runs if a limit is exceeded. */
static void limit_load(struct session_limits *limits, struct heap_capture *heap)
{
	const enum session_load verdict = session_look_at_load(limits, clock_now_ns());
	char period[AMOUNT_BYTES];

	if (verdict == SESSION_LOAD_FINE || heap->source.period_bytes >= PERIOD_BYTES_MAX)
		return;
	heap->source.period_bytes *= 2;
	limits->raised++;
	registry_set_period(&heap->registry, heap->source.period_bytes);
	if (heap->verbosity > 0 || limits->raised == 1)
		log_line("the sampler is above %s: the sampling period is doubled to %s",
		    verdict == SESSION_LOAD_MEMORY ? "--max-rss" : "--max-cpu",
		    amount_bytes((double)heap->source.period_bytes, period));
}

/* ---- COMMAND, the front, signals */

/* Attaches the counters of events to COMMAND, which waits for the front's permission to exec. */
static void attach_events(const struct session *s, pid_t command)
{
	char text[256];
	int error = s->core.events ? event_registry_attach_command(s->core.events, command) : s->events_error;
	bool no_room = !s->core.events && (error == -EPERM || error == -ENOMEM);

	if (!s->core.events && !error)
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
			s->core.launch.pid = message.pid;
			if (s->core.has_heap)
				process_life_know_command(&s->core.heap.registry);
			s->command_fd = (int)syscall(SYS_pidfd_open, message.pid, 0);
			attach_events(s, message.pid);
		} else if (message.kind == FRONT_MESSAGE_CANCELLED) {
			s->core.launch.ended = s->done_sent = true;
			event_registry_cancel(s->core.events, s->core.launch.pid);
		} else if (message.kind == FRONT_MESSAGE_ENDED) {
			s->core.launch.ended = true;
			s->core.launch.status_known = message.status >= 0;
			s->core.launch.status = message.status;
		}
	}
	if (error == -EAGAIN)
		return;
	/* The front is gone. If there is no pidfd, there is nothing to wait for: the front has not started
	 * COMMAND, or COMMAND had already ended when pidfd_open() was called. */
	epoll_set_close(s->core.epoll_fd, s->front_fd);
	s->front_fd = -1;
	s->done_sent = true;
	s->core.launch.front_gone = true;
	if (s->command_fd < 0 || epoll_set_add(s->core.epoll_fd, s->command_fd) != 0)
		s->core.launch.ended = true;
}

/* COMMAND has ended after the front. Its status is unknown: only its parent gets that. */
static void on_command_ended(struct session *s)
{
	epoll_set_close(s->core.epoll_fd, s->command_fd);
	s->command_fd = -1;
	s->core.launch.ended = true;
}

static void stop(struct session *s)
{
	s->stopping = true;
	event_registry_stop(s->core.events);
}

/*
 * A service manager stops a unit with one SIGTERM to each of its processes. The profiled processes end first,
 * and then the sampler, after it has written their profiles. So the first SIGTERM is ignored. A second one is
 * meant for the sampler itself: then it writes snapshots of the processes that still live.
 */
static void on_terminate(struct session *s)
{
	if (s->terminations++ != 1)
		return;
	stop(s);
	scheduler_ask_all(s->core.scheduler, "a second SIGTERM to the sampler", 0);
}

static void on_signal(struct core *core, int number)
{
	struct session *s = core->command;

	if (number == s->options->record.heap.signal)
		(void)requests_want_all(core, "a signal to heaptap");
	else if (number == SIGTERM && s->role == SIGNALS_FRONT)
		on_terminate(s);
	else if (!s->stopping)
		stop(s);
}

/* ---- the loop */

/* Logs what the user has to know before the front exits. */
static void summarize(struct session *s)
{
	uint64_t unsaid = s->core.events ? event_source_unsaid(&s->event_source) : 0;

	if (s->core.has_heap)
		end_summary_say(&s->summary, s->options, &s->core.heap, false);
	if (unsaid)
		log_line("and the events of %" PRIu64 " more processes", unsaid);
	s->summarized = true;
}

/* Tells the front that all is done. Call it again until done_sent is set: while the front is stopped, the
 * socket may have no room. (If the front is gone, on_front() hears of it.) */
static void say_done(struct session *s)
{
	if (!s->summarized)
		summarize(s);
	output_let_go(&s->core.output); /* a script that waits for the front may unmount the folder */
	s->done_sent = front_message_write(s->front_fd, FRONT_MESSAGE_DONE, 0, 0, NULL) != -EAGAIN;
}

/* After COMMAND's end the user waits: logs how many profiles are still to be written, each time after
 * twice as long. */
static void log_progress(struct session *s, uint64_t now_ns)
{
	uint64_t written, ended;

	if (now_ns - s->ended_ns < s->progress_ns)
		return;
	s->progress_ns *= 2;
	scheduler_progress(s->core.scheduler, &written, &ended);
	if (written < ended)
		log_line("writing %" PRIu64 " of %" PRIu64 " profiles", written + 1, ended);
}

/* COMMAND has ended, and its profiles are being written. */
static void say_progress(struct session *s)
{
	const uint64_t now_ns = clock_now_ns();

	if (!s->ended_ns) {
		s->ended_ns = now_ns;
		s->progress_ns = PROGRESS_NS;
		scheduler_hurry_writing(s->core.scheduler, !s->core.launch.front_gone);
	}
	if (s->done_sent)
		return;
	if (!s->core.launch.front_gone && now_ns - s->alive_ns >= ALIVE_NS) {
		s->alive_ns = now_ns;
		front_message_write(s->front_fd, FRONT_MESSAGE_ALIVE, 0, 0, NULL);
	}
	if (s->options->verbosity >= 0)
		log_progress(s, now_ns);
}

/* Are the last profiles written, of COMMAND and of all processes that have ended before it? The ends of
 * some processes are looked for only now and then: so one more look is made before the front is told that
 * all is done. */
static bool all_written(struct session *s)
{
	if (!scheduler_settled(s->core.scheduler) || !event_registry_settled(s->core.events))
		return false;
	if (s->core.events && !s->done_sent)
		event_registry_sweep(s->core.events, true);
	return scheduler_settled(s->core.scheduler);
}

/* True when there is nothing left to do. */
static bool is_over(struct core *core)
{
	struct session *s = core->command;

	if (!attachments_settled(s->attachments))
		return false;
	if (s->core.launch.ended)
		say_progress(s);
	if (s->stopping && !s->core.launch.ended)
		return scheduler_idle(s->core.scheduler);
	if (!s->core.launch.ended || !all_written(s))
		return false;
	if (!s->done_sent)
		say_done(s);
	if (s->stopping) /* a second signal: end now, even if the front cannot be told */
		return scheduler_idle(s->core.scheduler);
	if (!s->done_sent)
		return false;
	return (!s->core.has_heap || registry_empty(&s->core.heap.registry)) &&
	    event_registry_empty(s->core.events);
}

/* Stops the session when --duration is over. Returns the time until then. */
static uint64_t look_at_duration(struct session *s)
{
	const uint64_t now_ns = clock_now_ns();

	if (s->options->record.duration_ns && !s->end_ns && attachments_settled(s->attachments))
		s->end_ns = now_ns + s->options->record.duration_ns;
	if (!s->end_ns)
		return UINT64_MAX;
	if (s->end_ns > now_ns)
		return s->end_ns - now_ns;
	if (!s->stopping)
		stop(s);
	return UINT64_MAX;
}

static uint64_t after_look(struct core *core)
{
	struct session *s = core->command;
	const uint64_t end_ns = look_at_duration(s);

	if (core->has_heap)
		limit_load(&s->limits, &core->heap);
	if (s->stopping && !s->attachments_stopped) {
		attachments_stop(s->attachments);
		s->attachments_stopped = true;
		core_read_signals(core); /* attachments_stop() may have read SIGCHLD: wait for children */
	}
	return end_ns;
}

static bool on_event(struct core *core, int fd)
{
	struct session *s = core->command;

	if (fd == s->front_fd)
		on_front(s);
	else if (fd == s->command_fd)
		on_command_ended(s);
	else if (!attachments_event(s->attachments, fd))
		return true; /* a pidfd, or a ring of events: one more look costs little */
	return false;
}

/* ---- beginning and end */

static void fill_settings(struct snapshot_settings *settings, const struct options *options)
{
	*settings = (struct snapshot_settings){
	    .interval_ns = options->record.interval_ns,
	    .keep = options->record.keep,
	    .min_samples = options->record.min_samples,
	    .detail = options->record.symbols,
	    .verbosity = options->verbosity,
	    .debuginfod = options->record.debuginfod,
	    .delta = options->record.heap.delta,
	    .thresholds = {options->record.on, options->record.on_count, options->record.on_limit_ns},
	};
}

static void open_events(struct session *s)
{
	s->event_source = (struct event_source){
	    .base = {.kind = &event_source_kind, .scheduler = s->core.scheduler},
	    .heaps = s->core.has_heap ? &s->core.heap.registry : NULL,
	};
	const struct event_registry_setup setup = {
	    .events = s->options->record.events,
	    .event_count = s->options->record.event_count,
	    .stack_bytes = s->options->record.heap.stack_bytes,
	    .by_thread = s->options->record.heap.labels & HEAP_LABEL_THREAD,
	    .modules = s->core.modules,
	    .memory = &s->core.memory,
	    .verbosity = s->options->verbosity,
	    .epoll_fd = s->core.epoll_fd,
	    .launch = &s->core.launch,
	    .listener = scheduler_listener(&s->event_source.base),
	};
	s->event_source.registry = s->core.events = event_registry_new(&setup, &s->events_error);
}

static int open_ground(struct session *s)
{
	struct core *core = &s->core;
	int error = output_init(&core->output, s->options->output);

	fill_settings(&core->settings, s->options);
	sink_files_init(&s->files, &core->output);
	core->settings.sink = &s->files.base;
	if (s->options->push.url) {
		sink_announced_init(&s->announced, &s->files.base, s->options->push.paths_fd);
		core->settings.sink = &s->announced.base;
	}
	core->memory.max_bytes = memory_bound_bytes(s->options->record.rss_max_bytes);
	if (!error)
		error = core_open(core, s->role, s->options->record.heap.signal);
	if (!error && s->front_fd >= 0)
		error = fcntl(s->front_fd, F_SETFL, O_NONBLOCK) != 0
		    ? -errno
		    : epoll_set_add(core->epoll_fd, s->front_fd);
	return error ? error : core_open_scheduler(core, (struct scheduler_setup){0});
}

static void open_socket(struct session *s)
{
	char prefix[CONTROL_FOLDER_BYTES + 16];
	int error = session_socket_open(&s->socket);

	if (error >= 0) {
		snprintf(prefix, sizeof(prefix), "%s/%d.", s->socket.folder, (int)getpid());
		error = requests_open(&s->core, error, CONTROL_NO_GROUP, prefix);
	}
	if (error)
		session_socket_close(&s->socket);
	s->socket_error = error < 0 ? error : 0;
	if (error && s->front_fd < 0 && s->options->verbosity > 0) /* else the front's first lines say it */
		log_line("`heaptap snapshot` will not work: no control socket: %s", strerror(-error));
}

int session_open(struct session *s)
{
	int error = open_ground(s);

	if (error)
		return error;
	open_events(s);
	if (!s->core.has_heap && s->events_error) /* with a heap, the session goes on without events */
		return s->events_error;
	if (s->core.has_heap)
		error = core_open_heap(&s->core, s->core.events ? &s->event_source : NULL, false);
	if (!error)
		open_socket(s);
	return error;
}

void session_close(struct session *s)
{
	if (s->core.has_heap && s->core.heap.registry.setup.launch)
		end_summary_say(&s->summary, s->options, &s->core.heap, true);
	/* Before the uprobe and its rings are closed, which takes the kernel 160 ms: a reader of the log
	 * must not wait for that. */
	log_line_end();
	requests_close(&s->core);
	session_socket_close(&s->socket);
	core_close(&s->core);
}

void session_init(struct session *s, const struct options *options, enum signals_role role, int front_fd)
{
	static const struct core_handlers handlers = {.signal = on_signal,
	    .event = on_event,
	    .after_look = after_look,
	    .reads_at_once = true,
	    .is_over = is_over,
	    .list = session_list_write};

	own_resources_raise_limits();
	*s = (struct session){.options = options,
	    .core = core_of(&handlers),
	    .limits = {.rss_max_bytes = options->record.rss_max_bytes,
	        .cpu_max_percent = options->record.cpu_max_percent},
	    .socket = {.folder_fd = -1},
	    .role = role,
	    .front_fd = front_fd,
	    .command_fd = -1,
	    .since_unix_ns = clock_unix_ns()};
	s->core.command = s;
	s->core.front = role == SIGNALS_FRONT ? getppid() : 0;
}

void session_without_command(struct session *s, pid_t pid)
{
	s->core.launch = (struct launch){.pid = pid, .ended = true, .front_gone = true};
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
	    ? "the hard limit of a file's size (ulimit -H -f) is below the 330 MB of the memory "
	      "that it shares with programs, most of it holes"
	    : strerror(-error);
}

int session_run(const struct options *options, int front_fd)
{
	struct session s;
	const struct probe *probe = &s.core.heap.probe;
	char text[64];

	session_init(&s, options, SIGNALS_FRONT, front_fd);
	s.core.has_heap = !options->record.no_heap;
	if (s.core.has_heap) {
		snprintf(text, sizeof(text), "backend %s is not available",
		    backend_name(options->record.heap.backend));
		if (heap_capture_probe(&s.core.heap, &options->record.heap, options->verbosity) != 0)
			return fail(front_fd, text, probe->reason);
		if (options->verbosity > 0)
			log_line("stacks by %s, %s", backend_name(probe->backend), probe->reason);
	}
	if (options->record.debuginfod && !debuginfod_has_servers())
		log_line("--debuginfod: no effect, $DEBUGINFOD_URLS names no server");
	int error = session_open(&s);
	if (error)
		return fail(front_fd, "cannot start the sampler", why_not_started(error));
	front_message_write(front_fd, FRONT_MESSAGE_READY, 0, s.socket_error,
	    s.core.has_heap ? region_pool_env(s.core.heap.pool) : "none");
	int status = core_run(&s.core);
	session_close(&s);
	return status;
}
