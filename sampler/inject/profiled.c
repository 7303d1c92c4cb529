/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/profiled.h"

#include "pprof/table/array.h"
#include "pprof/text/utf8.h"
#include "proto/region_pool.h"
#include "sampler/inject/preload_library.h"
#include "sampler/linux/proc.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The process chooses the place and length of its environment: it may be endless. */
enum { ENVIRONMENT_BYTES = 256 << 10 };

pid_t profiled_sampler(pid_t pid)
{
	int sampler = 0;
	char *text = malloc(ENVIRONMENT_BYTES);
	const ssize_t length = text ? proc_read(pid, "environ", text, ENVIRONMENT_BYTES) : 0;

	for (const char *at = text; !sampler && at - text < length; at += strlen(at) + 1)
		if (sscanf(at, REGION_ENV "=/proc/%d/fd/", &sampler) != 1)
			sampler = 0;
	free(text);
	return sampler > 0 ? sampler : 0;
}

int profiled_has_library(pid_t pid)
{
	static const char name[] = "/" PRELOAD_LIBRARY_NAME;
	char *line = NULL;
	size_t room = 0;
	int found = -ESRCH; /* a process that ends has no maps any more */
	FILE *maps = proc_open_text(pid, "maps");

	if (!maps)
		return -errno;
	while (found != 1 && getline(&line, &room, maps) > 0) {
		const char *at = strstr(line, name);

		found = at && strchr("\n ", at[sizeof(name) - 1]);
	}
	fclose(maps);
	free(line);
	return found;
}

static bool is_sampler(pid_t pid)
{
	char name[PROFILED_NAME_BYTES];

	return pid && proc_read(pid, "comm", name, sizeof(name)) > 0 &&
	    strcmp(name, "heaptap-sampler\n") == 0;
}

static int compare_pids(const void *left, const void *right)
{
	const pid_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static size_t pids_read(pid_t **pids)
{
	DIR *folder = opendir("/proc");
	const struct dirent *entry;
	size_t count = 0, capacity = 0;

	*pids = NULL;
	while (folder && (entry = readdir(folder))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid < 1 || pid > INT_MAX || *end)
			continue;
		if (array_reserve(pids, &capacity, count + 1, sizeof(**pids)) != 0)
			break;
		(*pids)[count++] = (pid_t)pid;
	}
	if (folder)
		closedir(folder);
	if (count)
		qsort(*pids, count, sizeof(**pids), compare_pids);
	return count;
}

int profiled_each(int (*visit)(void *context, pid_t pid, const char *name, bool sampled), void *context)
{
	pid_t *pids;
	size_t count = pids_read(&pids);
	int result = 0;

	for (size_t i = 0; i < count && !result; i++) {
		char name[PROFILED_NAME_BYTES];
		ssize_t length;

		if (profiled_has_library(pids[i]) != 1 ||
		    (length = proc_read(pids[i], "comm", name, sizeof(name))) <= 0)
			continue;
		name[--length] = '\0'; /* the newline */
		utf8_disarm(name, (size_t)length);
		result = visit(context, pids[i], name, is_sampler(profiled_sampler(pids[i])));
	}
	free(pids);
	return result;
}
