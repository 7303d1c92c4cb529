/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pprof/text/utf8.h"

#define FFFD "\xef\xbf\xbd"

/* in, out; equal when valid. The broken ones are from the Unicode Standard's table 3-8 and RFC 3629's limits.
 */
static const struct {
	const char *in, *out;
} cases[] = {
    {"", ""},
    {"plain ascii, longer than a word", "plain ascii, longer than a word"},
    {"\xc2\x80", "\xc2\x80"},
    {"\xe0\xa0\x80", "\xe0\xa0\x80"},
    {"\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"},
    {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
    {"12345678\xc3\xa4", "12345678\xc3\xa4"},
    {"\x80", FFFD},
    {"\xc0\xaf", FFFD FFFD}, /* overlong / */
    {"\xc1\xbf", FFFD FFFD},
    {"\xe0\x9f\xbf", FFFD FFFD FFFD}, /* overlong */
    {"\xed\xa0\x80", FFFD FFFD FFFD}, /* a surrogate */
    {"\xf0\x8f\xbf\xbf", FFFD FFFD FFFD FFFD},
    {"\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD}, /* U+110000 */
    {"\xf5\x80", FFFD FFFD},
    {"\xff\xfe", FFFD FFFD},
    {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", FFFD FFFD FFFD FFFD "A"}, /* maximal subparts */
    {"\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", "a" FFFD FFFD FFFD "b" FFFD "c" FFFD FFFD "d"},
    {"cut \xf0\x9f\x98", "cut " FFFD},
    {"cut \xc3", "cut " FFFD},
};

static void the_longest_valid_prefix_is_found(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t len = strlen(cases[i].in), valid = utf8_valid_prefix(cases[i].in, len);

		if (strcmp(cases[i].in, cases[i].out)) {
			assert_true(valid < len);
			assert_memory_equal(cases[i].in, cases[i].out, valid);
		} else {
			assert_int_equal(valid, len);
		}
	}
}

static void broken_sequences_are_replaced(void **state)
{
	char out[UTF8_SANITIZED_MAX(64)];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t len = strlen(cases[i].in), written = utf8_sanitize(out, cases[i].in, len);

		assert_true(written <= UTF8_SANITIZED_MAX(len));
		assert_int_equal(written, strlen(cases[i].out));
		assert_memory_equal(out, cases[i].out, written);
		assert_int_equal(utf8_valid_prefix(out, written), written);
	}
}

static void nul_is_replaced(void **state)
{
	char out[16];

	assert_int_equal(utf8_sanitize(out, "a\0b", 3), 5);
	assert_memory_equal(out, "a" FFFD "b", 5);
}

static void characters_that_are_the_terminals_are_told(void **state)
{
	static const struct {
		const char *text;
		size_t control;
	} edges[] = {
	    {"", 0},
	    {"\x01", 1},
	    {"\x1f", 1},
	    {" ", 0},
	    {"~", 0},
	    {"\x7f", 1},
	    {"\xc2\x80", 2},
	    {"\xc2\x9f", 2},
	    {"\xc2\xa0", 0},
	    {"\xe2\x80\xa9", 0},
	    {"\xe2\x80\xaa", 3},
	    {"\xe2\x80\xae", 3},
	    {"\xe2\x80\xaf", 0},
	    {"\xe2\x81\xa5", 0},
	    {"\xe2\x81\xa6", 3},
	    {"\xe2\x81\xa9", 3},
	    {"\xe2\x81\xaa", 0},
	};
	char text[] = "\x1b[m \xc3\xbc \xc2\x9b \xe2\x80\xae \xff \xe2\x80";

	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		assert_int_equal(utf8_control(edges[i].text), edges[i].control);
	utf8_disarm(text, sizeof(text) - 1);
	assert_string_equal(text, "?[m \xc3\xbc ?? ??? ? ??");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_longest_valid_prefix_is_found),
	    cmocka_unit_test(broken_sequences_are_replaced),
	    cmocka_unit_test(nul_is_replaced),
	    cmocka_unit_test(characters_that_are_the_terminals_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
