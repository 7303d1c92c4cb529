/* SPDX-License-Identifier: Apache-2.0 */
/* `record --pid`: a session in the foreground, of processes that run already. */
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/record/attachments.h"
#include "sampler/cmd/record/children.h"
#include "sampler/cmd/record/installed_program.h"
#include "sampler/cmd/record/session.h"
#include "sampler/cmd/record/session_state.h"
#include "sampler/cmd/record/start_lines.h"
#include "sampler/core/attach_job.h"
#include "sampler/inject/attacher.h"
#include "sampler/inject/fitness.h"
#include "sampler/inject/library_copy.h"
#include "sampler/inject/preload_library.h"
#include "sampler/intake/region_takeover.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *why_not_sampled(int error)
{
	switch (-error) {
	case ESRCH:
		return "there is no such process";
	case EACCES:
	case EPERM:
		return "it belongs to another user, or is not dumpable: that needs root";
	case EMFILE:
		return "not enough descriptors (ulimit -n): one is needed per thread, CPU and event";
	default:
		return strerror(-error);
	}
}

/* Samples the events of a process, or logs why not. Returns whether they are sampled. */
static bool attach_events(const struct session *s, pid_t pid)
{
	int error = s->core.events ? event_registry_attach_running(s->core.events, pid) : s->events_error;

	if (error)
		log_line("pid %d cannot be sampled: %s", (int)pid, why_not_sampled(error));
	else if (s->options->verbosity > 0)
		log_line("pid %d: sampling", (int)pid);
	return error == 0;
}

/* ---- the heap */

/* Opens the library and the backend. Every target loads a copy of the library in memory, so the uprobe is
 * set on that copy. */
static int prepare_heap(struct session *s, struct options *options, struct library_copy *library_copy)
{
	struct heap_capture *heap = &s->core.heap;
	static char copy[PROC_PATH_BYTES];

#if !defined(__x86_64__)
	log_line("the heap of a process that runs already cannot be recorded here: " FITNESS_ONLY_X86
	         "; start it with 'heaptap record COMMAND'");
	return -ENOSYS;
#endif
	int error = attach_job_open_library(library_copy, copy);
	if (error) {
		if (error != -ENOEXEC) /* which was said */
			log_line(ATTACH_LIBRARY_NAME " cannot be read beside heaptap or in " HEAPTAP_LIBDIR
			                             ": %s",
			    strerror(-error));
		return error;
	}
	options->record.heap.library = copy;
	error = heap_capture_probe(heap, &options->record.heap, options->verbosity);
	heap->probe.library = NULL; /* only needed for the open */
	if (error)
		log_line("backend %s is not available: %s", backend_name(options->record.heap.backend),
		    heap->probe.reason);
	else if (options->verbosity > 0)
		log_line("stacks by %s, %s", backend_name(heap->probe.backend), heap->probe.reason);
	s->core.has_heap = true;
	return error;
}

static int begin_heap(
    struct session *s, const struct options *options, const struct library_copy *library_copy)
{
	const struct attachments_setup setup = {
	    .options = options,
	    .heap = &s->core.heap,
	    .modules = s->core.modules,
	    .library_copy = library_copy,
	    .epoll_fd = s->core.epoll_fd,
	    .signal_fd = s->core.signal_fd,
	    .socket_error = s->socket_error,
	};

	*modules_library(s->core.modules) =
	    (struct module_library){ATTACH_LIBRARY_NAME, options->record.heap.library};
	s->attachments = attachments_new(&setup);
	if (s->attachments)
		attachments_begin(s->attachments);
	return s->attachments ? 0 : -ENOMEM;
}

/* ---- the session */

/* Samples the events of the processes and their children. The children are looked for before their parents
 * are sampled: children that are forked later are sampled with their parents. Returns how many of the
 * user's processes are sampled. */
static size_t begin_events(const struct session *s, const struct options *options, size_t *children_good)
{
	struct children children = {.roots = options->record.pids, .root_count = options->record.pid_count};
	struct descendant found[OPTION_PIDS_MAX];
	size_t count = 0, good = 0;

	if (!options->record.no_children)
		count =
		    children_look(&children, found, OPTION_PIDS_MAX - options->record.pid_count, NULL, NULL);
	for (size_t i = 0; i < options->record.pid_count; i++) {
		const bool sampled = attach_events(s, options->record.pids[i]);

		if (sampled && options->record.no_heap && options->verbosity >= 0)
			start_lines_say(
			    options, &(struct start){options->record.pids[i], false, s->socket_error});
		children.of[i].refused = !sampled;
		good += sampled;
	}
	for (size_t i = 0; i < count; i++) {
		const bool ended = proc_state(found[i].pid) == '?';

		if (ended)
			children_ended(&children, &found[i]);
		else if (attach_events(s, found[i].pid))
			children_took(&children, &found[i]), ++*children_good;
	}
	if (options->record.no_heap && options->verbosity >= 0)
		children_say(&children);
	return good;
}

static int run(struct session *s, const struct options *options, const struct library_copy *library_copy)
{
	size_t good = 0, children_good = 0;
	int error = session_open(s);

	if (!error && options->record.event_count)
		good = begin_events(s, options, &children_good);
	if (!error && !options->record.no_heap)
		error = begin_heap(s, options, library_copy);
	if (error)
		log_line("cannot start the sampler: %s", why_not_sampled(error));
	bool some = options->record.no_heap ? good || children_good : !attachments_settled(s->attachments);
	int status = !error && some ? core_run(&s->core) : EXIT_FAILURE;
	bool all =
	    options->record.no_heap ? good == options->record.pid_count : !attachments_failed(s->attachments);
	attachments_free(s->attachments);
	s->attachments = NULL;
	return all ? status : EXIT_FAILURE;
}

static int attach(struct options options)
{
	struct session s;
	struct library_copy library_copy = {.fd = -1};

	session_init(&s, &options, SIGNALS_FOREGROUND, -1);
	int error = options.record.no_heap ? 0 : prepare_heap(&s, &options, &library_copy);
	session_without_command(&s, options.record.pids[0]);
	s.core.launch.attached = options.record.pids;
	s.core.launch.attached_count = options.record.pid_count;
	int status = error ? EXIT_FAILURE : run(&s, &options, &library_copy);
	if (!error)
		session_close(&s);
	if (library_copy.fd >= 0)
		close(library_copy.fd);
	return status;
}

/* Waits for the pusher, which has ten seconds. The signals that stop a session end the wait. */
static void wait_for_pusher(struct pusher *pusher)
{
	struct pollfd ended = {.fd = pusher->fd, .events = POLLIN};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	pusher_end(pusher);
	while (poll(&ended, 1, -1) < 0 && errno == EINTR)
		;
	pusher_finish(pusher);
}

int session_attach(struct options *options)
{
	struct pusher pusher = {-1, -1, -1};
	struct web_server web = {-1, -1};

	/* Before any process is touched. The web server looks for our control socket again and again. */
	if (options->serve.listen_count && web_server_start(&web, options, getpid()))
		return STATUS_USAGE;
	if (options->push.url && pusher_start(&pusher, options))
		return STATUS_USAGE;
	options->push.paths_fd = pusher.paths_fd;
	int status = attach(*options);
	web_server_end(&web);
	pusher_close_paths(&pusher);
	if (pusher.fd >= 0)
		wait_for_pusher(&pusher);
	return status;
}

/* ---- detach */

/* Waits for the attacher; a signal that stops us gives it up. */
static int await(struct attacher *attacher, int signal_fd, struct attachment *attachment)
{
	struct pollfd fds[] = {{.fd = attacher->fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	if (!fds[0].revents)
		attacher_give_up(attacher);
	return attacher_finish(attacher, attachment);
}

static int detach(pid_t pid, bool quiet)
{
	struct attacher attacher;
	struct attachment attachment = {.reason = "no process can be made for it"};
	const int signal_fd = signals_open(SIGNALS_STOPS, 0);
	const struct attachment_wish wish = {.pid = pid, .modules = modules_new(0)};
	int error = wish.modules ? attacher_start(&attacher, attachment_end, &wish) : -ENOMEM;

	if (!error)
		error = await(&attacher, signal_fd, &attachment);
	if (error == -ENOENT || error == -ESRCH)
		log_line("pid %d is not attached", (int)pid);
	else if (error)
		log_line("pid %d cannot be detached from: %s", (int)pid, attachment.reason);
	else if (!quiet)
		attachments_say("detached", pid, &attachment);
	if (wish.modules)
		modules_free(wish.modules);
	close(signal_fd);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Says how the sampling of a process ends whose sampler lives. Which heaptap the sampler is, its name and its
 * command line say: a hostile process may have the same, so they choose no more than the words. */
static void say_sampled(pid_t pid, pid_t sampler)
{
	char comm[PROC_COMM_BYTES], line[256] = "";
	const int process = (int)pid, by = (int)sampler;

	proc_read_comm(sampler, comm);
	(void)proc_read(sampler, "cmdline", line, sizeof(line) - 1);
	const char *word = line + strlen(line) + 1; /* behind the program; two NULs end what was read */
	if (strcmp(comm, "heaptap-sampler") == 0)
		log_line("pid %d was started by heaptap record, and is sampled until it ends; kill %d, "
		         "twice, ends the sampling alone, with a last snapshot",
		    process, by);
	else if (strcmp(word, "daemon") == 0)
		log_line(
		    "pid %d is profiled by the daemon (pid %d): a [service NAME] of heaptap.conf that "
		    "matches it, with profile = no, and kill -HUP %d end that; heaptap disable UNIT keeps "
		    "the library out of its next start",
		    process, by, by);
	else if (strcmp(word, "adopt") == 0)
		log_line("pid %d is profiled by heaptap adopt (pid %d): kill %d, then heaptap detach %d",
		    process, by, by, process);
	else
		log_line("another heaptap (pid %d) is attached to pid %d: Ctrl-C there, or kill %d, detaches",
		    by, process, by);
}

int session_detach(struct options *options)
{
	char *end;
	long pid = strtol(options->operands[0], &end, 10);

	if (*end || pid <= 0 || pid > INT_MAX || options->operand_count != 1) {
		log_line("'%s' is not a process id; usage: heaptap detach PID", options->operands[0]);
		return STATUS_USAGE;
	}
	pid_t sampler = region_takeover_sampler((pid_t)pid);
	if (!sampler)
		return detach((pid_t)pid, options->verbosity < 0);
	say_sampled((pid_t)pid, sampler);
	return EXIT_FAILURE;
}
