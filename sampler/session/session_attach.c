/* SPDX-License-Identifier: Apache-2.0 */
/* `record --pid`: a session in the foreground, of processes that run already. */
#include "sampler/attach/attachment.h"
#include "sampler/attach/delivery.h"
#include "sampler/attach/fitness.h"
#include "sampler/cli/options.h"
#include "sampler/cli/status.h"
#include "sampler/linux/clock.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"
#include "sampler/loader/preload_library.h"
#include "sampler/region/region_takeover.h"
#include "sampler/session/session.h"
#include "sampler/session/session_state.h"
#include "pprof/text/log_line.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* True: its events are sampled. */
static bool attach_events(const struct session *s, pid_t pid)
{
	int error = s->events ? event_registry_attach_running(s->events, pid) : s->events_error;
	if (error)
		log_line("pid %d cannot be sampled: %s", (int)pid, why_not_sampled(error));
	else if (s->options->verbosity > 0)
		log_line("pid %d: sampling", (int)pid);
	return error == 0;
}

/* ---- the heap */

static struct registry_attached facts_of(pid_t pid)
{
	char status[4096];
	struct timespec up = {0};
	uint64_t ticks = thread_facts_started(pid), hertz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct registry_attached facts = {.pid = pid};
	clock_gettime(CLOCK_BOOTTIME, &up);
	uint64_t now_ns = (uint64_t)up.tv_sec * UINT64_C(1000000000) + (uint64_t)up.tv_nsec;
	uint64_t began_ns =
	    ticks / hertz * UINT64_C(1000000000) + ticks % hertz * (UINT64_C(1000000000) / hertz);
	facts.after_ns = ticks && now_ns > began_ns ? now_ns - began_ns : 0;
	(void)proc_read(pid, "status", status, sizeof(status));
	facts.rss_bytes = proc_status_number(status, "\nVmRSS:", 10, 0) << 10;
	return facts;
}

static void name_of(pid_t pid, char name[32])
{
	if (proc_read(pid, "comm", name, 32) <= 0)
		strcpy(name, "?");
	name[strcspn(name, "\n")] = '\0';
	for (char *c = name; *c; c++)
		*c = *c >= ' ' && *c <= '~' ? *c : '?';
}

static void say_stood(const char *what, pid_t pid, const struct attachment *attachment)
{
	char name[32];
	name_of(pid, name);
	log_line("pid %d (%s): %s; one thread stood still for %.1f ms (%" PRIu32 " looks)", (int)pid, name,
	    what, (double)attachment->stood_ns / 1e6, attachment->tries);
}

static bool refuse(pid_t pid, const char *cause, const char *remedy)
{
	log_line("pid %d %s%s%s", (int)pid, cause, remedy[0] ? ": " : "", remedy);
	return false;
}

/* True: its heap is recorded. */
static bool attach_heap(struct session *s, pid_t pid, int library_fd)
{
	struct fitness fitness;
	struct attachment attachment;
	char cause[256];
	if (!fitness_examine(&fitness, pid, s->options->force))
		return refuse(pid, fitness.cause, fitness.remedy);
	struct registry_attached facts = facts_of(pid);
	struct region *region = region_pool_make(s->heap->pool);
	if (!region)
		return refuse(pid, "cannot be attached to: no shared memory can be made", "");
	int error = attachment_begin(&attachment, pid, region, s->modules, library_fd);
	if (error) {
		region_close(region);
		free(region);
		snprintf(cause, sizeof(cause), "cannot be attached to: %s", attachment.reason);
		return refuse(pid, cause, "");
	}
	facts.again = attachment.reused;
	if (registry_attach(&s->heap->registry, region, &facts) != 0)
		return refuse(pid, "cannot be attached to: out of memory", "");
	if (s->options->verbosity >= 0)
		say_stood("attached", pid, &attachment);
	return true;
}

static void detach(void *context, const struct target *target)
{
	const struct session *s = context;
	struct attachment attachment;
	int error = target->pidfd < 0 ? -ESRCH : attachment_end(&attachment, target->pid, s->modules);
	if (error == -ESRCH || (error && target_has_ended(target)))
		return;
	if (error)
		log_line(
		    "pid %d: the hooks stay in, and do nothing: %s", (int)target->pid, attachment.reason);
	else if (s->options->verbosity > 0 || (target->command && s->options->verbosity >= 0))
		say_stood("detached", target->pid, &attachment);
}

/* Forked children that have taken no sample are in no book, and have the hooks all the same. */
static void detach_unknown(const struct session *s)
{
	struct attachment attachment;
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	while (proc && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);
		const struct image *image =
		    pid > 0 && pid != getpid() ? s->heap->registry.intake->images : NULL;
		for (; image; image = image->next)
			if (image->attached_pid && region_mapped_by(image->region, pid) == REGION_MAPPED)
				(void)attachment_end(&attachment, pid, s->modules);
	}
	if (proc)
		closedir(proc);
}

static void detach_all(struct session *s)
{
	registry_stop_attached(&s->heap->registry);
	registry_detach(&s->heap->registry, detach, s);
	detach_unknown(s);
}

/* The library's copy in memory is what every target loads, so the uprobe is set on that. */
static int prepare_heap(
    struct session *s, struct heap_capture *heap, struct options *options, int *library_fd)
{
	static char copy[PROC_PATH_BYTES];
	char path[PATH_MAX];
#if !defined(__x86_64__)
	log_line("the heap of a process that runs already can be recorded on x86-64 alone: start it with "
	         "'heaptap record COMMAND'");
	return -ENOSYS;
#endif
	int error = attach_library_find(path, sizeof(path));
	if (!error)
		*library_fd = error = delivery_open(path);
	if (error < 0) {
		log_line(ATTACH_LIBRARY_NAME " cannot be read beside heaptap or in " HEAPTAP_LIBDIR ": %s",
		    strerror(-error));
		return error;
	}
	options->library = proc_fd_path(copy, *library_fd);
	error = heap_capture_probe(heap, options);
	heap->probe.library = NULL; /* only needed for the open */
	if (error)
		log_line(
		    "backend %s is not available: %s", backend_name(options->backend), heap->probe.reason);
	else if (options->verbosity > 0)
		log_line("stacks by %s, %s", backend_name(heap->probe.backend), heap->probe.reason);
	s->heap = heap;
	s->stop = detach_all;
	return error;
}

static int run(struct session *s, struct options *options, int library_fd)
{
	size_t good = 0;
	int error = session_open(s);
	if (error)
		log_line("cannot start the sampler: %s", why_not_sampled(error));
	else if (!options->no_heap)
		*modules_library(s->modules) = (struct module_library){DELIVERY_NAME, options->library};
	for (size_t i = 0; i < options->pid_count && !error; i++) {
		bool events = options->event_count && attach_events(s, options->pids[i]);
		good += options->no_heap ? events : attach_heap(s, options->pids[i], library_fd);
	}
	if (options->duration_ns)
		s->end_ns = clock_now_ns() + options->duration_ns;
	int status = good ? session_loop(s) : EXIT_FAILURE;
	return good == options->pid_count ? status : EXIT_FAILURE;
}

int session_attach(const struct options *given)
{
	struct options options = *given;
	struct session s = session_of(&options, SIGNALS_FOREGROUND, -1);
	struct heap_capture heap = {0};
	int library_fd = -1;
	int error = options.no_heap ? 0 : prepare_heap(&s, &heap, &options, &library_fd);
	session_without_command(&s, options.pids[0]);
	s.launch.attached = options.pids;
	s.launch.attached_count = options.pid_count;
	int status = error ? EXIT_FAILURE : run(&s, &options, library_fd);
	if (!error)
		session_close(&s);
	if (library_fd >= 0)
		close(library_fd);
	return status;
}

int session_detach(struct options *options)
{
	struct attachment attachment;
	char *end;
	long pid = strtol(options->operands[0], &end, 10);
	if (*end || pid <= 0 || pid > INT_MAX || options->operand_count != 1) {
		log_line("'%s' is not a process id; usage: heaptap detach PID", options->operands[0]);
		return STATUS_USAGE;
	}
	pid_t sampler = region_takeover_sampler((pid_t)pid);
	struct modules *modules = sampler ? NULL : modules_new(0);
	if (sampler) {
		log_line(
		    "pid %ld is profiled by heaptap's pid %d, which lives: end that one", pid, (int)sampler);
		return EXIT_FAILURE;
	}
	int error = modules ? attachment_end(&attachment, (pid_t)pid, modules) : -ENOMEM;
	if (modules)
		modules_free(modules);
	if (error == -ENOENT || error == -ESRCH)
		log_line("pid %ld is not attached", pid);
	else if (error)
		log_line("pid %ld cannot be detached from: %s", pid,
		    modules ? attachment.reason : strerror(-error));
	else if (options->verbosity >= 0)
		say_stood("detached", (pid_t)pid, &attachment);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
