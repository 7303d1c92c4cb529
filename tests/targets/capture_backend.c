/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all -D_GNU_SOURCE */
/*
 * What takes the ground from under a backend, and a program that goes on allocating meanwhile.
 *
 *   capture_backend work FILE COUNT         COUNT blocks of 1000 bytes (8 MB at most in use), a millisecond
 *                                        apart by 50; every 50 it writes to FILE how many there were, and
 *                                        ends early when FILE.end exists
 *   capture_backend switch FILE              hands a byte to and fro until FILE.end exists, at most for 30 s,
 *                                         and allocates;
 *                                        says at how many switches a second at best
 *   capture_backend disable PID             disables every perf event that this process holds
 *   capture_backend hog PRELOAD COMMAND...  takes all debug registers for code, then executes COMMAND with
 *                                        LD_PRELOAD
 *   capture_backend chain N COMMAND...      waits until the sampler has opened an event for it, executes
 *                                        itself, and so on N times, then COMMAND
 *   capture_backend late FILE COUNT         the same without executing anything: works then
 *   capture_backend parted FILE COMMAND...  the same, but once, and forks before: the child works, with FILE
 */
#include "tests/targets/own_region.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

__attribute__((noinline, noclone)) void *take(void)
{
	char *block = malloc(1000);

	memset(block, 1, 1000);
	return block;
}

static int work(const char *file, long count)
{
	static void *held[8192];
	char end[4096];

	snprintf(end, sizeof(end), "%s.end", file);
	int fd = -1;
	for (long i = 0; i < count; i++) {
		free(held[i % 8192]);
		held[i % 8192] = take();
		if (i % 50 || i == 0)
			continue;
		char text[32];
		int length = snprintf(text, sizeof(text), "%ld\n", i);
		if (fd < 0)
			fd = open(file, O_WRONLY | O_CREAT, 0600);
		if (pwrite(fd, text, (size_t)length, 0) != length)
			return 9;
		usleep(1000);
		if (access(end, F_OK) == 0)
			break;
	}
	return 0;
}

static int switching(const char *file)
{
	int there[2], back[2];
	char byte = 0, end[4096];
	long best = 0, before = 0, from = 0;

	snprintf(end, sizeof(end), "%s.end", file);
	if (pipe(there) != 0 || pipe(back) != 0)
		return 7;
	if (fork() == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	time_t deadline = time(NULL) + 30;
	while (time(NULL) < deadline && access(end, F_OK) != 0) {
		struct timespec now;
		struct rusage usage;

		for (int i = 0; i < 1000; i++)
			if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
				return 8;
		free(take());
		clock_gettime(CLOCK_MONOTONIC, &now);
		getrusage(RUSAGE_SELF, &usage);
		long ns = now.tv_sec * 1000000000L + now.tv_nsec;
		if (ns - from < 1000000000L)
			continue;
		if (from && (usage.ru_nvcsw - before) * 1000000000.0 / (ns - from) > best)
			best = (usage.ru_nvcsw - before) * 1000000000.0 / (ns - from);
		before = usage.ru_nvcsw;
		from = ns;
	}
	printf("%ld\n", best);
	return 0;
}

static int disable(int pid)
{
	char path[300], link[64];
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, entry->d_name);
		ssize_t length = readlink(path, link, sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		if (!strstr(link, "[perf_event]"))
			continue;
		int fd = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(entry->d_name), 0);
		if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) != 0)
			return 3;
		close(fd);
		count++;
	}
	printf("%d\n", count);
	return count ? 0 : 4;
}

static int hog(const char *preload, char *command[])
{
	/* On x86-64 four for code and data, one of which may be the sampler's, inherited from the shell that
	 * has forked us; on aarch64 2 to 16 for code alone. */
	enum { MOST = 17 };
	int taken = 0, opened;

	do {
		struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
		    .size = sizeof(attr),
		    .bp_type = HW_BREAKPOINT_X,
		    .bp_addr = (unsigned long)&hog + 4ul * (unsigned long)taken,
		    .bp_len = sizeof(long),
		    .disabled = 1,
		    .exclude_kernel = 1,
		    .exclude_hv = 1,
		    .inherit = 1};

		opened = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
		taken += opened >= 0;
	} while (opened >= 0 && taken < MOST);
	if (errno != ENOSPC || taken < 1)
		return 5;
	setenv("LD_PRELOAD", preload, 1);
	execvp(command[0], command);
	return 6;
}

static int parted(const char *file, char *command[])
{
	int error = await_event();

	if (error)
		return error;
	if (fork() == 0)
		_exit(work(file, 100000000));
	for (int i = 0; access(file, F_OK) != 0 && i < 60000; i++)
		usleep(1000);
	execvp(command[0], command);
	return 11;
}

static int chain(char *argv[])
{
	char number[16];
	int n = atoi(argv[2]), error = await_event();

	if (error)
		return error;
	snprintf(number, sizeof(number), "%d", n - 1);
	argv[2] = number;
	if (n > 0)
		execv("/proc/self/exe", argv);
	else
		execvp(argv[3], argv + 3);
	return 11;
}

int main(int argc, char *argv[])
{
	if (argc > 3 && strcmp(argv[1], "late") == 0)
		return await_event() || work(argv[2], atol(argv[3]));
	if (argc > 3 && strcmp(argv[1], "chain") == 0)
		return chain(argv);
	if (argc > 3 && strcmp(argv[1], "parted") == 0)
		return parted(argv[2], argv + 3);
	if (argc > 3 && strcmp(argv[1], "work") == 0)
		return work(argv[2], atol(argv[3]));
	if (argc > 2 && strcmp(argv[1], "switch") == 0)
		return switching(argv[2]);
	if (argc > 2 && strcmp(argv[1], "disable") == 0)
		return disable(atoi(argv[2]));
	if (argc > 3 && strcmp(argv[1], "hog") == 0)
		return hog(argv[2], argv + 3);
	return 2;
}
