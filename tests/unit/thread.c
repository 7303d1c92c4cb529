/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* What the hook knows of the calling thread without asking the kernel: its id, and where its stack ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "preload/sample.h"
#include "preload/thread.h"
#include "proto/region.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void *is_known(void *argument)
{
	return (void *)(uintptr_t)(thread_tid() == own_tid());
}

static void *run(void *(*function)(void *), void *argument)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
	pthread_join(thread, &result);
	return result;
}

static void the_id_is_the_kernels(void **state)
{
	/* 0: the kernel must not be asked. */
	for (int asked = 0; asked < 2; asked++) {
		thread_open(asked ? own_tid() : 0, true);
		assert_int_equal(thread_tid(), own_tid());
		assert_non_null(run(is_known, NULL));
		pid_t pid = fork();
		if (pid == 0)
			_exit(thread_tid() == own_tid() && run(is_known, NULL) ? 0 : 1);
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void a_wrong_id_is_none(void **state)
{
	thread_open(own_tid() + 1, true);
	assert_int_equal(thread_tid(), 0);
	thread_open(own_tid(), true);
}

/* All of it can be read: one byte too many and the program would end here. */
__attribute__((no_sanitize("address"))) static uintptr_t read_stack(bool to_its_low_end)
{
	uintptr_t sum = 0, here = (uintptr_t)__builtin_frame_address(0);

	if (here < sample_thread.stack_low || here >= sample_thread.stack_top)
		return 0;
	for (uintptr_t at = here & ~(uintptr_t)7; at + 8 <= sample_thread.stack_top; at += 8)
		sum |= *(const volatile uintptr_t *)at;
	for (uintptr_t at = sample_thread.stack_low; to_its_low_end && at < here; at += 4096)
		sum |= *(const volatile unsigned char *)at;
	return sum | 1;
}

static void *stack_is_known(void *argument)
{
	return (void *)read_stack(true);
}

static void bounds_are_those_of_the_stack(void **state)
{
	static const size_t sizes[] = {128 << 10, 1 << 20, 8 << 20};

	thread_open(own_tid(), true);
	assert_true(read_stack(false)); /* the kernel makes it larger when it is used */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		pthread_attr_t attr;
		pthread_t thread;
		void *(*function)(void *) = stack_is_known, *argument = NULL, *result;

		pthread_attr_init(&attr);
		assert_int_equal(pthread_attr_setstacksize(&attr, sizes[i]), 0);
		assert_non_null(thread_creating(&attr, &function, &argument));
		assert_int_equal(pthread_create(&thread, &attr, function, argument), 0);
		pthread_join(thread, &result);
		assert_non_null(result);
		pthread_attr_destroy(&attr);
	}
}

/* Whether the bounds of a thread that ran before are right. Others may write the table, the region's. */
static void *find_low_end(void *argument)
{
	struct region_stack *table = argument;
	pthread_attr_t attr;
	void *low;
	size_t bytes;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &low, &bytes);
	pthread_attr_destroy(&attr);
	*table = (struct region_stack){(uintptr_t)low, (uintptr_t)low + bytes};
	thread_know_stacks(table, 1, own_tid());
	*table = (struct region_stack){1, UINT64_MAX};
	sample_thread.stack_low = sample_thread.stack_top = 0;
	thread_find_bounds();
	return (void *)(sample_thread.stack_low == (uintptr_t)low ? (uintptr_t)1 : 0);
}

static void a_table_that_is_changed_later_is_not_believed(void **state)
{
	struct region_stack table;

	assert_non_null(run(find_low_end, &table));
	thread_know_stacks(&table, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_id_is_the_kernels),
	    cmocka_unit_test(a_wrong_id_is_none),
	    cmocka_unit_test(bounds_are_those_of_the_stack),
	    cmocka_unit_test(a_table_that_is_changed_later_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
