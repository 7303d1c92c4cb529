/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/threads.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void threads_are_known_by_name(void **state)
{
	struct threads *threads = threads_new();
	uint32_t self = (uint32_t)getpid();

	(void)state;
	assert_null(threads_name(NULL, 1));
	assert_null(threads_name(threads, self));
	threads_read(threads, getpid());
	assert_string_equal(threads_name(threads, self), "threads");
	assert_null(threads_name(threads, 0));
	threads_read(threads, 0); /* nobody: nothing is forgotten */
	assert_non_null(threads_name(threads, self));
	threads_free(threads);
}

static void a_sample_names_its_thread_once(void **state)
{
	struct threads *threads = threads_new();
	uint32_t self = (uint32_t)getpid();

	(void)state;
	threads_see(threads, getpid(), self, false);
	assert_string_equal(threads_name(threads, self), "threads");
	threads_call(threads, self, "another, and far too long");
	assert_string_equal(threads_name(threads, self), "another, and fa");
	threads_see(threads, getpid(), self, false);
	assert_string_equal(threads_name(threads, self), "another, and fa");
	threads_see(threads, getpid(), 0, false);
	assert_null(threads_name(threads, 0));
	threads_free(threads);
}

static void *wait_for_byte(void *fd)
{
	char byte;

	return (void *)read(*(int *)fd, &byte, 1);
}

/* A thread begins with its creator's name. If it ends before it could name itself, that name is not its own.
 * */
static void a_creators_name_counts_only_later(void **state)
{
	int fds[2];
	pthread_t thread;
	uint32_t number = 0;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_byte, &fds[0]), 0);
	DIR *folder = opendir("/proc/self/task");
	for (const struct dirent *entry; (entry = readdir(folder));)
		if (atoi(entry->d_name) != getpid() && atoi(entry->d_name) > 0)
			number = (uint32_t)atoi(entry->d_name);
	closedir(folder);
	struct threads *seen = threads_new(), *told = threads_new();
	threads_see(seen, getpid(), number, false);
	assert_null(threads_name(seen, number));
	threads_see(told, getpid(), number, true); /* a record would have told of another name */
	assert_string_equal(threads_name(told, number), "threads");

	pthread_setname_np(thread, "worker");
	for (int i = 0; i < 100000 && !threads_name(seen, number); i++)
		threads_see(seen, getpid(), number, false);
	assert_string_equal(threads_name(seen, number), "worker");
	assert_int_equal(write(fds[1], "", 1), 1);
	pthread_join(thread, NULL);
	threads_free(seen);
	threads_free(told);
	close(fds[0]);
	close(fds[1]);
}

static void there_is_an_end_to_it(void **state)
{
	struct threads *threads = threads_new();

	(void)state;
	for (uint32_t tid = 1; tid <= 5000; tid++)
		threads_call(threads, tid * 7, "x");
	assert_string_equal(threads_name(threads, 7), "x");
	assert_null(threads_name(threads, 5000 * 7));
	threads_free(threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(threads_are_known_by_name),
	    cmocka_unit_test(a_sample_names_its_thread_once),
	    cmocka_unit_test(a_creators_name_counts_only_later),
	    cmocka_unit_test(there_is_an_end_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
