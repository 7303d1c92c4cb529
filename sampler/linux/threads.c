/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/threads.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "sampler/linux/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREADS_MAX = 4096,
	NAME_BYTES = 16,         /* the size of the kernel's task_struct.comm */
	OWN_NS = 50 * 1000000,   /* a thread that names itself has done so by then */
	READ_EVERY_NS = 1000000, /* until it has */
};

struct thread {
	uint32_t tid;
	char name[NAME_BYTES]; /* empty: the thread had ended when we looked */
	bool own;              /* the name is not only its creator's */
	uint64_t seen_ns, read_ns;
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

/* An empty name does not replace a known one. NULL: there is no room. */
static struct thread *put(struct threads *threads, uint32_t tid, const char *name)
{
	size_t at;
	struct thread *thread = find(threads, tid, &at);

	if (!thread) {
		if (threads->count >= THREADS_MAX ||
		    array_reserve(&threads->items, &threads->capacity, threads->count + 1, sizeof(*thread)) !=
		        0)
			return NULL;
		thread = &threads->items[at];
		memmove(thread + 1, thread, (threads->count - at) * sizeof(*thread));
		threads->count++;
		*thread = (struct thread){.tid = tid, .seen_ns = clock_now_ns()};
	}
	if (name[0])
		snprintf(thread->name, sizeof(thread->name), "%s", name);
	return thread;
}

static void read_comm(pid_t pid, const char *file, char name[NAME_BYTES])
{
	proc_read(pid, file, name, NAME_BYTES);
	name[strcspn(name, "\n")] = '\0';
}

static void read_name(struct threads *threads, pid_t pid, uint32_t tid, bool told)
{
	char file[32], name[NAME_BYTES], of_process[NAME_BYTES];

	snprintf(file, sizeof(file), "task/%u/comm", tid);
	read_comm(pid, file, name);
	struct thread *thread = put(threads, tid, name);
	if (!thread)
		return;
	thread->read_ns = clock_now_ns();
	if (thread->own || !name[0])
		return;
	read_comm(pid, "comm", of_process);
	thread->own = told || tid == (uint32_t)pid || strcmp(name, of_process) != 0 ||
	    thread->read_ns - thread->seen_ns >= OWN_NS;
}

void threads_see(struct threads *threads, pid_t pid, uint32_t tid, bool told)
{
	size_t at;
	const struct thread *thread = find(threads, tid, &at);

	if (!thread ? threads->count < THREADS_MAX
	            : !thread->own && thread->name[0] && clock_now_ns() - thread->read_ns >= READ_EVERY_NS)
		read_name(threads, pid, tid, told);
}

void threads_call(struct threads *threads, uint32_t tid, const char *name)
{
	struct thread *thread = put(threads, tid, name);

	if (thread)
		thread->own = true;
}

struct reading {
	struct threads *threads;
	pid_t pid;
};

static int read_thread(void *context, pid_t tid)
{
	const struct reading *reading = context;

	read_name(reading->threads, reading->pid, (uint32_t)tid, false);
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

	return thread && thread->own && thread->name[0] ? thread->name : NULL;
}
