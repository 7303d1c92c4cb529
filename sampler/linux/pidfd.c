/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/pidfd.h"

#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int pidfd_open_process(pid_t pid)
{
	char path[PROC_PATH_BYTES];
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0)
		return fd;
	/* EPERM: a container's filter refuses calls that it does not know. */
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	fd = open(proc_path(path, pid, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : -errno;
}

static bool is_folder(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Fields 3 (state) and 20 (num_threads) of stat, proc(5); the second may contain anything. A leader that has
 * ended is a zombie while its threads go on. */
static bool folder_has_ended(int folder)
{
	char text[1024], state;
	long threads;
	int fd = openat(folder, "stat", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT || errno == ESRCH;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	int error = errno;
	close(fd);
	if (got <= 0)
		return got == 0 || error == ESRCH;
	text[got] = '\0';
	const char *at = strrchr(text, ')');
	return at &&
	    sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &state,
	        &threads) == 2 &&
	    (state == 'Z' || state == 'X') && threads <= 1;
}

bool pidfd_has_ended(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	if (is_folder(fd))
		return folder_has_ended(fd);
	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLIN;
}

bool pidfd_holds_pid(int fd)
{
	if (is_folder(fd))
		return faccessat(fd, "stat", F_OK, 0) == 0;
	return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0;
}

/* ---- how the process has ended */

/* linux/pidfd.h of 6.15; Debian 12's headers are older. */
struct pidfd_info {
	uint64_t mask, cgroupid;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};
#define PIDFD_INFO_EXIT (1u << 3)
#define PIDFD_GET_INFO  _IOWR(0xff, 11, struct pidfd_info)
_Static_assert(sizeof(struct pidfd_info) == 64, "PIDFD_INFO_SIZE_VER0");

static ssize_t read_text(int fd, char *text, size_t text_bytes)
{
	ssize_t got = pread(fd, text, text_bytes - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	return got;
}

/* The last field of /proc/PID/stat that proc(5) lists, exit_code, is the 52nd; the second may contain
 * anything. */
static int status_of_zombie(int pidfd, pid_t pid, int *status)
{
	char text[4096], state;

	if (proc_read(pid, "stat", text, sizeof(text)) <= 0)
		return -ENODATA;
	const char *at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %c", &state) != 1 || (state != 'Z' && state != 'X'))
		return -ENODATA;
	const char *last = strrchr(at, ' ');
	/* The process was not reaped yet, so the pid was still its own when we read. */
	if (!last || !pidfd_holds_pid(pidfd))
		return -ENODATA;
	*status = atoi(last + 1);
	return 0;
}

static int status_of_reaped(int pidfd, int *status)
{
	struct pidfd_info info = {.mask = PIDFD_INFO_EXIT};

	if (ioctl(pidfd, PIDFD_GET_INFO, &info) != 0 || !(info.mask & PIDFD_INFO_EXIT))
		return -ENODATA;
	*status = info.exit_code;
	return 0;
}

int pidfd_exit_status(int pidfd, pid_t pid, int *status)
{
	/* For an instant between zombie and reaped, neither source has the status. */
	for (int tries = 0; pidfd >= 0 && tries < 3; tries++) {
		if (status_of_zombie(pidfd, pid, status) == 0 || status_of_reaped(pidfd, status) == 0)
			return 0;
		if (errno == ENOTTY || errno == EINVAL) /* an older kernel */
			break;
		usleep(500);
	}
	return -ENODATA;
}

/* ---- the OOM killer's count */

int oom_watch_parse_counter(const char *text, uint64_t *count)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "oom_kill %" SCNu64, count) == 1)
			return 0;
	}
	return -ENOENT;
}

int oom_watch_parse_cgroup(const char *text, int *version, char *path, size_t path_bytes)
{
	struct proc_cgroup line;

	*version = 0;
	while (proc_cgroup_next(&text, &line)) {
		bool memory = proc_cgroup_has(&line, "memory");

		if ((!memory && line.controllers_bytes) || line.path_bytes >= path_bytes)
			continue;
		/* Version 2 has the memory controller only if no version 1 hierarchy has it. */
		*version = memory ? 1 : 2;
		memcpy(path, line.path, line.path_bytes);
		path[line.path_bytes] = '\0';
		if (memory)
			return 0;
	}
	return *version ? 0 : -ENOENT;
}

static int open_counter(int version, const char *cgroup)
{
	static const char *const files[2][2] = {
	    {"memory.oom_control", NULL},
	    {"memory.events.local", "memory.events"},
	};
	char path[PATH_MAX + 64];

	for (int i = 0; i < 2 && files[version - 1][i]; i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s/%s", version == 1 ? "/memory" : "",
		    strcmp(cgroup, "/") == 0 ? "" : cgroup, files[version - 1][i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

static int read_counter(int fd, uint64_t *count)
{
	char text[16384]; /* /proc/vmstat is the longest file */

	if (fd < 0 || read_text(fd, text, sizeof(text)) <= 0)
		return -ENOENT;
	return oom_watch_parse_counter(text, count);
}

void oom_watch_init(struct oom_watch *watch)
{
	memset(watch, 0, sizeof(*watch));
	watch->fd = -1;
}

void oom_watch_fini(struct oom_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
}

/* Is PF_EXITING among its flags of proc(5), or is the process gone? */
static bool is_exiting(pid_t pid)
{
	char text[1024];
	unsigned int flags;
	const ssize_t length = proc_read(pid, "stat", text, sizeof(text));
	const char *end = length > 0 ? strrchr(text, ')') : NULL;

	return !end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1 || flags & 4;
}

void oom_watch_update(struct oom_watch *watch, pid_t pid)
{
	char text[8192], cgroup[PATH_MAX] = "";
	int version = 0;

	if (proc_read(pid, "cgroup", text, sizeof(text)) <= 0)
		return; /* the process has just ended: keep watching the same cgroup */
	/* A zombie is listed in the root of each version 1 hierarchy until its parent waits for it. */
	if (watch->fd >= 0 && is_exiting(pid))
		return;
	if (oom_watch_parse_cgroup(text, &version, cgroup, sizeof(cgroup)) != 0)
		cgroup[0] = '\0';
	if (watch->fd >= 0 && strcmp(cgroup, watch->cgroup) == 0)
		return;
	oom_watch_fini(watch);
	memcpy(watch->cgroup, cgroup, sizeof(cgroup));
	watch->version = version;
	watch->fd = cgroup[0] ? open_counter(version, cgroup) : -1;
	if (read_counter(watch->fd, &watch->before) == 0)
		return;
	/* The root cgroup has no counter; use that of the machine. */
	oom_watch_fini(watch);
	watch->fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	if (read_counter(watch->fd, &watch->before) != 0)
		oom_watch_fini(watch);
}

int64_t oom_watch_kills(const struct oom_watch *watch)
{
	uint64_t now;

	if (read_counter(watch->fd, &now) != 0 || now < watch->before)
		return -1;
	return (int64_t)(now - watch->before);
}
