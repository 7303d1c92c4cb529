/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds over the threads of a real process, this one, that creates threads while it is gone over. There
 * are no perf events here: `thread` only notes who was asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/perf/probe.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 64 };

struct seen {
	pid_t tids[THREADS_MAX];
	size_t count;
	/* what to create, when asked for the first time */
	size_t more;
	int answer; /* to everybody but the main thread */
};

static pthread_t threads[THREADS_MAX];
static size_t thread_count;
static pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun;

static size_t rounds;

/* Each round opens the list of threads once. */
DIR *opendir(const char *name) /* NOLINT */
{
	static DIR *(*real)(const char *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "opendir");
	rounds++;
	return real(name);
}

static void *wait_for_end(void *argument)
{
	pthread_barrier_wait(&begun);
	pthread_mutex_lock(&end);
	pthread_mutex_unlock(&end);
	return NULL;
}

/* Returns when it is in the kernel's list. */
static void create_thread(void)
{
	assert_int_equal(pthread_create(&threads[thread_count++], NULL, wait_for_end, NULL), 0);
	pthread_barrier_wait(&begun);
}

static int begin(void **state)
{
	thread_count = 0;
	pthread_barrier_init(&begun, NULL, 2);
	return pthread_mutex_lock(&end);
}

static int join_all(void **state)
{
	pthread_mutex_unlock(&end);
	while (thread_count > 0)
		pthread_join(threads[--thread_count], NULL);
	return pthread_barrier_destroy(&begun);
}

static int note(void *context, pid_t tid)
{
	struct seen *seen = context;

	assert_true(seen->count < THREADS_MAX);
	seen->tids[seen->count++] = tid;
	if (seen->more > 0) {
		seen->more--;
		create_thread();
	}
	return tid == getpid() ? 0 : seen->answer;
}

static ssize_t run(struct seen *seen, bool one_is_quiet)
{
	const struct probe_rounds wish = {
	    .pid = getpid(),
	    .rounds_max = 8,
	    .one_is_quiet = one_is_quiet,
	    .thread = note,
	    .context = seen,
	};

	rounds = 0;
	return probe_rounds_run(&wish);
}

static size_t times_asked(const struct seen *seen, pid_t tid)
{
	size_t times = 0;

	for (size_t i = 0; i < seen->count; i++)
		times += seen->tids[i] == tid;
	return times;
}

static void a_single_thread_may_be_enough(void **state)
{
	struct seen once = {0}, twice = {0};

	assert_int_equal(run(&once, true), 1);
	assert_int_equal(rounds, 1);
	assert_int_equal(run(&twice, false), 1);
	assert_int_equal(rounds, 2);
	assert_int_equal(times_asked(&twice, getpid()), 1);
}

/* Each new one is asked once, and makes another until there are no more: rounds go on until then. */
static void threads_that_come_meanwhile_are_found(void **state)
{
	struct seen seen = {.more = 20};

	assert_int_equal(run(&seen, true), 1 + 20);
	assert_int_equal(seen.count, 1 + 20);
	for (size_t i = 0; i < seen.count; i++)
		assert_int_equal(times_asked(&seen, seen.tids[i]), 1);
}

static void answers_decide(void **state)
{
	struct seen ended = {.answer = -ESRCH}, refused = {.answer = -EACCES};

	create_thread();
	/* One that has ended may have created others, but it is not asked again: it may be listed for long.
	 */
	assert_int_equal(run(&ended, false), 1);
	assert_int_equal(ended.count, 2);
	assert_int_equal(rounds, 2);
	assert_int_equal(run(&refused, false), -EACCES);
	assert_int_equal(rounds, 1);
}

static void a_process_that_is_not_there(void **state)
{
	struct seen seen = {0};
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	const struct probe_rounds wish = {.pid = child, .rounds_max = 8, .thread = note, .context = &seen};
	assert_int_equal(probe_rounds_run(&wish), -ESRCH);
	assert_int_equal(seen.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_single_thread_may_be_enough, begin, join_all),
	    cmocka_unit_test_setup_teardown(threads_that_come_meanwhile_are_found, begin, join_all),
	    cmocka_unit_test_setup_teardown(answers_decide, begin, join_all),
	    cmocka_unit_test(a_process_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
