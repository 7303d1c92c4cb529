/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/descriptor_range.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NUMBERS_MAX = 1 << 20 };

static void close_each(unsigned int first, unsigned int last)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	struct rlimit limit;

	if (!folder) { /* no /proc: closes every number that may be open */
		if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > NUMBERS_MAX)
			limit.rlim_cur = NUMBERS_MAX;
		for (unsigned int fd = first; fd <= last && fd < limit.rlim_cur; fd++)
			close((int)fd);
		return;
	}
	while ((entry = readdir(folder))) {
		char *end;
		unsigned long fd = strtoul(entry->d_name, &end, 10);

		if (end != entry->d_name && fd >= first && fd <= last && (int)fd != dirfd(folder))
			close((int)fd);
	}
	closedir(folder);
}

void descriptor_range_close(unsigned int first, unsigned int last)
{
	if (close_range(first, last, 0) != 0)
		close_each(first, last);
}
