/* SPDX-License-Identifier: Apache-2.0 */
/* What the web process may do, and what the kernel refuses it even if a parser has been made to try. */
#include "serve/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int listening(struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)address, length), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
	return fd;
}

#define REFUSED(call)                                                        \
	do {                                                                 \
		errno = 0;                                                   \
		if ((long)(call) >= 0 || errno != EPERM) {                   \
			fprintf(stderr, "%s: %s\n", #call, strerror(errno)); \
			_exit(1);                                            \
		}                                                            \
	} while (0)
#define ALLOWED(call)                                                        \
	do {                                                                 \
		if ((long)(call) < 0) {                                      \
			fprintf(stderr, "%s: %s\n", #call, strerror(errno)); \
			_exit(2);                                            \
		}                                                            \
	} while (0)

/* In the child. ours: it listens; its connection to `other` would leave the process. */
static void try_everything(int ours, const struct sockaddr_in *other, int pair[2])
{
	struct iovec data = {"x", 1};
	struct msghdr message = {.msg_name = (void *)(uintptr_t)other,
	    .msg_namelen = sizeof(*other),
	    .msg_iov = &data,
	    .msg_iovlen = 1};
	char byte;

	REFUSED(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	REFUSED(socket(AF_INET, SOCK_STREAM, 0));
	REFUSED(syscall(SYS_tgkill, getppid(), getppid(), 0));
	REFUSED(kill(getppid(), 0));
	REFUSED(fcntl(pair[0], F_SETOWN, getppid()));
	REFUSED(syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	REFUSED(fork());
	/* A socket that listens no more may connect by its first bytes. */
	ALLOWED(shutdown(ours, SHUT_RDWR));
	REFUSED(sendto(ours, "x", 1, MSG_FASTOPEN, (const struct sockaddr *)other, sizeof(*other)));
	REFUSED(sendmsg(ours, &message, MSG_FASTOPEN));
	/* What it is for. */
	ALLOWED(send(pair[0], "a", 1, MSG_NOSIGNAL));
	ALLOWED(recv(pair[1], &byte, 1, 0));
	ALLOWED(fcntl(pair[0], F_SETFL, fcntl(pair[0], F_GETFL) | O_NONBLOCK));
	free(malloc((size_t)64 << 20));
	abort();
}

static void little_is_allowed(void **state)
{
	struct sockaddr_in ours, other;
	int our_fd = listening(&ours), other_fd = listening(&other), pair[2], status;
	pid_t child;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* there is no filter then */
#endif
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (web_enter_sandbox())
			_exit(3);
		signal(SIGABRT, SIG_DFL);
		try_everything(our_fd, &other, pair);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT); /* the signal that it may send to itself */
	close(our_fd);
	close(other_fd);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(little_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
