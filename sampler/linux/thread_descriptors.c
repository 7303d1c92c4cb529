/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/thread_descriptors.h"

#include "pprof/table/array.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct reading {
	struct thread_descriptors *descriptors;
	pid_t pid;
};

static int add(void *context, pid_t tid)
{
	const struct reading *reading = context;
	struct thread_descriptors *d = reading->descriptors;
	void *head = NULL;
	size_t bytes;

	if (tid == reading->pid || syscall(SYS_get_robust_list, tid, &head, &bytes) != 0 || !head)
		return 0;
	if (array_reserve(&d->addresses, &d->capacity, d->count + 1, sizeof(*d->addresses)) != 0)
		return -ENOMEM;
	d->addresses[d->count++] = (uintptr_t)head;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int thread_descriptors_read(struct thread_descriptors *descriptors, pid_t pid)
{
	struct reading reading = {descriptors, pid};

	*descriptors = (struct thread_descriptors){0};
	int error = proc_each_thread(pid, add, &reading);
	if (descriptors->count)
		qsort(descriptors->addresses, descriptors->count, sizeof(*descriptors->addresses), by_value);
	return error;
}

void thread_descriptors_fini(struct thread_descriptors *descriptors)
{
	free(descriptors->addresses);
	*descriptors = (struct thread_descriptors){0};
}
