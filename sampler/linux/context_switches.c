/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/context_switches.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* "<ns on CPU> <ns waiting> <turns>" */
static uint64_t thread_turns(pid_t pid, const char *tid)
{
	char path[64];
	uint64_t turns = 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat", (int)pid, tid);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*u %*u %" SCNu64, &turns) != 1)
		turns = 0;
	fclose(file);
	return turns;
}

int context_switches_read(pid_t pid, uint64_t *turns)
{
	char path[64];
	uint64_t sum = 0, looked_at = 0, threads = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);
	if (!tasks)
		return -errno;
	struct dirent *entry;
	while ((entry = readdir(tasks))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		if (threads++ >= CONTEXT_SWITCHES_THREADS_MAX)
			continue;
		sum += thread_turns(pid, entry->d_name);
		looked_at++;
	}
	closedir(tasks);
	*turns = looked_at ? sum * threads / looked_at : 0;
	return 0;
}
