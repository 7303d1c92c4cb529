/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/glob.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void globs_match_whole_texts(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
	    {"", "", true},
	    {"", "a", false},
	    {"*", "", true},
	    {"*", "/usr/bin/redis-server", true},
	    {"/usr/*", "/usr/sbin/nginx", true},
	    {"*/nginx", "/usr/sbin/nginx", true},
	    {"*/nginx", "/usr/sbin/nginx2", false},
	    {"nginx", "/usr/sbin/nginx", false},
	    {"*.service", "redis@a.service", true},
	    {"redis@?.service", "redis@a.service", true},
	    {"redis@?.service", "redis@.service", false},
	    {"[a-c]x", "bx", true},
	    {"[!a-c]x", "bx", false},
	    {"[!a-c]x", "dx", true},
	    {"[]]x", "]x", true},
	    {"[x", "[x", true},
	    {"\\*", "*", true},
	    {"\\*", "a", false},
	    {"a\\", "a\\", true},
	    {"*a*b*", "xxaxxbxx", true},
	    {"*a*b", "xxaxxbxx", false},
	    {"a**b", "ab", true},
	    {"*.*", "a", false},
	    {"[a-]", "-", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (glob_matches(cases[i].pattern, cases[i].text) != cases[i].matches)
			fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].text);
}

/* Against glibc's, on short words of few letters. */
static void it_agrees_with_fnmatch(void **state)
{
	static const char alphabet[] = "ab*?[]!-/", letters[] = "ab/-";
	uint64_t seed = 42;
	char pattern[8], text[8];

	for (int i = 0; i < 200000; i++) {
		size_t pattern_length, text_length;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		pattern_length = seed >> 60 & 7;
		text_length = seed >> 56 & 7;
		for (size_t j = 0; j < pattern_length; j++)
			pattern[j] = alphabet[(seed >> (3 * j)) % (sizeof(alphabet) - 1)];
		for (size_t j = 0; j < text_length; j++)
			text[j] = letters[seed >> (24 + 2 * j) & 3];
		pattern[pattern_length] = text[text_length] = '\0';
		/* glibc takes an unclosed bracket and ranges from a higher to a lower letter otherwise. */
		if (strchr(pattern, '['))
			continue;
		if (glob_matches(pattern, text) != (fnmatch(pattern, text, 0) == 0))
			fail_msg("'%s' and '%s'", pattern, text);
	}
}

/* fnmatch() would try all ways to divide the text. */
static void many_stars_take_no_time(void **state)
{
	char pattern[256] = "", text[4096];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 100; i++)
		strcat(pattern, "*a");
	strcat(pattern, "*b");
	for (int i = 0; i < 100; i++)
		assert_false(glob_matches(pattern, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(globs_match_whole_texts),
	    cmocka_unit_test(it_agrees_with_fnmatch),
	    cmocka_unit_test(many_stars_take_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
