/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
	threads_see(threads, getpid(), self);
	assert_string_equal(threads_name(threads, self), "threads");
	threads_call(threads, self, "another, and far too long");
	assert_string_equal(threads_name(threads, self), "another, and fa");
	threads_see(threads, getpid(), self);
	assert_string_equal(threads_name(threads, self), "another, and fa");
	threads_see(threads, getpid(), 0);
	assert_null(threads_name(threads, 0));
	threads_free(threads);
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
	    cmocka_unit_test(there_is_an_end_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
