/* SPDX-License-Identifier: Apache-2.0 */
/* The guard over the sampler's own memory and CPU, which this process really uses. */
#include "sampler/cmd/record/session_state.h"
#include "sampler/core/own_resources.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1 << 20 };
#define SECOND_NS UINT64_C(1000000000)

static void resident_memory_is_what_was_touched(void **state)
{
	enum { BYTES = 64 * MIB };

	(void)state;
	uint64_t before = own_resources_rss_bytes();
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_true(own_resources_rss_bytes() < before + BYTES / 2); /* mapped is not resident */
	memset(memory, 1, BYTES);
	uint64_t after = own_resources_rss_bytes();
	assert_true(before > 0 && after >= before + BYTES - BYTES / 8);
	struct session_limits guard = {.rss_max_bytes = (before + after) / 2};
	assert_int_equal(session_look_at_load(&guard, 1 * SECOND_NS), SESSION_LOAD_MEMORY);
	assert_int_equal(session_look_at_load(&guard, 2 * SECOND_NS), SESSION_LOAD_MEMORY);
	munmap(memory, BYTES);
	assert_int_equal(session_look_at_load(&guard, 3 * SECOND_NS), SESSION_LOAD_FINE);
}

static void one_look_a_second(void **state)
{
	struct session_limits guard = {.rss_max_bytes = 1};

	(void)state;
	assert_int_equal(session_look_at_load(&guard, 5 * SECOND_NS), SESSION_LOAD_MEMORY);
	assert_int_equal(session_look_at_load(&guard, 5 * SECOND_NS + 1), SESSION_LOAD_FINE);
	assert_int_equal(session_look_at_load(&guard, 6 * SECOND_NS - 1), SESSION_LOAD_FINE);
	assert_int_equal(session_look_at_load(&guard, 6 * SECOND_NS), SESSION_LOAD_MEMORY);
}

static uint64_t cpu_ns(int whose)
{
	struct rusage usage;

	getrusage(whose, &usage);
	return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * SECOND_NS +
	    ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}

/* By the CPU's clock: however long that takes. */
static void burn(uint64_t ns)
{
	for (uint64_t until_ns = cpu_ns(RUSAGE_SELF) + ns; cpu_ns(RUSAGE_SELF) < until_ns;)
		;
}

/* Of the seconds that the guard is told have passed: 120 ms of CPU are 12 % of one, and 6 % of two. */
static void cpu_beyond_the_limit(void **state)
{
	struct session_limits guard = {.cpu_max_percent = 10};

	(void)state;
	burn(120000000);
	/* what was used before the first look is nobody's */
	assert_int_equal(session_look_at_load(&guard, 1 * SECOND_NS), SESSION_LOAD_FINE);
	burn(120000000);
	assert_int_equal(session_look_at_load(&guard, 2 * SECOND_NS), SESSION_LOAD_CPU);
	assert_int_equal(session_look_at_load(&guard, 3 * SECOND_NS), SESSION_LOAD_FINE);
	burn(120000000);
	assert_int_equal(session_look_at_load(&guard, 5 * SECOND_NS), SESSION_LOAD_FINE);
	struct session_limits unlimited = {0};
	assert_int_equal(session_look_at_load(&unlimited, 1 * SECOND_NS), SESSION_LOAD_FINE);
	burn(20000000);
	assert_int_equal(session_look_at_load(&unlimited, 1 * SECOND_NS + SECOND_NS), SESSION_LOAD_FINE);
}

/* No period makes them cheaper; whoever asks what heaptap takes is told of them. */
static void the_writers_children_are_not_the_periods_fault(void **state)
{
	struct session_limits guard = {.cpu_max_percent = 10};
	int status;

	(void)state;
	assert_int_equal(session_look_at_load(&guard, 100 * SECOND_NS), SESSION_LOAD_FINE);
	const uint64_t before_ns = own_resources_cpu_with_children_ns();
	pid_t pid = fork();
	if (pid == 0) {
		burn(150000000);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(session_look_at_load(&guard, 101 * SECOND_NS), SESSION_LOAD_FINE);
	assert_true(own_resources_cpu_with_children_ns() - before_ns >= 150000000);
}

/* In a child, for it is for good. */
static int begin_and_look(void)
{
	struct rlimit files = {.rlim_cur = 0};
	char score[16] = "";

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max / 2;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		return 1;
	own_resources_raise_limits();
	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur != files.rlim_max)
		return 2;
	raise(SIGXFSZ); /* would end us */
	int fd = open("/proc/self/oom_score_adj", O_RDWR);
	if (fd < 0 || read(fd, score, sizeof(score) - 1) < 1)
		return 3;
	/* If it is not what it should be, then because that is not permitted here. */
	return atoi(score) != -500 && pwrite(fd, "-500", 4, 0) == 4 ? 4 : 0;
}

static void all_descriptors_and_no_signal(void **state)
{
	int status;

	(void)state;
	pid_t pid = fork();
	if (pid == 0)
		_exit(begin_and_look());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(resident_memory_is_what_was_touched),
	    cmocka_unit_test(one_look_a_second),
	    cmocka_unit_test(cpu_beyond_the_limit),
	    cmocka_unit_test(the_writers_children_are_not_the_periods_fault),
	    cmocka_unit_test(all_descriptors_and_no_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
