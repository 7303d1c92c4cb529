/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/event_source.h"

#include "pprof/text/clock.h"
#include "sampler/books/process_life.h"
#include "sampler/write/event_snapshot.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)EVENTS_MAX <= (int)SNAPSHOT_FILES, "a file for each event");

enum { OTHERS_SAID = 8 }; /* processes started by COMMAND whose events the user is shown */

/* ---- taking */

static int copy_rows(struct event_job *job, const struct event_book *book)
{
	job->count = event_book_count(book);
	job->total = event_book_total(book);
	job->rows = calloc(job->count + 1, sizeof(*job->rows));
	if (!job->rows)
		return -ENOMEM;
	if (job->count)
		memcpy(job->rows, event_book_rows(book), job->count * sizeof(*job->rows));
	return 0;
}

static int fill_job(const struct event_source *source, struct event_snapshot *snapshot, size_t event,
    const struct snapshot_order *order)
{
	struct event_job *job = &snapshot->jobs[event];
	const struct event_registry *registry = source->registry;
	const struct target *target = &snapshot->subject->target;
	const struct event_book *book = snapshot->subject->books[event];
	char name[EVENT_TEXT_BYTES + 96], path[PATH_MAX];

	job->event = &registry->setup.events[event];
	counters_read(registry->counters, event, &job->counters);
	job->sum = registry->sum[event];
	job->throttled = registry->throttled[event];
	job->lost_here = registry->sampled <= 1 ? job->counters.lost : 0;
	bool of_command = target->command && target->end != TARGET_EXEC;
	if (!book && !(order->kind == SNAPSHOT_EXIT && of_command))
		return 0;
	int error = book ? copy_rows(job, book) : 0;
	snprintf(name, sizeof(name), "%s-%s", job->event->label, order->name);
	if (!error)
		error = scheduler_reserve(source->base.scheduler, target, name, path, sizeof(path));
	return error ? error : event_snapshot_set_path(snapshot, event, path);
}

static int take(struct snapshot_source *base, struct target *target, const struct snapshot_order *order,
    struct snapshot **snapshot)
{
	const struct event_source *source = (const struct event_source *)base;
	const struct process *heap = source->heaps ? process_life_find(source->heaps, target->pid) : NULL;
	struct event_snapshot *event_snapshot = event_snapshot_new();

	if (!event_snapshot)
		return -ENOMEM;
	event_snapshot->subject = (struct event_process *)target;
	event_process_look(event_snapshot->subject);
	/* Takes the names of its heap profiles, unless the heap is of an earlier program. */
	if (heap && strcmp(heap->target.name, target->name) == 0) {
		memcpy(target->title, heap->target.title, sizeof(target->title));
		memcpy(target->full_name, heap->target.full_name, sizeof(target->full_name));
		memcpy(target->called, heap->target.called, sizeof(target->called));
	}
	event_snapshot->base.unix_ns = clock_unix_ns();
	event_snapshot->duration_ns = clock_now_ns() - target->start_ns;
	event_snapshot->bad = source->registry->bad;
	event_snapshot->job_count = source->registry->setup.event_count;
	int error = 0;
	for (size_t i = 0; i < event_snapshot->job_count && !error; i++)
		error = fill_job(source, event_snapshot, i, order);
	for (size_t i = 0; i < event_snapshot->job_count; i++)
		event_snapshot->base.files[event_snapshot->base.file_count++] =
		    event_snapshot->jobs[i].base.path;
	if (error)
		event_snapshot->base.item.discard(&event_snapshot->base.item);
	else
		*snapshot = &event_snapshot->base;
	return error;
}

void event_source_take(struct event_source *source, pid_t pid, const struct snapshot_order *order)
{
	event_registry_drain(source->registry);
	struct event_process *process = pid > 0 ? event_registry_find(source->registry, pid) : NULL;
	if (process && event_process_has_samples(process))
		scheduler_take_beside(&source->base, &process->target, order);
}

/* ---- what the scheduler asks */

/* If the heap of a process is profiled, its events are written together with the heap. But a heap with few
 * samples is not written at each interval, so its events are written alone. */
static bool has(const struct snapshot_source *base, const struct target *target, enum snapshot_reason reason)
{
	const struct event_source *source = (const struct event_source *)base;
	const struct process *heap = NULL;

	if (reason != SNAPSHOT_REASON_END && source->heaps)
		heap = process_life_find(source->heaps, target->pid);
	if (heap &&
	    (reason == SNAPSHOT_REASON_ASKED ||
	        scheduler_is_enough(base->scheduler, &heap->target, process_samples(heap))))
		return false;
	return event_process_has_samples((const struct event_process *)target);
}

/* Shows the user as many ended processes as he may want to read; more are only counted. */
static void written(struct snapshot_source *base, const struct snapshot *snapshot, int error)
{
	struct event_source *source = (struct event_source *)base;
	bool other = !snapshot->target->command;
	int verbosity = scheduler_setup(base->scheduler)->settings->verbosity;

	if (snapshot->kind != SNAPSHOT_EXIT || verbosity < 0)
		return;
	if (!error && (!other || verbosity > 0 || source->others < OTHERS_SAID))
		event_snapshot_print(snapshot);
	source->others += other;
}

uint64_t event_source_unsaid(const struct event_source *source)
{
	int verbosity = scheduler_setup(source->base.scheduler)->settings->verbosity;

	return verbosity == 0 && source->others > OTHERS_SAID ? source->others - OTHERS_SAID : 0;
}

static void release(struct snapshot_source *base, struct target *target)
{
	event_registry_release(((struct event_source *)base)->registry, (struct event_process *)target);
}

const struct snapshot_source_kind event_source_kind = {
    .has = has,
    .take = take,
    .written = written,
    .release = release,
};
