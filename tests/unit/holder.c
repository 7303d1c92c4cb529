/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes by which a target gets the library: the holder, which is this program executed anew, and the
 * child that makes a folder. Those that say nothing, and those that do not end.
 */
#include "sampler/inject/holder.h"
#include "sampler/inject/library_folder.h"
#include "sampler/inject/target_context.h"
#include "sampler/intake/region.h"

#include "proto/attach_request.h"
#include "proto/region.h"

#include "sampler/core/own_resources.h"
#include "sampler/linux/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/unit/fuse_server.h"
#include "tests/unit/stranger.h"
#include "tests/unit/unkillable.h"
#include "tests/unit/workshop.h"

enum { HOLDER_SOCKET = 3, NOBODY = 65534 };

static int until[2]; /* the end of the second releases who cannot be killed */

/* ---- the holder: what it is given as a region says which one it is */

static int be_a_holder(int count, char *words[])
{
	const int answers[] = {0, 1};
	char byte;

	descriptors_fill_gaps(); /* as heaptap's own main does before it knows its command */
	if (read(ATTACH_REGION_FD, &byte, 1) != 1) /* /dev/null */
		return holder_main(count, words);
	if (!unkillable_become(ATTACH_LIBRARY_FD) ||
	    write(HOLDER_SOCKET, answers, sizeof(answers)) != (ssize_t)sizeof(answers))
		return EXIT_FAILURE;
	for (;;)
		pause();
}

static int open_kind(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* What is lent in the place of a region. */
static struct region open_lent(const char *path)
{
	return (struct region){.fd = open_kind(path), .buffers_fd = open_kind("/dev/null")};
}

static void a_holder_holds_until_it_is_ended(void **state)
{
	struct handed handed;
	char path[HANDED_PATH_BYTES];

	(void)state;
	struct region region = open_lent("/dev/null");
	int library_fd = open_kind("/proc/self/exe");
	assert_int_equal(holder_start(&handed, getpid(), library_fd, &region, -1), 0);
	assert_int_equal(access(handed.library_path, R_OK), 0);
	snprintf(path, sizeof(path), "%s", handed.library_path);
	handed_end(&handed);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
	close(library_fd);
	region_close(&region);
}

static void a_holder_that_does_not_end_is_left(void **state)
{
	struct handed handed;

	(void)state;
	struct region region = open_lent("/dev/zero");
	assert_int_equal(pipe2(until, O_CLOEXEC), 0);
	assert_int_equal(holder_start(&handed, getpid(), until[0], &region, -1), 0);
	pid_t child = handed.child;
	handed_end(&handed);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* killed, and still there */
	close(until[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(until[0]);
	region_close(&region);
}

/* ---- a target in a container */

struct contained {
	struct stranger starter;
	pid_t pid;
};

static void run_contained(const char *folder, int ready_fd)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/proc", folder);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mkdir(path, 0755) == 0 &&
	    mount("proc", path, "proc", 0, NULL) == 0 && chmod(folder, 0755) == 0 && chroot(folder) == 0 &&
	    chdir("/") == 0 && sethostname("contained", 9) == 0 && setgroups(0, NULL) == 0 &&
	    setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0 &&
	    write(ready_fd, "", 1) == 1)
		for (;;)
			pause();
	_exit(EXIT_FAILURE);
}

static void be_a_container(int fd, void *argument)
{
	const int kinds =
	    CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWPID;
	int ready[2];
	char byte;
	pid_t pid = -1;

	if (unshare(kinds) == 0 && pipe(ready) == 0) {
		pid = fork();
		if (pid == 0)
			run_contained(argument, ready[1]);
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			pid = -1;
	}
	if (write(fd, &pid, sizeof(pid)) == (ssize_t)sizeof(pid))
		(void)!read(fd, &byte, 1);
	if (pid > 0)
		kill(pid, SIGKILL);
}

static bool write_proc(const char *name, const char *text)
{
	char path[PROC_PATH_BYTES];
	int fd = open(proc_path(path, getpid(), name), O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

/* A process that is alone in a user namespace which nobody, with no privileges, has made. */
static void be_a_user_alone(int fd, void *argument)
{
	pid_t pid = getpid();
	char byte;

	(void)argument;
	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0 ||
	    prctl(PR_SET_DUMPABLE, 1) != 0 || unshare(CLONE_NEWUSER) != 0 ||
	    !write_proc("setgroups", "deny") || !write_proc("uid_map", "0 65534 1") ||
	    !write_proc("gid_map", "0 65534 1"))
		pid = -1;
	if (write(fd, &pid, sizeof(pid)) == (ssize_t)sizeof(pid))
		(void)!read(fd, &byte, 1);
}

static void start_contained(
    struct contained *target, void (*body)(int fd, void *argument), const struct workshop *shop)
{
	target->starter = stranger_start(body, (void *)(uintptr_t)(shop ? workshop_path(shop, ".") : NULL));
	assert_int_equal(read(target->starter.fd, &target->pid, sizeof(target->pid)), sizeof(target->pid));
	if (target->pid > 0)
		return;
	stranger_end(&target->starter);
	print_message("no such namespaces can be made here\n");
	skip();
}

static void assert_same(pid_t one, pid_t other, const char *name)
{
	char path[PROC_PATH_BYTES];
	struct stat status[2];

	assert_int_equal(stat(proc_path(path, one, name), &status[0]), 0);
	assert_int_equal(stat(proc_path(path, other, name), &status[1]), 0);
	if (status[0].st_ino != status[1].st_ino || status[0].st_dev != status[1].st_dev)
		fail_msg("%s is not the target's", name);
}

static void assert_harmless(pid_t holder, unsigned int user)
{
	static const char *const lines[] = {"\nCapPrm:\t0000000000000000\n", "\nCapInh:\t0000000000000000\n",
	    "\nCapAmb:\t0000000000000000\n", "\nNoNewPrivs:\t1\n"};
	char status[PROC_STATUS_BYTES], ids[64];

	assert_true(proc_read(holder, "status", status, sizeof(status)) > 0);
	snprintf(ids, sizeof(ids), "\nUid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n", user, user, user, user,
	    user, user, user, user);
	assert_non_null(strstr(status, ids));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strstr(status, lines[i]))
			fail_msg("not there: %s", lines[i] + 1);
	assert_int_equal(proc_status_number(status, "\nGroups:", 10, 0), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_int_equal(proc_status_number(status, "\nSeccomp:", 10, 2), 2);
#endif
}

/* Nobody can change it, and it is not the file that others execute. */
static void assert_program_is_sealed(pid_t holder)
{
	char path[PROC_PATH_BYTES];
	struct stat own, other;
	int fd = open(proc_path(path, holder, "exe"), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &own), 0);
	assert_int_equal(stat("/proc/self/exe", &other), 0);
	assert_true(own.st_dev != other.st_dev || own.st_ino != other.st_ino);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE, F_SEAL_WRITE);
	close(fd);
}

static int descriptors_of(pid_t holder)
{
	char path[PROC_PATH_BYTES];
	DIR *folder = opendir(proc_path(path, holder, "fd"));
	struct dirent *entry;
	int count = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder)))
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

/* What a target can open of the holder (/proc/PID/root, cwd, exe, ns, fd) is its own, or what it is lent. */
static void a_holder_has_nothing_of_ours(void **state)
{
	static const char *const names[] = {
	    "root", "cwd", "ns/mnt", "ns/net", "ns/ipc", "ns/uts", "ns/cgroup", "ns/pid", "ns/user"};
	struct contained target;
	struct handed handed;

	start_contained(&target, be_a_container, *state);
	struct region region = open_lent("/dev/null");
	int library_fd = open_kind("/proc/self/exe");
	assert_int_equal(holder_start(&handed, target.pid, library_fd, &region, -1), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_same(handed.child, target.pid, names[i]);
	assert_harmless(handed.child, NOBODY);
	assert_program_is_sealed(handed.child);
	const int held = descriptors_of(handed.child);
	handed_end(&handed);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	stranger_end(&target.starter);
	assert_int_equal(held, 4); /* its socket, and what it lends */
	close(library_fd);
	region_close(&region);
}

static int become_unseen(pid_t target)
{
	struct target_context context;
	bool unseen = target_context_open(&context, target) == 0 && target_context_enter(&context) == 0 &&
	    prctl(PR_GET_DUMPABLE) == 0 && target_context_become(&context) == 0 &&
	    prctl(PR_GET_DUMPABLE) == 0;

	return unseen ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* On its way to one of the target's, it has something of both. */
static void nobody_looks_into_who_becomes_one_of_a_target(void **state)
{
	struct stranger target = stranger_start(NULL, NULL);
	int status;

	(void)state;
	pid_t child = fork();
	if (child == 0)
		_exit(become_unseen(target.pid));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	stranger_end(&target);
}

/* The target has stopped it, which is its right: it has its user. */
static void a_holder_that_is_stopped_is_killed(void **state)
{
	struct contained target;
	struct handed handed;

	start_contained(&target, be_a_container, *state);
	struct region region = open_lent("/dev/null");
	int library_fd = open_kind("/proc/self/exe");
	assert_int_equal(holder_start(&handed, target.pid, library_fd, &region, -1), 0);
	assert_int_equal(kill(handed.child, SIGSTOP), 0);
	pid_t child = handed.child;
	handed_end(&handed);
	assert_int_equal(kill(child, 0), -1);
	stranger_end(&target.starter);
	close(library_fd);
	region_close(&region);
}

static void root_lends_to_a_user_namespace_of_another_user(void **state)
{
	struct contained target;
	struct handed handed;

	(void)state;
	start_contained(&target, be_a_user_alone, NULL);
	struct region region = open_lent("/dev/null");
	int library_fd = open_kind("/proc/self/exe");
	assert_int_equal(holder_start(&handed, target.pid, library_fd, &region, -1), 0);
	assert_same(handed.child, target.pid, "ns/user");
	assert_harmless(handed.child, NOBODY);
	handed_end(&handed);
	stranger_end(&target.starter);
	close(library_fd);
	region_close(&region);
}

/* ---- a target whose root never answers */

static void serve_mute(int fuse_fd)
{
	static char text[1 << 16];
	const struct fuse_in_header *request = (const void *)text;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fuse_fd, text, sizeof(text)) > 0)
		if (request->opcode == FUSE_INIT)
			fuse_answer_init(fuse_fd, request);
		else if (request->opcode == FUSE_ACCESS)
			fuse_answer(fuse_fd, request, -ENOSYS, NULL, 0);
	_exit(0);
}

static bool enter_mute_root(const char *folder)
{
	int fuse_fd = fuse_mount(folder);

	if (fuse_fd < 0)
		return false;
	if (fork() == 0)
		serve_mute(fuse_fd);
	close(fuse_fd);
	return chroot(folder) == 0;
}

static void be_a_mute_target(int fd, void *argument)
{
	char byte = (char)!enter_mute_root(argument);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static int start_mute_target(struct stranger *target, const struct workshop *shop)
{
	char byte = 1;

	*target = stranger_start(be_a_mute_target, (void *)(uintptr_t)workshop_path(shop, "."));
	assert_int_equal(read(target->fd, &byte, 1), 1);
	if (byte == 0)
		return 0;
	stranger_end(target);
	print_message("no FUSE file system can be mounted here\n");
	return -ENOSYS;
}

/* With the target its file system ends, and so do those that wait for it. */
static void end_mute_target(struct stranger *target)
{
	stranger_end(target);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void a_root_that_never_answers_is_not_waited_for(void **state)
{
	const struct workshop *shop = *state;
	struct handed handed;
	struct stranger target;

	if (start_mute_target(&target, shop) != 0)
		skip();
	struct region region = open_lent("/dev/null");
	int library_fd = open_kind("/proc/self/exe");
	assert_int_equal(holder_start(&handed, target.pid, library_fd, &region, -1), -ETIMEDOUT);
	assert_int_equal(library_folder_start(&handed, target.pid, library_fd, &region, -1), -ETIMEDOUT);
	end_mute_target(&target);
	close(library_fd);
	region_close(&region);
}

/* The other end of cancel_fd is closed: they would wait, and are told not to. */
static void who_is_canceled_does_not_wait(void **state)
{
	const struct workshop *shop = *state;
	struct handed handed;
	struct stranger target;
	int cancel[2];

	if (start_mute_target(&target, shop) != 0)
		skip();
	struct region region = open_lent("/dev/null");
	int library_fd = open_kind("/proc/self/exe");
	assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
	close(cancel[1]);
	assert_int_equal(holder_start(&handed, target.pid, library_fd, &region, cancel[0]), -ECANCELED);
	assert_int_equal(
	    library_folder_start(&handed, target.pid, library_fd, &region, cancel[0]), -ECANCELED);
	end_mute_target(&target);
	close(cancel[0]);
	close(library_fd);
	region_close(&region);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_holder_holds_until_it_is_ended),
	    cmocka_unit_test(a_holder_that_does_not_end_is_left),
	    cmocka_unit_test_setup_teardown(a_holder_has_nothing_of_ours, workshop_open, workshop_close),
	    cmocka_unit_test_setup_teardown(
	        a_holder_that_is_stopped_is_killed, workshop_open, workshop_close),
	    cmocka_unit_test(nobody_looks_into_who_becomes_one_of_a_target),
	    cmocka_unit_test(root_lends_to_a_user_namespace_of_another_user),
	    cmocka_unit_test_setup_teardown(
	        a_root_that_never_answers_is_not_waited_for, workshop_open, workshop_close),
	    cmocka_unit_test_setup_teardown(who_is_canceled_does_not_wait, workshop_open, workshop_close),
	};

	if (argc > 1 && strcmp(argv[1], HOLDER_COMMAND) == 0)
		return be_a_holder(argc - 2, argv + 2);
	return cmocka_run_group_tests_name("holder", tests, NULL, NULL);
}
