/* SPDX-License-Identifier: Apache-2.0 */
/* How long a sampler that says nothing is waited for, and when the user is told. */
#include "sampler/session/silence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)

static void it_is_told_more_and_more_rarely(void **state)
{
	const uint64_t begin_ns = 5 * SECOND_NS, told_at[] = {4, 8, 16, 32};
	struct silence silence = {0};
	size_t told = 0;
	(void)state;
	for (uint64_t s = 0; s < 60; s++)
		if (silence_look(&silence, begin_ns + s * SECOND_NS) == SILENCE_TO_TELL) {
			assert_true(told < sizeof(told_at) / sizeof(told_at[0]));
			assert_int_equal(s, told_at[told]);
			told++;
		}
	assert_int_equal(told, sizeof(told_at) / sizeof(told_at[0]));
	assert_int_equal(silence_look(&silence, begin_ns + 60 * SECOND_NS), SILENCE_TOO_LONG);
}

static void who_says_something_is_waited_for(void **state)
{
	struct silence silence = {0};
	(void)state;
	for (uint64_t s = 1; s < 3600; s++) {
		silence_end(&silence, s * SECOND_NS);
		assert_int_equal(silence_look(&silence, (s + 1) * SECOND_NS), SILENCE_SHORT);
	}
	assert_int_equal(silence_look(&silence, 3603 * SECOND_NS), SILENCE_TO_TELL);
	silence_end(&silence, 3604 * SECOND_NS);
	assert_int_equal(silence_look(&silence, 3607 * SECOND_NS), SILENCE_SHORT);
	assert_int_equal(silence_look(&silence, 3608 * SECOND_NS), SILENCE_TO_TELL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_is_told_more_and_more_rarely),
	    cmocka_unit_test(who_says_something_is_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
