/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one thread changes without the lock is what several change with it.
 */
#include "preload/one_thread.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/time.h>

#include <cmocka.h>

enum { WORKERS = 4, ROUNDS = 200000 };

static volatile char alone;
static _Atomic uint64_t sum, bits, drawn;
static _Atomic uint32_t small;
static _Atomic uint8_t byte;

static int begin(void **state)
{
	(void)state;
	one_thread_word = &alone;
	sum = bits = drawn = small = byte = 0;
	return 0;
}

static void check_values(void **state)
{
	(void)state;
	for (alone = 0; alone < 2; alone++) {
		uint64_t old = 8;
		uint8_t old_byte = 0;

		sum = 7;
		small = 5;
		byte = 0;
		one_thread_add(&sum, 3);
		one_thread_add(&sum, -UINT64_C(1));
		assert_int_equal(sum, 9);
		assert_int_equal(one_thread_fetch_add(&sum, 1ull << 40), 9);
		assert_int_equal(sum, 9 + (1ull << 40));
		one_thread_add32(&small, UINT32_MAX);
		assert_int_equal(small, 4);
		assert_false(one_thread_exchange64(&sum, &old, 1));
		assert_int_equal(old, 9 + (1ull << 40));
		assert_true(one_thread_exchange64(&sum, &old, 1));
		assert_int_equal(sum, 1);
		assert_true(one_thread_exchange8(&byte, &old_byte, 255));
		old_byte = 0;
		assert_false(one_thread_exchange8(&byte, &old_byte, 1));
		assert_int_equal(old_byte, 255);
	}
}

static void change(void)
{
	uint64_t old = atomic_load(&bits);
	uint8_t count = atomic_load(&byte);

	one_thread_add(&sum, 3);
	one_thread_fetch_add(&drawn, 1);
	one_thread_add32(&small, 1);
	while (!one_thread_exchange64(&bits, &old, old + 5))
		;
	while (!one_thread_exchange8(&byte, &count, (uint8_t)(count + 1)))
		;
}

static void check_sums(uint64_t changes)
{
	assert_int_equal(sum, 3 * changes);
	assert_int_equal(drawn, changes);
	assert_int_equal(small, changes);
	assert_int_equal(bits, 5 * changes);
	assert_int_equal(byte, changes & 255);
}

static void *work(void *argument)
{
	for (int i = 0; i < ROUNDS; i++)
		change();
	return argument;
}

static void check_threads(void **state)
{
	(void)state;
	pthread_t workers[WORKERS];
	alone = 0;
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&workers[i], NULL, work, NULL), 0);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	check_sums(WORKERS * ROUNDS);
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	change();
	signals++;
}

/* A handler comes between two instructions, never into one. */
static void check_signals(void **state)
{
	(void)state;
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_signal};
	uint64_t changes = 0;
	alone = 1;
	signals = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; signals < 200; changes++)
		change();
	setitimer(ITIMER_REAL, &never, NULL);
	check_sums(changes + (uint64_t)signals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(check_values, begin),
	    cmocka_unit_test_setup(check_threads, begin),
	    cmocka_unit_test_setup(check_signals, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
