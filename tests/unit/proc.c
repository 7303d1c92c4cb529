/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/stranger.h"

static void only_the_last_deleted_is_the_kernels(void **state)
{
	static const struct {
		const char *path, *stripped;
	} cases[] = {
	    {"/x (deleted)/y (deleted)", "/x (deleted)/y"},
	    {"/x (deleted)", "/x"},
	    {"/x (deleted) (deleted)", "/x (deleted)"},
	    {"/x (deleted)/y", "/x (deleted)/y"},
	    {"/x(deleted)", "/x(deleted)"},
	    {" (deleted)", " (deleted)"},
	    {"", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s", cases[i].path);
		assert_int_equal(proc_undeleted_length(path), strlen(cases[i].stripped));
		assert_int_equal(proc_strip_deleted(path), strcmp(cases[i].stripped, cases[i].path) != 0);
		assert_string_equal(path, cases[i].stripped);
	}
}

/* The kernel's own words, of a program that was deleted and whose folder is called so too. */
static void a_deleted_program_keeps_its_name(void **state)
{
	char folder[] = "/tmp/heaptap-proc-XXXXXX", inner[64], program[96], exe[PATH_MAX];
	char command[256];
	int ready[2], status;

	assert_non_null(mkdtemp(folder));
	snprintf(inner, sizeof(inner), "%s/x (deleted)", folder);
	snprintf(program, sizeof(program), "%s/y", inner);
	snprintf(command, sizeof(command), "mkdir '%s' && cp /bin/sleep '%s'", inner, program);
	assert_int_equal(system(command), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails */
		execl(program, program, "1000", NULL);
		_exit(127);
	}
	/* Its end is closed by the exec. */
	close(ready[1]);
	assert_int_equal(read(ready[0], exe, 1), 0);
	close(ready[0]);
	assert_int_equal(unlink(program), 0);
	assert_int_equal(proc_read_exe(child, exe, sizeof(exe)), strlen(program) + strlen(" (deleted)"));
	assert_true(proc_strip_deleted(exe));
	assert_string_equal(exe, program);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(rmdir(folder), 0);
	assert_true(proc_read_exe(child, exe, sizeof(exe)) < 0);
	assert_string_equal(exe, "");
}

static void texts_are_cut_and_ended(void **state)
{
	char text[4096], few[8];
	ssize_t whole = proc_read(getpid(), "status", text, sizeof(text));

	assert_true(whole > 100);
	assert_int_equal(strlen(text), whole);
	assert_int_equal(proc_status_number(text, "\nPid:", 10, 0), getpid());
	assert_int_equal(proc_status_number(text, "\nNothing:", 10, 7), 7);
	assert_int_equal(proc_read(getpid(), "status", few, sizeof(few)), sizeof(few) - 1);
	assert_memory_equal(few, text, sizeof(few) - 1);
	assert_int_equal(few[sizeof(few) - 1], '\0');
	assert_int_equal(proc_read(getpid(), "there is no such file", few, sizeof(few)), -ENOENT);
	assert_string_equal(few, "");
}

static void paths_that_do_not_fit_are_refused(void **state)
{
	char path[20];

	assert_true(proc_root_path(path, sizeof(path), 1, "/lib/x"));
	assert_string_equal(path, "/proc/1/root/lib/x");
	assert_false(proc_root_path(path, sizeof(path), 1, "/lib/xyz"));
}

struct seen {
	pid_t tids[8];
	int count, stop_at;
};

static int see(void *context, pid_t tid)
{
	struct seen *seen = context;

	assert_true(seen->count < 8);
	seen->tids[seen->count++] = tid;
	return seen->count == seen->stop_at ? 42 : 0;
}

static int waiting[2];

static void *wait_for_end(void *tid)
{
	char byte;

	*(pid_t *)tid = (pid_t)syscall(SYS_gettid);
	assert_int_equal(write(waiting[1], "", 1), 1); /* the parent reads it: tid is set */
	assert_int_equal(read(waiting[1], &byte, 1), 1);
	return NULL;
}

static void every_thread_is_visited(void **state)
{
	struct seen seen = {.stop_at = -1}, first = {.stop_at = 1};
	pid_t tid = 0;
	pthread_t thread;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, waiting), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &tid), 0);
	assert_int_equal(read(waiting[0], &byte, 1), 1);
	assert_int_equal(proc_each_thread(getpid(), see, &seen), 0);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.tids[0], getpid());
	assert_int_equal(seen.tids[1], tid);
	assert_int_equal(proc_each_thread(getpid(), see, &first), 42);
	assert_int_equal(first.count, 1);
	assert_int_equal(write(waiting[0], "", 1), 1);
	pthread_join(thread, NULL);
	close(waiting[0]);
	close(waiting[1]);
	assert_int_equal(proc_each_thread(-1, see, &seen), -ENOENT);
}

static void move_mounts(int fd, void *argument)
{
	char byte = unshare(CLONE_NEWNS) == 0 ? 'y' : 'x';

	(void)argument;
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static void move_root(int fd, void *argument)
{
	char byte = chroot("/proc") == 0 ? 'y' : 'x';

	(void)argument;
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static void paths_are_shared_by_who_has_our_mounts_and_root(void **state)
{
	void (*const moves[])(int, void *) = {move_mounts, move_root};
	struct stranger other = stranger_start(NULL, NULL);
	bool unmoved = false;
	char byte;

	(void)state;
	assert_true(proc_shares_paths(getpid()));
	assert_true(proc_shares_paths(other.pid));
	stranger_end(&other);
	assert_false(proc_shares_paths(-1));
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		other = stranger_start(moves[i], NULL);
		assert_int_equal(read(other.fd, &byte, 1), 1);
		assert_true(byte == 'x' || (byte == 'y' && !proc_shares_paths(other.pid)));
		unmoved = unmoved || byte == 'x';
		stranger_end(&other);
	}
	if (unmoved) {
		print_message("no mount namespaces or root folders can be made here\n");
		skip();
	}
}

static int status_of(pid_t child)
{
	int status;

	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status)
	                                                                             : EXIT_FAILURE;
}

/* As process 1, whose child has mounts of its own, as a service has them. */
static int status_of_a_service(void)
{
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("proc", "/proc", "proc", 0, NULL) != 0)
		return 'x';
	pid_t child = fork();
	if (child == 0)
		_exit(unshare(CLONE_NEWNS) != 0 ? 'x' : proc_shares_paths(1) ? 'y' : 'n');
	return status_of(child);
}

static void where_a_service_has_its_own_mounts_the_machines_are_those_of_process_1(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
			_exit('x');
		child = fork();
		_exit(child == 0 ? status_of_a_service() : status_of(child));
	}
	const int status = status_of(child);
	if (status == 'x') {
		print_message("no mount and pid namespaces can be made here\n");
		skip();
	}
	assert_int_equal(status, 'y');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_the_last_deleted_is_the_kernels),
	    cmocka_unit_test(a_deleted_program_keeps_its_name),
	    cmocka_unit_test(texts_are_cut_and_ended),
	    cmocka_unit_test(paths_that_do_not_fit_are_refused),
	    cmocka_unit_test(every_thread_is_visited),
	    cmocka_unit_test(paths_are_shared_by_who_has_our_mounts_and_root),
	    cmocka_unit_test(where_a_service_has_its_own_mounts_the_machines_are_those_of_process_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
