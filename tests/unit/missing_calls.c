/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that an old kernel lacks, or that a container's filter refuses: what stands in for them. Each
 * test is a process of its own under a filter that refuses what it is about.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/cmd/enable/root_folder.h"
#include "sampler/core/own_resources.h"
#include "sampler/linux/memory_file.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/regular_file.h"
#include "tests/unit/stranger.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

enum { CALLS_MAX = 8 };

static void refuse(const int *calls, size_t count, int error)
{
	struct sock_filter filter[2 * CALLS_MAX + 2];
	unsigned short n = 0;

	filter[n++] =
	    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++) {
		filter[n++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
		filter[n++] =
		    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {n, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

/* Runs `body` where the calls fail with `error`; it returns 0, or the line that was wrong. */
static void without(const int *calls, size_t count, int error, int (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		refuse(calls, count, error);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("SKIPPED: no filters here\n");
		skip();
	}
	if (status)
		fail_msg("wait status %x: line %d", (unsigned)status, WEXITSTATUS(status));
}

/* Exit statuses have 8 bits. */
#define CHECK(condition)                                                                                   \
	do {                                                                                               \
		if (!(condition)) {                                                                        \
			fprintf(stderr, "line %d: %s, errno %s\n", __LINE__, #condition, strerror(errno)); \
			return 1;                                                                          \
		}                                                                                          \
	} while (0)

/* ---- pidfd_open */

static void *outlive(void *argument)
{
	pause();
	return NULL;
}

/* The leader ends, its thread goes on. */
static void leave_a_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, outlive, NULL) != 0)
		_exit(1);
	pthread_exit(NULL);
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	if (fd >= 0)
		close(fd);
	const char *end = strrchr(text, ')');
	return end ? end[2] : '?';
}

static void wait_for_state(pid_t pid, char state)
{
	for (int i = 0; i < 30000 && state_of(pid) != state; i++)
		usleep(1000);
}

static int processes_are_known_by_their_folder(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		leave_a_thread();
		_exit(1);
	}
	int fd = pidfd_open_process(pid), epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EPERM);
	wait_for_state(pid, 'Z');
	CHECK(state_of(pid) == 'Z' && !pidfd_has_ended(fd) && pidfd_holds_pid(fd));
	CHECK(pidfd_exit_status(-1, pid, &status) == -ENODATA);
	CHECK(kill(pid, SIGKILL) == 0);
	siginfo_t info;
	CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	CHECK(pidfd_has_ended(fd) && pidfd_holds_pid(fd));
	CHECK(pidfd_exit_status(fd, pid, &status) == 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(pidfd_has_ended(fd) && !pidfd_holds_pid(fd));
	CHECK(pidfd_exit_status(fd, pid, &status) == -ENODATA);
	CHECK(pidfd_open_process(pid) == -ESRCH);
	close(fd);
	return 0;
}

static void no_pidfds(void **state)
{
	static const int calls[] = {SYS_pidfd_open, SYS_pidfd_send_signal};

	without(calls, 2, ENOSYS, processes_are_known_by_their_folder);
	without(calls, 2, EPERM, processes_are_known_by_their_folder);
}

static void pidfds(void **state)
{
	struct stranger stranger = stranger_start(NULL, NULL);
	int fd = pidfd_open_process(stranger.pid);

	assert_true(fd >= 0);
	assert_false(pidfd_has_ended(fd));
	assert_true(pidfd_holds_pid(fd));
	kill(stranger.pid, SIGKILL);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&poll_fd, 1, STRANGER_DEADLINE_MS), 1);
	assert_true(pidfd_has_ended(fd));
	close(fd);
	stranger_end(&stranger);
}

/* ---- close_range */

static int descriptors_are_closed_one_by_one(void)
{
	int kept = open("/dev/null", O_RDONLY), high = fcntl(kept, F_DUPFD, 200), gone = dup(kept);

	CHECK(kept > 2 && high >= 200 && gone > kept);
	descriptors_drop(&kept, 1);
	CHECK(fcntl(kept, F_GETFD) >= 0 && fcntl(STDERR_FILENO, F_GETFD) >= 0);
	CHECK(fcntl(gone, F_GETFD) < 0 && fcntl(high, F_GETFD) < 0);
	return 0;
}

static void no_close_range(void **state)
{
	static const int calls[] = {SYS_close_range};

	without(calls, 1, ENOSYS, descriptors_are_closed_one_by_one);
	without(calls, 1, EPERM, descriptors_are_closed_one_by_one);
}

/* ---- openat2 */

static int files_are_opened_by_name(void)
{
	char folder[] = "/tmp/heaptap-missing.XXXXXX", path[64];
	struct stat status;
	int fd;
	const bool mounts =
	    unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;

	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	CHECK((fd = open(path, O_CREAT | O_WRONLY, 0600)) >= 0 && close(fd) == 0);
	CHECK((fd = regular_file_open(AT_FDCWD, path, 0, &status)) >= 0 && close(fd) == 0);
	CHECK(regular_file_open(AT_FDCWD, folder, 0, &status) == -EINVAL);
	int folder_fd = open(folder, O_PATH | O_DIRECTORY);
	CHECK((fd = regular_file_open(folder_fd, "file", 1, &status)) >= 0 && close(fd) == 0);
	/* A link may lead anywhere, and so may a path with a folder in it. */
	CHECK(symlinkat("/etc/passwd", folder_fd, "link") == 0);
	CHECK(regular_file_open(folder_fd, "link", 1, &status) < 0);
	CHECK(regular_file_open(folder_fd, "../../etc/passwd", 1, &status) < 0);
	CHECK(regular_file_open(folder_fd, "/etc/passwd", 1, &status) < 0);
	if (mounts) {
		CHECK(mount("/etc/passwd", path, NULL, MS_BIND, NULL) == 0);
		CHECK(regular_file_open(folder_fd, "file", 1, &status) == -EXDEV);
		CHECK(umount2(path, MNT_DETACH) == 0);
	}
	CHECK(unlinkat(folder_fd, "link", 0) == 0 && unlink(path) == 0 && rmdir(folder) == 0);
	return 0;
}

/* Of the machine's own root only: below another folder a link may lead out of it. */
static int units_are_read_in_the_own_root(void)
{
	struct root_folder own, other;
	char *text;
	size_t length;

	CHECK(root_folder_open(&own, NULL) == 0);
	CHECK(root_folder_has(&own, "/proc/self/stat") && !root_folder_has(&own, "/proc/self/nothing"));
	CHECK(root_folder_read(&own, "/etc/passwd", &text, &length) == 0 && length > 0);
	free(text);
	root_folder_close(&own);
	CHECK(root_folder_open(&other, "/etc") == 0);
	CHECK(root_folder_read(&other, "/passwd", &text, &length) < 0);
	root_folder_close(&other);
	return 0;
}

static void no_openat2(void **state)
{
	static const int calls[] = {SYS_openat2};

	without(calls, 1, ENOSYS, files_are_opened_by_name);
	without(calls, 1, EPERM, files_are_opened_by_name);
	without(calls, 1, ENOSYS, units_are_read_in_the_own_root);
	without(calls, 1, EPERM, units_are_read_in_the_own_root);
}

/* ---- flags of memfd_create */

static void refuse_new_memfd_flags(void)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)SYS_memfd_create, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ~7u, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

static int memory_is_sealed(void)
{
	int fd = memory_file_create("heaptap-test");

	CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	CHECK(ftruncate(fd, 0) < 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	return 0;
}

static int memory_without_new_flags(void)
{
	refuse_new_memfd_flags();
	return memory_is_sealed();
}

static void no_new_memfd_flags(void **state)
{
	without(NULL, 0, 0, memory_is_sealed);
	without(NULL, 0, 0, memory_without_new_flags);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pidfds),
	    cmocka_unit_test(no_pidfds),
	    cmocka_unit_test(no_close_range),
	    cmocka_unit_test(no_openat2),
	    cmocka_unit_test(no_new_memfd_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
