/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/lineage.h"

#include "pprof/table/array.h"

#include <stdlib.h>
#include <string.h>

void lineage_free(struct lineage *lineage)
{
	free(lineage->threads);
	free(lineage->forks);
	*lineage = (struct lineage){0};
}

static size_t place_of(const struct lineage *l, pid_t tid)
{
	return ARRAY_LOWER_BOUND(l->threads, l->thread_count, tid, (uint64_t)tid);
}

static struct lineage_thread *find(const struct lineage *l, pid_t tid)
{
	size_t at = place_of(l, tid);

	return at < l->thread_count && l->threads[at].tid == (uint64_t)tid ? &l->threads[at] : NULL;
}

/* NULL if the thread has no counters from us. */
static const struct lineage_thread *counted(const struct lineage *l, pid_t tid)
{
	const struct lineage_thread *thread = find(l, tid);

	return thread && !thread->ended ? thread : NULL;
}

int lineage_add(struct lineage *lineage, pid_t tid)
{
	if (find(lineage, tid))
		return 0;
	if (array_reserve(&lineage->threads, &lineage->thread_capacity, lineage->thread_count + 1,
	        sizeof(*lineage->threads)) != 0)
		return -ENOMEM;
	size_t at = place_of(lineage, tid);
	memmove(&lineage->threads[at + 1], &lineage->threads[at],
	    (lineage->thread_count - at) * sizeof(*lineage->threads));
	lineage->threads[at] = (struct lineage_thread){.tid = (uint64_t)tid};
	lineage->thread_count++;
	return 0;
}

int lineage_end(struct lineage *lineage, pid_t tid)
{
	int error = lineage_add(lineage, tid);
	struct lineage_thread *thread = find(lineage, tid);

	if (thread)
		thread->ended = true;
	return error;
}

bool lineage_knows(const struct lineage *lineage, pid_t tid)
{
	for (size_t i = 0; i < lineage->fork_count; i++)
		if (lineage->forks[i].tid == tid)
			return true;
	return find(lineage, tid) != NULL;
}

int lineage_fork(struct lineage *lineage, const struct lineage_fork *fork)
{
	if (array_reserve(&lineage->forks, &lineage->fork_capacity, lineage->fork_count + 1,
	        sizeof(*lineage->forks)) != 0)
		return -ENOMEM;
	lineage->forks[lineage->fork_count++] = *fork;
	return 0;
}

void lineage_settle(struct lineage *lineage, pid_t tid, uint64_t now_ns)
{
	struct lineage_thread *thread = find(lineage, tid);

	if (thread && !thread->settled_ns)
		thread->settled_ns = now_ns;
}

pid_t lineage_unsettled(const struct lineage *lineage, size_t *at)
{
	while (*at < lineage->thread_count) {
		const struct lineage_thread *thread = &lineage->threads[(*at)++];

		if (!thread->ended && !thread->settled_ns)
			return (pid_t)thread->tid;
	}
	return 0;
}

pid_t lineage_doubtful(const struct lineage *lineage)
{
	for (size_t i = 0; i < lineage->fork_count; i++) {
		const struct lineage_fork *fork = &lineage->forks[i];
		const struct lineage_thread *creator = counted(lineage, fork->parent_tid);

		if (creator && (!creator->settled_ns || fork->time_ns <= creator->settled_ns))
			return fork->parent_tid;
	}
	return 0;
}

static void remove_thread(struct lineage *l, struct lineage_thread *thread)
{
	size_t at = (size_t)(thread - l->threads);

	memmove(thread, thread + 1, (--l->thread_count - at) * sizeof(*thread));
}

/* Did the thread inherit its counters from a forgotten thread? A thread with counters from us passes those
 * on, too. */
static bool is_orphan(const struct lineage *l, size_t fork, pid_t forgotten)
{
	pid_t parent = l->forks[fork].parent_tid;

	if (parent == forgotten)
		return true;
	if (counted(l, parent))
		return false;
	for (size_t i = 0; i < fork; i++)
		if (l->forks[i].gone && l->forks[i].tid == parent)
			return true;
	return false;
}

void lineage_forget(struct lineage *lineage, pid_t tid)
{
	struct lineage_thread *thread = find(lineage, tid);
	size_t kept = 0;

	if (thread && !thread->ended)
		remove_thread(lineage, thread);
	for (size_t i = 0; i < lineage->fork_count; i++)
		lineage->forks[i].gone = is_orphan(lineage, i, tid);
	for (size_t i = 0; i < lineage->fork_count; i++)
		if (!lineage->forks[i].gone)
			lineage->forks[kept++] = lineage->forks[i];
	lineage->fork_count = kept;
}

pid_t lineage_take_double(struct lineage *lineage)
{
	for (size_t i = 0; i < lineage->fork_count; i++) {
		struct lineage_thread *thread = find(lineage, lineage->forks[i].tid);

		if (thread) {
			remove_thread(lineage, thread);
			return lineage->forks[i].tid;
		}
	}
	return 0;
}
