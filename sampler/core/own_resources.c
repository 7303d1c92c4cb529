/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/own_resources.h"

#include "sampler/linux/confinement.h"
#include "sampler/linux/proc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t own_resources_rss_bytes(void)
{
	uint64_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static uint64_t cpu_ns(int whose)
{
	struct rusage usage;

	return getrusage(whose, &usage) == 0 ? timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime) : 0;
}

uint64_t own_resources_cpu_ns(void)
{
	return cpu_ns(RUSAGE_SELF);
}

uint64_t own_resources_cpu_with_children_ns(void)
{
	return cpu_ns(RUSAGE_SELF) + cpu_ns(RUSAGE_CHILDREN);
}

uint64_t own_resources_private_bytes(void)
{
	char status[PROC_STATUS_BYTES];

	(void)proc_read(getpid(), "status", status, sizeof(status));
	return proc_status_number(status, "\nRssAnon:", 10, 0) << 10;
}

void own_resources_raise_limits(void)
{
	static const char score[] = "-500";
	/* COMMAND keeps its own limits: it is no child of this process. */
	static const int raised[] = {RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_NOFILE};
	static const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};

	for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++) {
		struct rlimit limit;

		/* The hard limit too, if we have CAP_SYS_RESOURCE: `ulimit -v` of a shell sets both. */
		if (raised[i] != RLIMIT_NOFILE && setrlimit(raised[i], &none) == 0)
			continue;
		if (getrlimit(raised[i], &limit) == 0) {
			limit.rlim_cur = limit.rlim_max;
			setrlimit(raised[i], &limit);
		}
	}
	signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit becomes an ordinary error */
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t written = write(fd, score, strlen(score)); /* EACCES without CAP_SYS_RESOURCE */
	(void)written;
	close(fd);
}

void descriptors_fill_gaps(void)
{
	int fd;

	do
		fd = open("/dev/null", O_PATH | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
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
			confinement_close_range(first, next - 1);
	}
}
