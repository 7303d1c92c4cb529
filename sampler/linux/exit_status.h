/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process that is not our child has ended, as far as the kernel says.
 *
 *   status   /proc/PID/stat of a zombie; once it is reaped, PIDFD_GET_INFO (Linux 6.15), which works for
 *            as long as a pidfd is open. Older kernels: unknown.
 *   OOM      a kill by the OOM killer looks like any other SIGKILL; only the victim's memory cgroup counts
 *            them (cgroup v1: memory.oom_control, v2: memory.events.local; outside any: /proc/vmstat). The
 *            count is that of the cgroup, so we report how many kills there were while we watched.
 */
#ifndef SAMPLER_LINUX_EXIT_STATUS_H
#define SAMPLER_LINUX_EXIT_STATUS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Wait status of a process that has ended. pid: its number; the pidfd proves that it was not reused. Returns
 * 0, or -ENODATA if it is unknown. */
int exit_status_read(int pidfd, pid_t pid, int *status);

struct oom_watch {
	int fd;                /* the counter; -1: none */
	uint64_t before;       /* when the watch began */
	char cgroup[PATH_MAX]; /* of the counter: "/system.slice/redis.service"; "" for the whole machine */
	int version;           /* of the cgroup */
};

/* Begins to watch a live process' cgroup; call it again in case the process moves to another. */
void oom_watch_init(struct oom_watch *watch);
void oom_watch_update(struct oom_watch *watch, pid_t pid);
void oom_watch_fini(struct oom_watch *watch);

/* Kills by the OOM killer since the watch began: 0, or how many; -1 unknown (the cgroup is gone). */
int64_t oom_watch_kills(const struct oom_watch *watch);

/* Pure: "oom_kill 3" among the lines of a counter file. Returns 0 or -ENOENT. */
int oom_watch_parse_counter(const char *text, uint64_t *count);

/* Pure: the memory cgroup in the text of /proc/PID/cgroup. *version is 1 or 2. Returns 0 or -ENOENT. */
int oom_watch_parse_cgroup(const char *text, int *version, char *path, size_t path_bytes);

#endif
