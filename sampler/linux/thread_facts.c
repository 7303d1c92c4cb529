/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/thread_facts.h"

#include "pprof/table/array.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct thread_facts thread_facts_read(pid_t tid)
{
	char status[PROC_STATUS_BYTES];
	unsigned int uid[4];
	struct thread_facts facts = {.user = (uid_t)-1};
	const ssize_t length = proc_read(tid, "status", status, sizeof(status));

	if (length <= 0) {
		facts.unread = length < 0 && proc_is_shortage((int)-length);
		return facts;
	}
	/* Line ends in a name are escaped in this file. */
	const char *state = strstr(status, "\nState:\t"), *inner = strstr(status, "\nNSpid:"),
	           *users = strstr(status, "\nUid:");
	facts.pid = (pid_t)proc_status_number(status, "\nTgid:", 10, 0);
	facts.parent = (pid_t)proc_status_number(status, "\nPPid:", 10, 0);
	if (inner) {
		const char *end = strchr(inner + 1, '\n'), *last = inner;

		for (const char *at = inner; at && (!end || at < end); at = strchr(at + 1, '\t'))
			last = at;
		facts.inner = atoi(last + 1);
	}
	if (users && sscanf(users, "\nUid: %u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) == 4) {
		facts.user = uid[0];
		facts.like_us =
		    uid[0] == geteuid() && uid[1] == uid[0] && uid[2] == uid[0] && uid[3] == uid[0];
	}
	if (state && (state[8] == 'Z' || state[8] == 'X'))
		facts.pid = 0;
	return facts;
}

struct thread_birth thread_facts_birth(pid_t pid)
{
	char line[1024] = "";
	struct thread_birth birth = {0};
	/* the name may contain any characters */
	const char *after = proc_read(pid, "stat", line, sizeof(line)) > 0 ? strrchr(line, ')') : NULL;

	if (!after ||
	    sscanf(after + 1,
	        " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64
	        " %*s %*s %*s %*s %*s %" SCNu64 " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
	        " %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
	        &birth.ticks, &birth.stack_start, &birth.environment_end) < 1)
		birth = (struct thread_birth){0};
	return birth;
}

bool thread_facts_same_birth(const struct thread_birth *one, const struct thread_birth *other)
{
	return one->ticks == other->ticks && one->stack_start == other->stack_start;
}

uint64_t thread_facts_now(void)
{
	struct timespec up = {0};
	uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &up);
	return (uint64_t)up.tv_sec * hertz + (uint64_t)up.tv_nsec * hertz / 1000000000;
}

uint64_t thread_facts_age_ns(uint64_t birth_ticks)
{
	const uint64_t now = thread_facts_now();

	if (!birth_ticks || now <= birth_ticks)
		return 0;
	return (now - birth_ticks) * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* ---- context switches */

struct switches {
	pid_t pid;
	uint64_t turns, looked_at, threads;
};

/* "<ns on CPU> <ns waiting> <turns>" */
static uint64_t thread_turns(pid_t pid, pid_t tid)
{
	char file[48], text[128];
	uint64_t turns = 0;

	snprintf(file, sizeof(file), "task/%d/schedstat", (int)tid);
	proc_read(pid, file, text, sizeof(text));
	return sscanf(text, "%*u %*u %" SCNu64, &turns) == 1 ? turns : 0;
}

static int add_thread(void *context, pid_t tid)
{
	struct switches *sum = context;

	if (sum->threads++ >= THREAD_FACTS_SWITCHES_THREADS)
		return 0;
	sum->turns += thread_turns(sum->pid, tid);
	sum->looked_at++;
	return 0;
}

int thread_facts_switches(pid_t pid, uint64_t *turns)
{
	struct switches sum = {.pid = pid};
	int error = proc_each_thread(pid, add_thread, &sum);

	if (error)
		return error;
	*turns = sum.looked_at ? sum.turns * sum.threads / sum.looked_at : 0;
	return 0;
}

/* ---- descriptors */

struct reading {
	struct thread_descriptors *descriptors;
	pid_t pid;
};

static int add_descriptor(void *context, pid_t tid)
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

int thread_facts_descriptors_read(struct thread_descriptors *descriptors, pid_t pid)
{
	struct reading reading = {descriptors, pid};

	*descriptors = (struct thread_descriptors){0};
	int error = proc_each_thread(pid, add_descriptor, &reading);
	if (descriptors->count)
		qsort(descriptors->addresses, descriptors->count, sizeof(*descriptors->addresses), by_value);
	return error;
}

void thread_facts_descriptors_fini(struct thread_descriptors *descriptors)
{
	free(descriptors->addresses);
	*descriptors = (struct thread_descriptors){0};
}
