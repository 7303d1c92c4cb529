/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/self_limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	LOOK_NS = 1000 * 1000000,
};

uint64_t self_limits_rss_bytes(void)
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

uint64_t self_limits_cpu_ns(void)
{
	return cpu_ns(RUSAGE_SELF) + cpu_ns(RUSAGE_CHILDREN);
}

enum self_limits_verdict self_limits_look(struct self_limits *guard, uint64_t now_ns)
{
	if (now_ns - guard->looked_ns < LOOK_NS)
		return SELF_LIMITS_FINE;
	uint64_t elapsed_ns = now_ns - guard->looked_ns, cpu = cpu_ns(RUSAGE_SELF),
	         used_ns = cpu - guard->cpu_ns;
	bool first = guard->looked_ns == 0;
	guard->looked_ns = now_ns;
	guard->cpu_ns = cpu;
	if (guard->rss_max_bytes && self_limits_rss_bytes() > guard->rss_max_bytes)
		return SELF_LIMITS_MEMORY;
	if (!first && guard->cpu_max_percent && used_ns > elapsed_ns / 100 * guard->cpu_max_percent)
		return SELF_LIMITS_CPU;
	return SELF_LIMITS_FINE;
}

void self_limits_begin(void)
{
	static const char score[] = "-500";
	/* COMMAND is a child of the front and keeps its own limits. */
	static const int raised[] = {RLIMIT_NOFILE, RLIMIT_FSIZE};

	for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++) {
		struct rlimit limit;

		if (getrlimit(raised[i], &limit) == 0) {
			limit.rlim_cur = limit.rlim_max;
			setrlimit(raised[i], &limit);
		}
	}
	/* The hard one too, where we may (CAP_SYS_RESOURCE): `ulimit -f` of a shell sets both. */
	static const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
	setrlimit(RLIMIT_FSIZE, &none);
	signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit becomes an ordinary error */
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t written = write(fd, score, strlen(score)); /* EACCES without CAP_SYS_RESOURCE */
	(void)written;
	close(fd);
}
