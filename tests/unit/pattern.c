/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions, also those of a hostile file, and globs. */
#include "pprof/text/pattern.h"
#include "pprof/analysis/prune.h"
#include "pprof/model/profile.h"

#include <errno.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

/* Regular expressions over names: pprof's syntax, and what a hostile one may cost, with the frames that it
 * would remove. */

/* Of CPU time, so that a busy machine makes no difference: SIGPROF ends the test. */
static void patience(int seconds)
{
	const struct itimerval timer = {.it_value.tv_sec = seconds};

	assert_int_equal(setitimer(ITIMER_PROF, &timer, NULL), 0);
}

static void patience_begin(void)
{
	patience(60);
}

static void patience_end(void)
{
	patience(0);
}

/* RE2's syntax; and what an enemy writes costs little. */
static void patterns_are_those_of_pprof(void **unused)
{
	struct pattern *pattern;
	char error[256], text[4096];

	assert_int_equal(pattern_new("(?i)ab+|(?:c\\d)", 0, &pattern, error, sizeof(error)), 0);
	assert_true(pattern_matches(pattern, "xABBy"));
	assert_true(pattern_matches(pattern, "c7"));
	assert_false(pattern_matches(pattern, "cc"));
	pattern_free(pattern);
	assert_int_equal(pattern_new("a|ab", PATTERN_WHOLE, &pattern, error, sizeof(error)), 0);
	assert_true(pattern_matches(pattern, "ab"));
	assert_false(pattern_matches(pattern, "abc"));
	pattern_free(pattern);
	assert_int_equal(pattern_new("a(", 0, &pattern, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "not a regular expression"));
	assert_int_equal(
	    pattern_new("((((a{1,999}){1,999}){1,999}){1,999})", 0, &pattern, error, sizeof(error)), -EINVAL);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(pattern_new("(a*)*b", 0, &pattern, error, sizeof(error)), 0);
	assert_false(pattern_matches(pattern, text));
	pattern_free(pattern);
}

/* Nor do a million names that each cost as much as they may; names that cost little count for nothing. */
static void a_hostile_expression_is_given_up(void **unused)
{
	enum { NAMES = 1000000 };
	static const char above[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
	struct pattern *pattern;
	char error[256];

	patience_begin();
	assert_int_equal(pattern_new("(a|aa)+", PATTERN_WHOLE, &pattern, error, sizeof(error)), 0);
	for (int i = 0; i < 10000; i++)
		assert_false(pattern_matches(pattern, "b"));
	assert_true(pattern_matches(pattern, "aaa"));
	for (int i = 0; i < NAMES; i++)
		assert_false(pattern_matches(pattern, above));
	assert_false(pattern_matches(pattern, "aaa"));
	pattern_free(pattern);
	patience_end();
}

/* A step through a long text may look at all of it: there are fewer then. */
static void a_long_name_has_fewer_steps(void **unused)
{
	enum { LENGTH = 16 << 20, MEDIUM = 8 << 10 };
	char *text = malloc(LENGTH + 1), error[256];
	struct pattern *pattern;

	assert_non_null(text);
	memset(text, 'a', LENGTH);
	text[LENGTH] = '\0';
	patience_begin();
	assert_int_equal(pattern_new("(?:(?>a*)b|a)*", PATTERN_WHOLE, &pattern, error, sizeof(error)), 0);
	assert_false(pattern_matches(pattern, text));
	text[MEDIUM] = '\0';
	assert_true(pattern_matches(pattern, text));
	pattern_free(pattern);
	patience_end();
	free(text);
}

/* ---- frames that a profile drops */

/* Each match stays below the bound of one. */
static const char costly[] = "aaaaaaaaaaaaaaaaaaaab";

/* Of main, keeper, aaa and inner, from the root, beside so many functions that are called `other`. */
static struct profile *profile_dropping(const char *other, unsigned int count)
{
	static const char *const names[] = {"inner", "aaa", "keeper", "main"};
	static const int64_t value = 1;
	struct profile *p = profile_new();
	uint32_t stack[4];

	assert_non_null(p);
	profile_add_sample_type(p, "inuse_space", "bytes");
	for (uint32_t i = 0; i < 4; i++) {
		const struct profile_function function = {.name = names[i]};
		const struct profile_line line = {.function = profile_add_function(p, &function)};
		const struct profile_location location = {.address = i + 1, .lines = &line, .line_count = 1};

		stack[i] = profile_add_location(p, &location);
	}
	for (unsigned int i = 0; i < count; i++) {
		const struct profile_function function = {.name = other, .start_line = i + 1};

		profile_add_function(p, &function);
	}
	profile_add_sample(p, stack, 4, &value, NULL, 0);
	profile_set_drop_frames(p, "(a|aa)+");
	return p;
}

static size_t cut_of(const struct profile *p)
{
	const struct profile_sample sample = profile_sample(p, 0);
	struct prune prune;
	size_t cut;

	assert_int_equal(prune_init(&prune, p), 0);
	cut = prune_stack(&prune, &sample);
	prune_fini(&prune);
	return cut;
}

static void frames_are_dropped_with_what_they_called(void **unused)
{
	struct profile *p = profile_dropping("b", 100000);

	assert_int_equal(cut_of(p), 2);
	profile_free(p);
	p = profile_dropping(costly, 300);
	assert_int_equal(cut_of(p), 2);
	profile_free(p);
}

/* A million functions of that name would take ten minutes. */
static void a_hostile_expression_drops_nothing(void **unused)
{
	struct profile *p = profile_dropping(costly, 1000000);

	patience_begin();
	assert_int_equal(cut_of(p), 0);
	patience_end();
	profile_free(p);
}

/* After a hundred names above the bound of one match the expression would match nothing. */
static void the_costly_name_is_below_the_bound(void **unused)
{
	struct pattern *pattern;
	char error[256];

	assert_int_equal(pattern_new("(a|aa)+", PATTERN_WHOLE, &pattern, error, sizeof(error)), 0);
	for (int i = 0; i < 300; i++)
		assert_false(pattern_matches(pattern, costly));
	assert_true(pattern_matches(pattern, "aaa"));
	pattern_free(pattern);
}

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
		if (pattern_glob_matches(cases[i].pattern, cases[i].text) != cases[i].matches)
			fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].text);
}

/* Against glibc's, on short words of few letters. */
static void globs_agree_with_fnmatch(void **state)
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
		if (pattern_glob_matches(pattern, text) != (fnmatch(pattern, text, 0) == 0))
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
		assert_false(pattern_glob_matches(pattern, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(patterns_are_those_of_pprof),
	    cmocka_unit_test(a_hostile_expression_is_given_up),
	    cmocka_unit_test(a_long_name_has_fewer_steps),
	    cmocka_unit_test(frames_are_dropped_with_what_they_called),
	    cmocka_unit_test(the_costly_name_is_below_the_bound),
	    cmocka_unit_test(a_hostile_expression_drops_nothing),
	    cmocka_unit_test(globs_match_whole_texts),
	    cmocka_unit_test(globs_agree_with_fnmatch),
	    cmocka_unit_test(many_stars_take_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
