/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook's clock in processes that may not read the time stamp counter. Each check is a process of its own,
 * which the kernel ends with SIGSEGV if the counter is read all the same.
 */
#include "preload/sample_clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { CANNOT_FORBID = 77, READS_ZERO = 1 };

static void forbid(void)
{
	if (syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV) != 0)
		_exit(CANNOT_FORBID);
}

/* Detached from, when it was noticed, and attached to again; with a filter nobody may ask. */
static void forbid_between(void)
{
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_ASK);
	sample_clock_avoid_counter();
	forbid();
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_UNKNOWN);
}

static void forbid_before(void)
{
	forbid();
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_ASK);
}

/* By whoever started it, under a filter: nobody may ask. */
static void forbid_under_filter(void)
{
	forbid();
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_UNKNOWN);
}

static void forbid_under_filter_before_offer(void)
{
	forbid();
	sample_clock_open(CLOCK_MONOTONIC_COARSE, CLOCK_UNKNOWN);
	sample_clock_choose(CLOCK_MONOTONIC);
}

/* An offer is opened with the coarse clock; the sampler that comes chooses the precise one. */
static void forbid_before_offer(void)
{
	forbid();
	sample_clock_open(CLOCK_MONOTONIC_COARSE, CLOCK_ASK);
	sample_clock_choose(CLOCK_MONOTONIC);
}

static void check(void (*open)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		open();
		_exit(sample_clock_read_ns() ? 0 : READS_ZERO);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_FORBID) {
		print_message("SKIPPED: the kernel forbids no time stamp counter here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void stays_forbidden(void **state)
{
	(void)state;
	check(forbid_between);
}

static void was_forbidden_before(void **state)
{
	(void)state;
	check(forbid_before);
}

static void was_forbidden_before_an_offer(void **state)
{
	(void)state;
	check(forbid_before_offer);
}

static void is_not_read_under_a_filter(void **state)
{
	(void)state;
	check(forbid_under_filter);
	check(forbid_under_filter_before_offer);
}

/* Therefore a program that glibc has started may read it, whatever filter there is (preload/attach.c). */
static void glibcs_loader_reads_it(void **state)
{
	int status;

	(void)state;
#if !defined(__x86_64__) || !defined(__GLIBC__)
	skip();
#endif
	pid_t child = fork();
	if (child == 0) {
		forbid();
		execl("/proc/self/exe", "clock", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_FORBID) {
		print_message("SKIPPED: the kernel forbids no time stamp counter here\n");
		skip();
	}
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void precise_if_it_was_just_read(void **state)
{
	(void)state;
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_READ);
	assert_int_equal(sample_clock_chosen(), CLOCK_MONOTONIC);
	assert_true(sample_clock_read_ns() != 0);
}

static void precise_otherwise(void **state)
{
	struct timespec before, after;

	(void)state;
	for (int i = 0; i < 3; i++) { /* the coarse clock is behind, but for the moment of a tick */
		sample_clock_open(CLOCK_MONOTONIC, CLOCK_ASK);
		assert_int_equal(sample_clock_chosen(), CLOCK_MONOTONIC);
		clock_gettime(CLOCK_MONOTONIC, &before);
		uint64_t now = sample_clock_read_ns();
		clock_gettime(CLOCK_MONOTONIC, &after);
		assert_true(now >= (uint64_t)before.tv_sec * 1000000000 + (uint64_t)before.tv_nsec);
		assert_true(now <= (uint64_t)after.tv_sec * 1000000000 + (uint64_t)after.tv_nsec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(stays_forbidden),
	    cmocka_unit_test(was_forbidden_before),
	    cmocka_unit_test(was_forbidden_before_an_offer),
	    cmocka_unit_test(is_not_read_under_a_filter),
	    cmocka_unit_test(glibcs_loader_reads_it),
	    cmocka_unit_test(precise_if_it_was_just_read),
	    cmocka_unit_test(precise_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
