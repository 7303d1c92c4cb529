/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes a program under a guard that lets it map no file in memory (memfd) as code, as a security module
 * may. The guard is a process that the kernel asks about each mapping of a file as code
 * (SECCOMP_RET_USER_NOTIF).
 *
 *     attach_guard PROGRAM [ARGUMENT...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

static int install(void)
{
	/* mmap with PROT_EXEC, not anonymous */
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static int is_memory(const struct seccomp_notif *asked)
{
	char path[64], file[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", asked->pid, (int)asked->data.args[4]);
	ssize_t length = readlink(path, file, sizeof(file) - 1);
	return length > 0 && strncmp(file, "/memfd:", 7) == 0;
}

/* Until nobody is under the filter any more. */
static void guard(int listener)
{
	struct pollfd fd = {.fd = listener, .events = POLLIN};

	while (poll(&fd, 1, -1) == 1 && !(fd.revents & (POLLHUP | POLLERR))) {
		struct seccomp_notif asked = {0};
		struct seccomp_notif_resp answer = {0};

		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
			continue; /* the thread was interrupted, and asks again */
		answer.id = asked.id;
		if (is_memory(&asked))
			answer.error = -EACCES;
		else
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

/* The descriptor of the listener, which the child cannot send itself without another one. */
static int take_listener(pid_t pid, int number)
{
	int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return pid_fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pid_fd, number, 0);
}

int main(int argc, char *argv[])
{
	int pair[2], number = -1;

	if (argc < 2 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return 2;
	pid_t watched = getpid();
	/* The guard is the child, so that the program has the number that its starter knows. */
	if (fork() == 0) {
		close(pair[0]);
		if (read(pair[1], &number, sizeof(number)) != sizeof(number))
			_exit(3);
		int listener = take_listener(watched, number);
		if (write(pair[1], "", 1) != 1 || listener < 0)
			_exit(3);
		close(0), close(1), close(pair[1]);
		guard(listener);
		_exit(0);
	}
	number = install();
	char byte;
	if (number < 0 || write(pair[0], &number, sizeof(number)) != sizeof(number) ||
	    read(pair[0], &byte, 1) != 1)
		return 3;
	close(number);
	execv(argv[1], argv + 1);
	return 3;
}
