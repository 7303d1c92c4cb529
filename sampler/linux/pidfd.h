/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor that stands for one process, even after its pid was given to another process, and how that
 * process has ended. The descriptor is a pidfd (pidfd_open(2), Linux 5.3), or the folder /proc/PID, which
 * goes with the process, if the kernel has no pidfds or a filter refuses the call.
 */
#ifndef SAMPLER_LINUX_PIDFD_H
#define SAMPLER_LINUX_PIDFD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Returns a descriptor, which the caller closes; -ESRCH if there is no such process; or -errno. A folder
 * cannot be waited for (epoll_ctl(2) refuses it with EPERM): the caller must ask now and then whether the
 * process has ended.
 */
int pidfd_open_process(pid_t pid);

/* Have all threads of the process ended? The process may still be a zombie. */
bool pidfd_has_ended(int fd);

/* Does the pid still mean this process? It does while the process runs or is a zombie. False if that is
 * unknown. */
bool pidfd_holds_pid(int fd);

/*
 * ---- how a process that is not our child has ended, as far as the kernel says
 *
 *   status   /proc/PID/stat of a zombie; once it is reaped, PIDFD_GET_INFO (Linux 6.15), which works for
 *            as long as a pidfd is open. Older kernels: unknown.
 *   OOM      a kill by the OOM killer looks like any other SIGKILL; only the victim's memory cgroup counts
 *            them (cgroup v1: memory.oom_control, v2: memory.events.local; outside any: /proc/vmstat). The
 *            count is that of the cgroup, so we report how many kills there were while we watched.
 */

/* The wait status of a process that has ended. The pidfd proves that `pid` was not given to another process.
 * Returns 0, or -ENODATA if the status is unknown. */
int pidfd_exit_status(int pidfd, pid_t pid, int *status);

struct oom_watch {
	int fd;          /* the counter's file; -1: none */
	uint64_t before; /* the count when the watch began */
	/* the counter's cgroup: "/system.slice/redis.service"; "": the whole machine */
	char cgroup[PATH_MAX];
	int version; /* of the cgroup */
};

/* oom_watch_update begins to watch the cgroup of a live process; call it again, since the process may move to
 * another cgroup. */
void oom_watch_init(struct oom_watch *watch);
void oom_watch_update(struct oom_watch *watch, pid_t pid);
void oom_watch_fini(struct oom_watch *watch);

/* The number of kills by the OOM killer since the watch began; -1 if unknown (the cgroup is gone). */
int64_t oom_watch_kills(const struct oom_watch *watch);

/* Pure: "oom_kill 3" among the lines of a counter file. Returns 0 or -ENOENT. */
int oom_watch_parse_counter(const char *text, uint64_t *count);

/* Pure: the memory cgroup in the text of /proc/PID/cgroup. *version is 1 or 2. Returns 0 or -ENOENT. */
int oom_watch_parse_cgroup(const char *text, int *version, char *path, size_t path_bytes);

#endif
