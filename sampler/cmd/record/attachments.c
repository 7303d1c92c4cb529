/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/attachments.h"

#include "sampler/books/unseen.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/record/children.h"
#include "sampler/cmd/record/start_lines.h"
#include "sampler/core/attach_job.h"
#include "sampler/core/signals.h"
#include "sampler/inject/fitness.h"
#include "sampler/intake/region_mapped.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DETACH_AT_ONCE = 8,
	LOOKS_FOR_CHILDREN = 8, /* at most: a process may fork without end */
	REFUSALS_SAID = 5,      /* so many refused children are logged; with -v all */
	LATE_LOOK_MS = 500,     /* between looks for attachers that were given up and do not answer */
};

/* A process that is being attached to. */
struct beginning {
	struct attach_job job;
	bool is_child; /* the user has not chosen it, but it is a child of a process that he has: */
	struct descendant child;
};

struct ending {
	struct attacher attacher;
	pid_t pid;
	const struct target *target; /* NULL: it has no books */
};

struct attachments {
	struct attachments_setup setup;
	struct beginning beginnings[OPTION_PIDS_MAX];
	size_t beginning_count, begun, failed;
	struct children children;
	unsigned int looks; /* for children, so far */
	size_t children_refused;
	bool all_found, children_said, stopping;
	struct ending endings[DETACH_AT_ONCE];
	size_t ending_count;
	bool hurried; /* a second signal to stop has come */
	char unseen_said[UNSEEN_LINE_BYTES];
};

struct attachments *attachments_new(const struct attachments_setup *setup)
{
	struct attachments *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->setup = *setup;
	a->children.roots = setup->options->record.pids;
	a->children.root_count = setup->options->record.pid_count;
	return a;
}

void attachments_free(struct attachments *a)
{
	free(a);
}

bool attachments_settled(const struct attachments *a)
{
	return !a || !a->beginning_count;
}

size_t attachments_failed(const struct attachments *a)
{
	return a ? a->failed : 0;
}

void attachments_say(const char *what, pid_t pid, const struct attachment *attachment)
{
	char name[PROC_COMM_BYTES];

	proc_read_comm(pid, name);
	log_line("pid %d (%s): %s; paused one thread for %.1f ms", (int)pid, name, what,
	    (double)attachment->stood_ns / 1e6);
}

/* ---- the beginning */

static void note_refused_root(struct attachments *a, pid_t pid)
{
	a->failed++;
	for (size_t i = 0; i < a->children.root_count; i++)
		if (a->children.roots[i] == pid)
			a->children.of[i].refused = true;
}

/* Logs why a process is not attached to. child: NULL for a process that the user chose. */
static void refuse(
    struct attachments *a, pid_t pid, const struct descendant *child, const char *cause, const char *remedy)
{
	char name[PROC_COMM_BYTES];
	const int verbosity = a->setup.options->verbosity;

	if (!child) {
		note_refused_root(a, pid);
		log_line("pid %d %s%s%s", (int)pid, cause, remedy[0] ? ": " : "", remedy);
		return;
	}
	a->children_refused++;
	if (verbosity < 0 || (!verbosity && a->children_refused > REFUSALS_SAID))
		return;
	proc_read_comm(pid, name);
	log_line("pid %d (%s), a child of pid %d, %s%s%s", (int)pid, name, (int)child->parent, cause,
	    remedy[0] ? ": " : "", remedy);
}

static void refuse_attempt(
    struct attachments *a, pid_t pid, const struct descendant *child, const char *reason)
{
	char cause[256];

	snprintf(cause, sizeof(cause), "cannot be attached to: %s", reason);
	refuse(a, pid, child, cause, "");
}

/* Does the process have a region of ours already? A process that was forked after its parent was attached
 * to has the hooks and the region of the parent. */
static bool is_followed(void *context, pid_t pid)
{
	const struct attachments *a = context;

	if (arrivals_has_attached(&a->setup.heap->intake.books, pid))
		return true;
	for (size_t i = 0; i < a->beginning_count; i++)
		if (region_mapped_by(a->beginnings[i].job.region, pid) == REGION_MAPPED)
			return true;
	return false;
}

/* Need a child not be attached to any more? It may have ended, or have been forked just when its parent
 * was attached to. */
static bool needs_no_attachment(struct attachments *a, pid_t pid, const struct descendant *child)
{
	if (child && thread_facts_read(pid).pid != pid)
		children_ended(&a->children, child);
	else if (child && is_followed(a, pid))
		children_took(&a->children, child);
	else
		return false;
	return true;
}

static void begin(struct attachments *a, pid_t pid, const struct descendant *child)
{
	struct fitness fitness;
	struct beginning *b = &a->beginnings[a->beginning_count];

	if (!fitness_examine(&fitness, pid, a->setup.options->record.force)) {
		if (!needs_no_attachment(a, pid, child))
			refuse(a, pid, child, fitness.cause, fitness.remedy);
		return;
	}
	*b = (struct beginning){
	    .job = {.region = region_pool_make(a->setup.heap->pool), .facts = attach_job_facts(pid)},
	    .is_child = child != NULL,
	    .child = child ? *child : (struct descendant){0}};
	if (!b->job.region) {
		refuse_attempt(a, pid, child, "no shared memory can be made");
		return;
	}
	region_header(b->job.region)->filtered = fitness.filtered;
	const struct attachment_wish wish = {
	    .pid = pid,
	    .modules = a->setup.modules,
	    .force = a->setup.options->record.force,
	    .library_copy = a->setup.library_copy,
	};
	int error = attach_job_start(&b->job, &wish, a->setup.epoll_fd);
	if (error) {
		refuse_attempt(a, pid, child, strerror(-error));
		return;
	}
	a->beginning_count++;
	a->begun++;
}

static size_t look_for_children(struct attachments *a)
{
	struct descendant found[OPTION_PIDS_MAX];
	const size_t count = children_look(&a->children, found, OPTION_PIDS_MAX - a->begun, is_followed, a);

	for (size_t i = 0; i < count; i++)
		begin(a, found[i].pid, &found[i]);
	a->looks++;
	return count;
}

/* When no job is under way: looks for children again, as processes may have forked before they were
 * attached to. */
static void look_again(struct attachments *a)
{
	if (a->setup.options->record.no_children || a->stopping)
		return;
	while (!a->beginning_count && !a->all_found)
		a->all_found = !look_for_children(a) || a->looks == LOOKS_FOR_CHILDREN;
	if (!a->beginning_count && !a->children_said && a->setup.options->verbosity >= 0)
		children_say(&a->children);
	a->children_said = a->children_said || !a->beginning_count;
}

void attachments_begin(struct attachments *a)
{
	const struct options *options = a->setup.options;

	for (size_t i = 0; i < options->record.pid_count; i++)
		begin(a, options->record.pids[i], NULL);
	if (!options->record.no_children)
		(void)look_for_children(a);
	look_again(a);
}

/* Finds out which memory of the process will not be seen. To be called before the process is registered: a
 * look takes time, and what is allocated after the registration counts as growth. */
static void look_at_unseen(
    const struct attachments *a, pid_t pid, const struct region *region, struct unseen *unseen)
{
	struct unseen_facts facts = {
	    .own_malloc = region_unseen_malloc(region), .with_mmap = region_header(region)->record_mmap == 1};

	unseen->count = 0;
	if (a->setup.options->verbosity < 0)
		return;
	(void)region_unseen_files(region, facts.calls);
	(void)unseen_facts_look_at_process(&facts, a->setup.modules, pid);
	unseen_describe(unseen, &facts);
}

/* Logs what is not seen of the process: without -v only the first text, and not again for workers that are
 * alike. */
static void say_unseen(struct attachments *a, pid_t pid, const struct unseen *unseen)
{
	char line[UNSEEN_LINE_BYTES];

	for (size_t i = 0; i < unseen->count && (i == 0 || a->setup.options->verbosity > 0); i++) {
		unseen_line(&unseen->texts[i], line);
		if (i > 0 || strcmp(line, a->unseen_said) != 0)
			log_line("pid %d: %s", (int)pid, line);
		if (i == 0)
			memcpy(a->unseen_said, line, sizeof(line));
	}
}

static void take_result(struct attachments *a, struct beginning *b)
{
	struct attachment attachment;
	pid_t pid = b->job.facts.pid;
	const struct descendant *child = b->is_child ? &b->child : NULL;

	if (attach_job_result(&b->job, a->setup.epoll_fd, &attachment) != 0) {
		if (!needs_no_attachment(a, pid, child))
			refuse_attempt(a, pid, child, attachment.reason);
		return;
	}
	struct unseen unseen;
	look_at_unseen(a, pid, b->job.region, &unseen);
	if (attach_job_register(&b->job, &a->setup.heap->registry) != 0) {
		refuse_attempt(a, pid, child, "out of memory");
		return;
	}
	if (child)
		children_took(&a->children, child);
	/* Thresholds begin at what the process has when it is first looked at: before the user is told. */
	(void)scheduler_tend(a->setup.heap->source.base.scheduler, clock_now_ns());
	if (a->setup.options->verbosity >= (child ? 1 : 0))
		attachments_say("attached", pid, &attachment);
	if (a->setup.options->verbosity >= 0 && !child)
		start_lines_say(a->setup.options, &(struct start){pid, true, a->setup.socket_error});
	say_unseen(a, pid, &unseen);
}

bool attachments_event(struct attachments *a, int fd)
{
	for (size_t i = 0; a && i < a->beginning_count; i++)
		if (a->beginnings[i].job.attacher.fd == fd) {
			struct beginning done = a->beginnings[i];

			a->beginnings[i] = a->beginnings[--a->beginning_count];
			take_result(a, &done);
			look_again(a);
			return true;
		}
	return false;
}

/* ---- the end */

static void finish_ending(struct attachments *a, size_t index)
{
	struct attachment attachment;
	struct ending e = a->endings[index];

	a->endings[index] = a->endings[--a->ending_count];
	int verbosity = a->setup.options->verbosity;
	int error = attacher_finish(&e.attacher, &attachment);
	if (!e.target || error == -ESRCH || (error && target_has_ended(e.target)))
		return;
	if (error)
		log_line("pid %d: the hooks stay in, and do nothing: %s: heaptap detach %d", (int)e.pid,
		    attachment.reason, (int)e.pid);
	else if (verbosity > 0 || (e.target->command && verbosity >= 0))
		attachments_say("detached", e.pid, &attachment);
}

static void note_signals(struct attachments *a)
{
	for (int number; (number = signals_read(a->setup.signal_fd)) != 0;)
		a->hurried = a->hurried || number == SIGINT || number == SIGTERM || number == SIGHUP;
	for (size_t i = 0; a->hurried && i < a->ending_count; i++)
		attacher_give_up(&a->endings[i].attacher);
}

/* Waits until no more than `most` processes are being detached from. */
static void wait_for_endings(struct attachments *a, size_t most)
{
	while (a->ending_count > most) {
		struct pollfd fds[DETACH_AT_ONCE + 1];
		size_t count = a->ending_count;

		for (size_t i = 0; i < count; i++)
			fds[i] = (struct pollfd){.fd = a->endings[i].attacher.fd, .events = POLLIN};
		fds[count] = (struct pollfd){.fd = a->setup.signal_fd, .events = POLLIN};
		if (poll(fds, count + 1, a->hurried ? LATE_LOOK_MS : -1) < 0)
			continue;
		for (size_t i = count;
		     i-- > 0;) /* backwards, since the last one takes the place of each that is done */
			if (fds[i].revents || attacher_is_late(&a->endings[i].attacher))
				finish_ending(a, i);
		if (fds[count].revents)
			note_signals(a);
	}
}

static void begin_ending(struct attachments *a, pid_t pid, const struct target *target)
{
	const struct attachment_wish wish = {.pid = pid, .modules = a->setup.modules};

	wait_for_endings(a, DETACH_AT_ONCE - 1);
	struct ending *e = &a->endings[a->ending_count];
	*e = (struct ending){.pid = pid, .target = target};
	int error = attacher_start(&e->attacher, attachment_end, &wish);
	if (error)
		log_line("pid %d: the hooks stay in, and do nothing: %s", (int)pid, strerror(-error));
	else
		a->ending_count++;
	if (!error && a->hurried)
		attacher_give_up(&e->attacher);
}

static void detach(void *context, const struct target *target)
{
	if (target->pidfd >= 0)
		begin_ending(context, target->pid, target);
}

/* Detaches from forked children that have taken no sample: they have no books, but they have the hooks. */
static void detach_unknown(struct attachments *a)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0 && pid != getpid() && arrivals_has_attached(&a->setup.heap->intake.books, pid))
			begin_ending(a, pid, NULL);
	}
	if (proc)
		closedir(proc);
	wait_for_endings(a, 0);
}

void attachments_stop(struct attachments *a)
{
	if (!a)
		return;
	struct registry *registry = &a->setup.heap->registry;
	a->stopping = true;
	for (size_t i = 0; i < a->beginning_count; i++)
		attacher_give_up(&a->beginnings[i].job.attacher);
	while (a->beginning_count)
		(void)attachments_event(a, a->beginnings[0].job.attacher.fd);
	arrivals_stop_attached(registry);
	arrivals_visit_attached(registry, detach, a);
	wait_for_endings(a, 0);
	detach_unknown(a);
	arrivals_close_attached(registry);
}
