/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/region/region_mapped.h"

#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum region_mapped region_mapped_by(const struct region *region, pid_t pid)
{
	char line[4352];
	FILE *maps = proc_open_text(pid, "maps");
	if (!maps)
		return errno == EACCES || errno == EPERM ? REGION_MAPPED_SECRET
		    : proc_is_shortage(errno)            ? REGION_MAPPED_UNREAD
		                                         : REGION_MAPPED_NO;
	bool found = false;
	errno = 0;
	while (!found && fgets(line, sizeof(line), maps)) {
		uint64_t ino;
		if (strstr(line, region->anonymous ? "/dev/zero (deleted)" : "/memfd:heaptap") &&
		    sscanf(line, "%*s %*s %*s %*s %" SCNu64, &ino) == 1 && ino == region->ino)
			found = true;
	}
	bool unread = !found && ferror(maps) && proc_is_shortage(errno);
	fclose(maps);
	return found ? REGION_MAPPED : unread ? REGION_MAPPED_UNREAD : REGION_MAPPED_NO;
}

bool region_mapped_by_any(const struct region *region)
{
	struct dirent *entry;
	bool found = false;
	DIR *proc = opendir("/proc");
	if (!proc)
		return true;
	while (!found && (entry = readdir(proc))) {
		const pid_t pid = atoi(entry->d_name);
		if (pid <= 0 || pid == getpid())
			continue;
		const enum region_mapped answer = region_mapped_by(region, pid);
		found = answer == REGION_MAPPED_UNREAD ||
		    (answer == REGION_MAPPED && thread_facts_read(pid).parent != getpid());
	}
	closedir(proc);
	return found;
}
