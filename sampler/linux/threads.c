/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/threads.h"

#include "pprof/table/array.h"
#include "sampler/linux/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 4096, NAME_BYTES = 16 }; /* NAME_BYTES: the size of the kernel's task_struct.comm */

struct thread {
	uint32_t tid;
	char name[NAME_BYTES]; /* empty: the thread had ended when we looked */
};

struct threads {
	struct thread *items; /* by tid, ascending */
	size_t count, capacity;
};

struct threads *threads_new(void)
{
	return calloc(1, sizeof(struct threads));
}

void threads_free(struct threads *threads)
{
	if (threads)
		free(threads->items);
	free(threads);
}

static struct thread *find(const struct threads *threads, uint32_t tid, size_t *at)
{
	size_t low = 0, high = threads->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (threads->items[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	*at = low;
	return low < threads->count && threads->items[low].tid == tid ? &threads->items[low] : NULL;
}

/* An empty name does not replace a known one. */
static void put(struct threads *threads, uint32_t tid, const char *name)
{
	size_t at;
	struct thread *thread = find(threads, tid, &at);

	if (!thread) {
		if (threads->count >= THREADS_MAX ||
		    array_reserve(&threads->items, &threads->capacity, threads->count + 1, sizeof(*thread)) !=
		        0)
			return;
		thread = &threads->items[at];
		memmove(thread + 1, thread, (threads->count - at) * sizeof(*thread));
		threads->count++;
		*thread = (struct thread){.tid = tid};
	}
	if (name[0])
		snprintf(thread->name, sizeof(thread->name), "%s", name);
}

static void read_name(struct threads *threads, pid_t pid, uint32_t tid)
{
	char file[32], name[NAME_BYTES];

	snprintf(file, sizeof(file), "task/%u/comm", tid);
	proc_read(pid, file, name, sizeof(name));
	name[strcspn(name, "\n")] = '\0';
	put(threads, tid, name);
}

void threads_see(struct threads *threads, pid_t pid, uint32_t tid)
{
	size_t at;

	if (!find(threads, tid, &at) && threads->count < THREADS_MAX)
		read_name(threads, pid, tid);
}

void threads_call(struct threads *threads, uint32_t tid, const char *name)
{
	put(threads, tid, name);
}

struct reading {
	struct threads *threads;
	pid_t pid;
};

static int read_thread(void *context, pid_t tid)
{
	const struct reading *reading = context;

	read_name(reading->threads, reading->pid, (uint32_t)tid);
	return 0;
}

void threads_read(struct threads *threads, pid_t pid)
{
	struct reading reading = {threads, pid};

	proc_each_thread(pid, read_thread, &reading);
}

const char *threads_name(const struct threads *threads, uint32_t tid)
{
	size_t at;
	const struct thread *thread = threads ? find(threads, tid, &at) : NULL;

	return thread && thread->name[0] ? thread->name : NULL;
}
