/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that never answers, as a reader that never returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/text/clock.h"
#include "sampler/linux/memory_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct numbers {
	long given, pid;
	long descriptors_open;
	long filler[10000];
};

static int witness_fd;

static void answers(pid_t pid, void *result)
{
	struct numbers *numbers = result;

	numbers->given++;
	numbers->pid = pid;
	numbers->descriptors_open = fcntl(witness_fd, F_GETFD) >= 0;
	numbers->filler[9999] = 7;
}

static void hangs(pid_t pid, void *result)
{
	answers(pid, result);
	for (;;)
		pause();
}

/* As pages come from a slow disk: longer than any one may take, but one after the other. */
static void comes_in_parts(pid_t pid, void *result)
{
	const struct timespec part = {.tv_nsec = 60 * 1000 * 1000};

	for (int i = 0; i < 5; i++)
		nanosleep(&part, NULL);
	answers(pid, result);
}

static void compute(pid_t pid, void *result, uint64_t ms)
{
	while (clock_process_cpu_ns(getpid()) < ms * CLOCK_NS_PER_MS)
		;
	answers(pid, result);
}

static void computes_a_little(pid_t pid, void *result)
{
	compute(pid, result, 100);
}

/* Several times what it may; ahead of others, if it can, so that it is not given up for waiting so long. */
static void computes_for_long(pid_t pid, void *result)
{
	(void)setpriority(PRIO_PROCESS, 0, -15);
	compute(pid, result, 2000);
}

static void dies(pid_t pid, void *result)
{
	answers(pid, result);
	_exit(0);
}

static void what_the_child_finds_is_ours(void **state)
{
	struct numbers *numbers = calloc(1, sizeof(*numbers));

	(void)state;
	numbers->given = 5;
	assert_int_equal(memory_reader_run(answers, getpid(), numbers, sizeof(*numbers)), 0);
	assert_int_equal(numbers->given, 6);
	assert_int_equal(numbers->pid, getpid());
	assert_int_equal(numbers->filler[9999], 7);
	assert_int_equal(numbers->descriptors_open, 0);
	assert_int_equal(memory_reader_run(comes_in_parts, getpid(), numbers, sizeof(*numbers)), 0);
	assert_int_equal(numbers->given, 7);
	assert_int_equal(memory_reader_run(computes_a_little, getpid(), numbers, sizeof(*numbers)), 0);
	assert_int_equal(numbers->given, 8);
	free(numbers);
}

static void a_child_that_fails_leaves_nothing(void **state)
{
	struct numbers *numbers = calloc(1, sizeof(*numbers));

	(void)state;
	assert_int_equal(memory_reader_run(dies, getpid(), numbers, sizeof(*numbers)), -EIO);
	assert_int_equal(numbers->given, 0);
	assert_int_equal(memory_reader_run(answers, 0x7ffffffe, numbers, sizeof(*numbers)), -ENOENT);
	free(numbers);
}

static void who_hangs_is_not_read_again_for_a_while(void **state)
{
	struct numbers *numbers = calloc(1, sizeof(*numbers));

	(void)state;
	assert_int_equal(memory_reader_run(hangs, getpid(), numbers, sizeof(*numbers)), -ETIMEDOUT);
	assert_int_equal(memory_reader_run(answers, getpid(), numbers, sizeof(*numbers)), -EBUSY);
	assert_int_equal(numbers->given, 0);
	free(numbers);
}

/* In a process of its own, whose users have done nothing yet. */
static void who_computes_for_long_is_not_read_again_for_a_while(void **state)
{
	struct numbers *numbers = calloc(1, sizeof(*numbers));
	int status;

	(void)state;
	const pid_t child = fork();
	if (child == 0) {
		if (memory_reader_run(computes_for_long, getpid(), numbers, sizeof(*numbers)) != -ETIMEDOUT)
			_exit(1);
		_exit(memory_reader_run(answers, getpid(), numbers, sizeof(*numbers)) == -EBUSY ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	free(numbers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_the_child_finds_is_ours),
	    cmocka_unit_test(a_child_that_fails_leaves_nothing),
	    cmocka_unit_test(who_computes_for_long_is_not_read_again_for_a_while),
	    cmocka_unit_test(who_hangs_is_not_read_again_for_a_while),
	};

	witness_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
