/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/amount.h"
#include "pprof/model/estimate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void numbers_fit_their_columns(void **unused)
{
	static const struct {
		double value;
		bool bytes;
		const char *text;
	} cases[] = {
	    {0, true, "0 B"},
	    {1023, true, "1023 B"},
	    {1024, true, "1.0 KiB"},
	    {1048575, true, "1.0 MiB"},
	    {-5.5 * 1048576, true, "-5.5 MiB"},
	    {999999, false, "999999"},
	    {1e6, false, "1.0M"},
	    {9.2e18, true, "8.0 EiB"},
	    {9.2e18, false, "9.2E"},
	};
	static const struct {
		double value;
		const char *text;
	} times[] = {
	    {0, "0 ns"},
	    {999, "999 ns"},
	    {999950, "1.0 ms"},
	    {151515150, "151.5 ms"},
	    {-3.44e9, "-3.4 s"},
	    {99999.9e9, "99999.9 s"},
	    {1e5 * 1e9, "28 h"},
	    {-9.2e18, "-2555556 h"},
	};
	char text[AMOUNT_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(
		    (cases[i].bytes ? amount_bytes : amount_count)(cases[i].value, text), cases[i].text);
	assert_string_equal(amount_measure(1024, "bytes", text), "1.0 KiB");
	assert_string_equal(amount_measure(1500000, "count", text), "1.5M");
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		assert_string_equal(amount_measure(times[i].value, "nanoseconds", text), times[i].text);
	assert_string_equal(estimate_doubt(100, 10, 25, false, text), "+-5.0%");
	assert_string_equal(estimate_doubt(100, 4, 2500, false, text), "+-50%?");
	assert_string_equal(estimate_doubt(100, 1, 25, false, text), "+-5.0%"); /* a large block */
	assert_string_equal(estimate_doubt(100, 0.1, 1e12, false, text), "+->9999%?");
	assert_string_equal(estimate_doubt(100, 10, 0, false, text), "exact");
	assert_string_equal(estimate_doubt(100, 10, 25, true, text), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(numbers_fit_their_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
