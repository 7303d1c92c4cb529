/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/region_mapped.h"

#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The inode of the line's mapping if it may be a region's; 0: it cannot. */
static uint64_t inode_of(const char *line, bool anonymous)
{
	uint64_t ino;

	return strstr(line, anonymous ? "/dev/zero (deleted)" : "/memfd:heaptap") &&
	        sscanf(line, "%*s %*s %*s %*s %" SCNu64, &ino) == 1
	    ? ino
	    : 0;
}

static enum region_mapped refused(void)
{
	return errno == EACCES || errno == EPERM ? REGION_MAPPED_SECRET
	    : proc_is_shortage(errno)            ? REGION_MAPPED_UNREAD
	                                         : REGION_MAPPED_NO;
}

enum region_mapped region_mapped_by(const struct region *region, pid_t pid)
{
	char line[4352];
	FILE *maps = proc_open_text(pid, "maps");

	if (!maps)
		return refused();
	bool found = false;
	errno = 0;
	while (!found && fgets(line, sizeof(line), maps))
		found = region->ino && inode_of(line, region->anonymous) == region->ino;
	bool unread = !found && ferror(maps) && proc_is_shortage(errno);
	fclose(maps);
	return found ? REGION_MAPPED : unread ? REGION_MAPPED_UNREAD : REGION_MAPPED_NO;
}

/* We have every region mapped, and so have our children, which write profiles. */
static bool is_ours(pid_t pid)
{
	return pid == getpid() || thread_facts_read(pid).parent == getpid();
}

bool region_mapped_still(const struct region *region, pid_t pid)
{
	if (pid <= 0)
		return false;
	const enum region_mapped answer = region_mapped_by(region, pid);
	return answer == REGION_MAPPED_UNREAD || (answer == REGION_MAPPED && !is_ours(pid));
}

static int compare_searches(const void *a, const void *b)
{
	const uint64_t one = ((const struct region_search *)a)->region->ino,
	               other = ((const struct region_search *)b)->region->ino;

	return one < other ? -1 : one > other;
}

/* Notes whatever of the searched regions the process has mapped. Returns how many are new, -1: unread. */
static ssize_t look_at(struct region_search *searches, size_t count, pid_t pid)
{
	char line[4352];
	ssize_t found = 0;
	FILE *maps = proc_open_text(pid, "maps");

	if (!maps)
		return refused() == REGION_MAPPED_UNREAD ? -1 : 0;
	errno = 0;
	while (fgets(line, sizeof(line), maps)) {
		const struct region wanted = {.ino = inode_of(line, true)};
		const struct region_search key = {.region = &wanted};
		struct region_search *search =
		    wanted.ino ? bsearch(&key, searches, count, sizeof(*searches), compare_searches) : NULL;

		if (!search || search->answer == REGION_MAPPED || is_ours(pid))
			continue;
		search->answer = REGION_MAPPED;
		search->pid = pid;
		found++;
	}
	if (ferror(maps) && proc_is_shortage(errno))
		found = -1;
	fclose(maps);
	return found;
}

void region_search_all(struct region_search *searches, size_t count)
{
	const struct dirent *entry;
	size_t left = count;
	DIR *proc = count ? opendir("/proc") : NULL;
	bool unread = !proc;

	for (size_t i = 0; i < count; i++)
		searches[i].answer = REGION_MAPPED_NO;
	if (proc)
		qsort(searches, count, sizeof(*searches), compare_searches);
	while (proc && left && (entry = readdir(proc))) {
		const pid_t pid = atoi(entry->d_name);
		const ssize_t found = pid > 0 && pid != getpid() ? look_at(searches, count, pid) : 0;

		unread |= found < 0;
		left -= found > 0 ? (size_t)found : 0;
	}
	if (proc)
		closedir(proc);
	for (size_t i = 0; i < count && unread; i++)
		if (searches[i].answer == REGION_MAPPED_NO)
			searches[i].answer = REGION_MAPPED_UNREAD;
}
