/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles added up: what becomes of their comments. */
#include "pprof/analysis/merge.h"
#include "pprof/model/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { COMMENTS = 600 };

static struct profile *profile_make(int first_comment)
{
	struct profile *p = profile_new();
	char text[32];

	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_period(p, "space", "bytes", 16384);
	for (int i = first_comment; i < first_comment + COMMENTS; i++) {
		snprintf(text, sizeof(text), "comment %d", i);
		profile_add_comment(p, text);
	}
	return p;
}

static size_t comments_of_sum(int first, int second)
{
	struct profile *profiles[] = {profile_make(first), profile_make(second)}, *sum;
	size_t culprit, count;

	assert_int_equal(merge_profiles(profiles, 2, false, &sum, &culprit), 0);
	count = profile_comment_count(sum);
	for (int i = 0; i < 2; i++)
		profile_free(profiles[i]);
	profile_free(sum);
	return count;
}

/* Not even where there are too many to look for each among all others. */
static void no_comment_is_lost(void **state)
{
	(void)state;
	assert_int_equal(comments_of_sum(0, COMMENTS), 2 * COMMENTS);
}

static void equal_comments_are_there_once(void **state)
{
	(void)state;
	assert_int_equal(comments_of_sum(0, 0), COMMENTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_comment_is_lost),
	    cmocka_unit_test(equal_comments_are_there_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
