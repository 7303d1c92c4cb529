/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/context_switches.h"

#include "sampler/linux/proc.h"

#include <inttypes.h>
#include <stdio.h>

struct sum {
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
	struct sum *sum = context;

	if (sum->threads++ >= CONTEXT_SWITCHES_THREADS_MAX)
		return 0;
	sum->turns += thread_turns(sum->pid, tid);
	sum->looked_at++;
	return 0;
}

int context_switches_read(pid_t pid, uint64_t *turns)
{
	struct sum sum = {.pid = pid};
	int error = proc_each_thread(pid, add_thread, &sum);

	if (error)
		return error;
	*turns = sum.looked_at ? sum.turns * sum.threads / sum.looked_at : 0;
	return 0;
}
