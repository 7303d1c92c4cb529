/* SPDX-License-Identifier: Apache-2.0 */
/*
 * old_kernel [-p] VERSION COMMAND...: executes COMMAND on this kernel as if it were an older one (4.18, 5.4,
 * 5.10, ...), as far as heaptap can tell: system calls and flags that are newer fail with ENOSYS and EINVAL
 * (with -p with EPERM, as containers' filters have it), and so do events with attributes that are newer.
 *
 * A filter cannot read the attributes of perf_event_open: it asks a process of ours, which reads them in the
 * caller's memory (seccomp_unotify(2)). Versions: man pages of section 2, and the history of
 * include/uapi/linux/perf_event.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>

#define VERSION(major, minor) ((major)*1000 + (minor))

static const struct {
	int number, since;
} calls[] = {
    {SYS_pidfd_send_signal, VERSION(5, 1)},
    {SYS_pidfd_open, VERSION(5, 3)},
    {SYS_clone3, VERSION(5, 3)},
    {SYS_openat2, VERSION(5, 6)},
    {SYS_pidfd_getfd, VERSION(5, 6)},
    {SYS_faccessat2, VERSION(5, 8)},
    {SYS_close_range, VERSION(5, 9)},
    {SYS_process_madvise, VERSION(5, 10)},
    {SYS_epoll_pwait2, VERSION(5, 11)},
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]), MEMFD_FLAGS_BEFORE_6_3 = 7 };

static int version;

/* ---- the filter */

static int install(int error)
{
	struct sock_filter filter[2 * CALLS + 16];
	unsigned short n = 0;

	filter[n++] =
	    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < CALLS; i++) {
		if (calls[i].since <= version)
			continue;
		filter[n++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0, 1);
		filter[n++] =
		    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
	}
	filter[n++] =
	    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)SYS_perf_event_open, 0, 1);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	if (version < VERSION(6, 3)) {
		filter[n++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)SYS_memfd_create, 0, 3);
		filter[n++] = (struct sock_filter)BPF_STMT(
		    BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]));
		filter[n++] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JSET | BPF_K, ~(unsigned)MEMFD_FLAGS_BEFORE_6_3, 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {n, filter};
	/* Root needs no such promise, and its children may change their user id then. */
	if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* ---- who is asked */

static int is_too_new(const struct perf_event_attr *attr)
{
	return (version < VERSION(5, 11) && attr->sample_type & PERF_SAMPLE_DATA_PAGE_SIZE) ||
	    (version < VERSION(5, 12) && attr->build_id) ||
	    (version < VERSION(5, 13) && (attr->remove_on_exec || attr->sigtrap || attr->inherit_thread)) ||
	    (version < VERSION(6, 0) && attr->read_format & PERF_FORMAT_LOST);
}

static int judge(const struct seccomp_notif *asked)
{
	struct perf_event_attr attr = {.size = 0};
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/mem", asked->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	/* What cannot be read the kernel refuses by itself. */
	if (pread(fd, &attr, sizeof(attr), (off_t)asked->data.args[0]) < PERF_ATTR_SIZE_VER0)
		attr = (struct perf_event_attr){.size = 0};
	close(fd);
	return is_too_new(&attr) ? -EINVAL : 0;
}

static void answer(int listener)
{
	struct pollfd poll_fd = {.fd = listener, .events = POLLIN};

	while (poll(&poll_fd, 1, -1) > 0 && poll_fd.revents & POLLIN) {
		struct seccomp_notif asked;

		memset(&asked, 0, sizeof(asked));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
			continue;
		struct seccomp_notif_resp said = {.id = asked.id, .error = judge(&asked)};
		said.flags = said.error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &said);
	}
}

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static int receive(int channel)
{
	union control control;
	char byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(channel, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static int give(int channel, int fd)
{
	union control control;

	memset(&control, 0, sizeof(control));
	struct iovec part = {"x", 1};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	control.header = (struct cmsghdr){
	    .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(channel, &message, 0) == 1 ? 0 : -1;
}

/* Nobody's child, so that COMMAND has none that it does not know; without its descriptors. */
static void start_answering(int channel, int other)
{
	if (fork() == 0) {
		if (fork() != 0)
			_exit(0);
		setsid();
		close(other);
		int null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		int listener = receive(channel);
		close(channel);
		if (listener >= 0)
			answer(listener);
		_exit(0);
	}
	while (wait(NULL) < 0 && errno == EINTR)
		;
}

int main(int argc, char *argv[])
{
	int permission = argc > 1 && strcmp(argv[1], "-p") == 0, major, minor, pair[2];
	char **rest = argv + 1 + permission;

	if (argc < 3 + permission || sscanf(rest[0], "%d.%d", &major, &minor) != 2)
		return 2;
	version = VERSION(major, minor);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return 3;
	start_answering(pair[0], pair[1]);
	close(pair[0]);
	int listener = install(permission ? EPERM : ENOSYS);
	if (listener < 0 || give(pair[1], listener)) {
		perror("old_kernel");
		return 77; /* no such filters here */
	}
	close(listener);
	close(pair[1]);
	execvp(rest[1], rest + 1);
	perror(rest[1]);
	return 127;
}
