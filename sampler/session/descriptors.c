/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NUMBERS_MAX = 1 << 20 };

void descriptors_fill_gaps(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Those that are open, one after another: Linux before 5.9 has no close_range, and filters refuse it. */
static void close_each(unsigned int first, unsigned int last)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	struct rlimit limit;

	if (!folder) { /* no /proc: those that there may be */
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

void descriptors_close(unsigned int first, unsigned int last)
{
	if (close_range(first, last, 0) != 0)
		close_each(first, last);
}

void descriptors_drop(const int *kept, size_t count)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	for (unsigned int first = STDERR_FILENO + 1, next; first < INT_MAX; first = next + 1) {
		next = INT_MAX;
		for (size_t i = 0; i < count; i++)
			if (kept[i] >= (int)first && (unsigned int)kept[i] < next)
				next = (unsigned int)kept[i];
		if (next > first)
			descriptors_close(first, next - 1);
	}
}
