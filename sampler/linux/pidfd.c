/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/pidfd.h"

#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
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
