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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_the_last_deleted_is_the_kernels),
	    cmocka_unit_test(a_deleted_program_keeps_its_name),
	    cmocka_unit_test(texts_are_cut_and_ended),
	    cmocka_unit_test(paths_that_do_not_fit_are_refused),
	    cmocka_unit_test(every_thread_is_visited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
