/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests, after cmocka's headers: a process that is no child of ours, as a target is none of the
 * sampler's. It inherits what we have mapped, and ends when its end of the socket does: with us, if not
 * before.
 */
#ifndef TESTS_UNIT_STRANGER_H
#define TESTS_UNIT_STRANGER_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRANGER_DEADLINE_MS = 30000 };

struct stranger {
	pid_t pid;
	int fd;    /* the other end of what its body is given */
	int pidfd; /* readable when it has ended */
};

/* `body` may return, or not; NULL: it only waits for the end of its socket. */
static inline struct stranger stranger_start(void (*body)(int fd, void *argument), void *argument)
{
	struct stranger stranger;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	pid_t middle = fork();
	if (middle == 0) {
		char byte;
		pid_t pid = fork();

		if (pid != 0)
			_exit(pid < 0);
		close(fds[0]);
		pid = getpid();
		if (send(fds[1], &pid, sizeof(pid), MSG_NOSIGNAL) != (ssize_t)sizeof(pid))
			_exit(1);
		if (body)
			body(fds[1], argument);
		else
			(void)!read(fds[1], &byte, 1);
		_exit(0);
	}
	close(fds[1]);
	/* It has been orphaned once its parent is reaped. */
	assert_int_equal(waitpid(middle, NULL, 0), middle);
	stranger.fd = fds[0];
	assert_int_equal(read(fds[0], &stranger.pid, sizeof(stranger.pid)), sizeof(stranger.pid));
	stranger.pidfd = (int)syscall(SYS_pidfd_open, stranger.pid, 0);
	assert_true(stranger.pidfd >= 0);
	return stranger;
}

/* Until it has ended: it may do so by itself, or because of the end of its socket. */
static inline void stranger_await_end(const struct stranger *stranger)
{
	struct pollfd ended = {.fd = stranger->pidfd, .events = POLLIN};

	assert_int_equal(poll(&ended, 1, STRANGER_DEADLINE_MS), 1);
}

static inline void stranger_end(struct stranger *stranger)
{
	shutdown(stranger->fd, SHUT_RDWR); /* others that we have started since have it open too */
	close(stranger->fd);
	stranger_await_end(stranger);
	close(stranger->pidfd);
	*stranger = (struct stranger){.fd = -1, .pidfd = -1};
}

#endif
