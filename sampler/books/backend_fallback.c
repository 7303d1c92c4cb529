/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/backend_fallback.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/linux/thread_facts.h"
#include "sampler/perf/features.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	LOOK_NS = 500 * 1000000,
	SILENT_SAMPLES = 8, /* samples without a stack; fewer may still be on their way */
	/* looks that must find so many: at the first look the stacks may still be in the rings */
	SILENT_LOOKS = 2,
	SILENT_IMAGES = 2, /* after so many silent runs new ones do not get the uprobe */
	/* Time between looks at how often a process switches. It doubles each time; the first look comes
	 * early, for programs that last half a second. */
	SWITCHES_LEAST_NS = 10 * 1000000,
	SWITCHES_MOST_NS = 1000 * 1000000,
};

enum region_mode backend_fallback_mode(const struct backend_fallback *fallback)
{
	return fallback->probe->backend == BACKEND_UPROBE &&
	        fallback->runs_without_uprobe_hits < SILENT_IMAGES
	    ? REGION_MODE_TRIGGER
	    : REGION_MODE_COPY;
}

static void detach(struct program_run *run)
{
	probe_detach(run->capture.fds, run->capture.fd_count);
	run->capture.fds = NULL;
	run->capture.fd_count = run->capture.fd_room = 0;
}

static void to_copy(struct backend_fallback *fallback, struct program_run *run)
{
	atomic_store(&region_header(run->region)->mode, REGION_MODE_COPY);
	detach(run);
	fallback->to_copy++;
	run->capture.backend = BACKEND_COPY;
}

static int attach_one(
    const struct backend_fallback *fallback, struct program_run *run, const struct process *process)
{
	int *fds = NULL;
	size_t count = 0;
	int error =
	    probe_attach(fallback->probe, process->target.pid, run->life.trigger_address, &fds, &count);

	if (error)
		return error;
	/* If the process has executed another program meanwhile, that program would keep our breakpoint
	 * until its end. */
	if (!process_is_there(process)) {
		probe_detach(fds, count);
		return -ESRCH;
	}
	if (array_reserve(
	        &run->capture.fds, &run->capture.fd_room, run->capture.fd_count + count, sizeof(*fds)) != 0) {
		probe_detach(fds, count);
		return -ENOMEM;
	}
	if (count)
		memcpy(run->capture.fds + run->capture.fd_count, fds, count * sizeof(*fds));
	run->capture.fd_count += count;
	free(fds);
	return 0;
}

/* The count of switches begins here: earlier ones cost nothing. */
static void begin_switches(struct program_run *run, const struct process *process)
{
	run->capture.turns_ns = clock_now_ns();
	run->capture.turns_wait_ns = SWITCHES_LEAST_NS;
	if (thread_facts_switches(process->target.pid, &run->capture.turns) != 0)
		run->capture.turns = UINT64_MAX; /* the first look begins */
}

/* Sets breakpoints on every known process of the program run; children forked later inherit them. Returns
 * 0, or -errno with no descriptor left open. */
static int attach(const struct backend_fallback *fallback, struct program_run *run)
{
	int error = 0;

	program_run_each_process(process, run) if ((!error || error == -ESRCH) && !process->target.closed &&
	    process->target.pidfd >= 0) error = attach_one(fallback, run, process);
	if (run->capture.fd_count && (!error || error == -ESRCH))
		return 0;
	detach(run);
	return error ? error : -ESRCH;
}

/* In a chroot or a container with a copy of our library the uprobe, which is on an inode, never fires. */
static bool has_library_of_its_own(const struct backend_fallback *fallback, const struct process *process)
{
	char path[PATH_MAX + 32];
	struct stat status;

	if (!fallback->probe->library || process->target.pidfd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)process->target.pid, fallback->probe->library);
	return stat(path, &status) == 0 &&
	    (status.st_dev != fallback->probe->library_dev || status.st_ino != fallback->probe->library_ino);
}

void backend_fallback_expect(const struct backend_fallback *fallback, struct program_run *run)
{
	run->capture.event_backend = fallback->probe->backend;
}

void backend_fallback_adopt(const struct backend_fallback *fallback, struct program_run *run)
{
	const bool uprobe = fallback->probe->backend == BACKEND_UPROBE;

	run->capture.backend = run->capture.event_backend = uprobe ? BACKEND_UPROBE : BACKEND_COPY;
	atomic_store(&region_header(run->region)->mode, uprobe ? REGION_MODE_TRIGGER : REGION_MODE_COPY);
}

void backend_fallback_begin(
    struct backend_fallback *fallback, struct program_run *run, const struct process *process)
{
	if (run->life.unchosen) {
		run->capture.backend = BACKEND_COPY;
		return;
	}
	bool copy = (run->origin.other_library && fallback->probe->backend == BACKEND_UPROBE) ||
	    (fallback->may_yield && has_library_of_its_own(fallback, process));

	run->capture.backend =
	    backend_fallback_mode(fallback) == REGION_MODE_TRIGGER && !copy ? BACKEND_UPROBE : BACKEND_COPY;
	run->capture.event_backend = run->capture.backend;
	if (fallback->probe->backend == BACKEND_COPY || run->capture.backend == BACKEND_UPROBE ||
	    process->target.pidfd < 0)
		return;
	int error = attach(fallback, run);
	if (error == 0) {
		run->capture.backend = run->capture.event_backend = BACKEND_BREAKPOINT;
		fallback->to_breakpoint += fallback->probe->backend == BACKEND_UPROBE;
		begin_switches(run, process);
		atomic_store(&region_header(run->region)->mode, REGION_MODE_TRIGGER);
	} else if (error != -ESRCH) {
		to_copy(fallback, run);
		fallback->causes[BACKEND_FALLBACK_REFUSED]++;
		if (fallback->verbosity > 0)
			log_line("pid %d: breakpoint refused (%s), stacks are copied by the hook instead",
			    (int)process->target.pid, strerror(-error));
	}
	if (copy && fallback->verbosity > 0)
		log_line("pid %d has a copy of the library: no uprobe for it", (int)process->target.pid);
}

void backend_fallback_executed(struct backend_fallback *fallback, struct program_run *run)
{
	uint32_t others = 0;

	if (run->capture.backend != BACKEND_BREAKPOINT || features_has(FEATURES_REMOVE_ON_EXEC))
		return;
	program_run_each_process(process, run) others += !process->target.closed;
	if (!others) {
		detach(run);
		return;
	}
	to_copy(fallback, run);
	fallback->causes[BACKEND_FALLBACK_EXECUTED]++;
}

/* ---- a backend that is silent */

/* Compares the samples since the last look whose stacks the kernel should have dumped with the stacks that
 * arrived. */
static bool is_silent(struct process *process, bool overrun)
{
	const uint64_t due = process_dumps_asked(process), came = process->counters.dumps;
	bool comes = came != process->silence.arrived_before;

	process->silence.arrived_before = came;
	if (comes || overrun || (int64_t)(due - process->silence.triggered_before) < 0) {
		process->silence.looks = 0;
		process->silence.triggered_before = due;
		/* however many looks it takes: most programs take few samples */
	} else if (due - process->silence.triggered_before >= SILENT_SAMPLES) {
		process->silence.looks++;
		process->silence.triggered_before = due;
	}
	return process->silence.looks >= SILENT_LOOKS;
}

static const struct process *silent_process(struct program_run *run, bool overrun)
{
	const struct process *found = NULL;

	program_run_each_process(process, run) if (!process->target.closed && is_silent(process, overrun))
	    found = process;
	return found;
}

static void step_down(
    struct backend_fallback *fallback, struct program_run *run, const struct process *process)
{
	enum backend from = run->capture.backend;

	fallback->causes[BACKEND_FALLBACK_SILENT]++;
	fallback->runs_without_uprobe_hits += from == BACKEND_UPROBE;
	if (from == BACKEND_UPROBE && attach(fallback, run) == 0) {
		run->capture.backend = run->capture.event_backend = BACKEND_BREAKPOINT;
		fallback->to_breakpoint++;
	} else {
		to_copy(fallback, run);
	}
	program_run_each_process(each, run) each->silence.looks = 0;
	if (fallback->verbosity > 0 ||
	    (fallback->verbosity == 0 && fallback->causes[BACKEND_FALLBACK_SILENT] == 1))
		log_line("pid %d: no stacks received from the %s, switching to %s", (int)process->target.pid,
		    backend_name(from), backend_name(run->capture.backend));
}

/* ---- a breakpoint that costs too much */

static void look_at_switches(struct backend_fallback *fallback, struct program_run *run, uint64_t now_ns)
{
	const struct process *process = run->places.at[0];
	uint64_t turns;

	if (run->capture.backend != BACKEND_BREAKPOINT || !fallback->may_yield ||
	    now_ns - run->capture.turns_ns < run->capture.turns_wait_ns || !process ||
	    process->target.closed || process->target.pidfd < 0 ||
	    thread_facts_switches(process->target.pid, &turns) != 0)
		return;
	uint64_t elapsed = now_ns - run->capture.turns_ns, came = turns - run->capture.turns;
	bool first = run->capture.turns_ns == 0 || turns < run->capture.turns; /* less: a thread has ended */
	run->capture.turns = turns;
	run->capture.turns_ns = now_ns;
	run->capture.turns_wait_ns =
	    run->capture.turns_wait_ns && run->capture.turns_wait_ns < SWITCHES_MOST_NS / 2
	    ? 2 * run->capture.turns_wait_ns
	    : SWITCHES_MOST_NS;
	if (first || came * 1000000000u / elapsed <= THREAD_FACTS_SWITCHES_PER_SECOND_MAX)
		return;
	/* Stacks that are already in the rings are still used. */
	to_copy(fallback, run);
	fallback->causes[BACKEND_FALLBACK_SWITCHES]++;
	if (fallback->verbosity > 0)
		log_line("pid %d: %" PRIu64
		         " context switches a second, stacks are copied by the hook instead",
		    (int)process->target.pid, came * 1000000000u / elapsed);
}

static bool has_backend(const struct program_run *run)
{
	return run->life.state >= RUN_ADOPTING;
}

bool backend_fallback_tend(
    struct backend_fallback *fallback, const struct books *books, uint64_t ring_lost, uint64_t now_ns)
{
	enum region_mode before = backend_fallback_mode(fallback);

	if (fallback->probe->backend == BACKEND_COPY)
		return false;
	books_each_run(run, books) if (has_backend(run)) look_at_switches(fallback, run, now_ns);
	if (now_ns - fallback->looked_ns < LOOK_NS)
		return false;
	fallback->looked_ns = now_ns;
	bool overrun = ring_lost != fallback->ring_lost; /* then stacks may be missing for that reason */
	fallback->ring_lost = ring_lost;
	books_each_run(run, books)
	{
		if (!has_backend(run) || run->capture.backend == BACKEND_COPY)
			continue;
		const struct process *process = silent_process(run, overrun);
		if (process)
			step_down(fallback, run, process);
	}
	return backend_fallback_mode(fallback) != before;
}

void backend_fallback_describe(const struct backend_fallback *fallback, char *text, size_t bytes)
{
	char executed[64] = "";

	text[0] = '\0';
	if (fallback->causes[BACKEND_FALLBACK_EXECUTED])
		snprintf(executed, sizeof(executed), ", gone with an exec %" PRIu64,
		    fallback->causes[BACKEND_FALLBACK_EXECUTED]);
	if (fallback->to_breakpoint || fallback->to_copy)
		snprintf(text, bytes,
		    "backend changed: %" PRIu64 " programs to breakpoint, %" PRIu64
		    " to copy (breakpoint refused %" PRIu64 ", no stacks came %" PRIu64
		    ", too many context switches %" PRIu64 "%s)",
		    fallback->to_breakpoint, fallback->to_copy, fallback->causes[BACKEND_FALLBACK_REFUSED],
		    fallback->causes[BACKEND_FALLBACK_SILENT], fallback->causes[BACKEND_FALLBACK_SWITCHES],
		    executed);
}
