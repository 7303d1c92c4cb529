/* SPDX-License-Identifier: Apache-2.0 */
/* A thread has one name, whichever profile knows it. */
#include "pprof/analysis/filter.h"
#include "pprof/analysis/traces.h"
#include "pprof/model/profile.h"
#include "pprof/text/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { TID = 77 };

static struct profile *profile_make(const char *session, int64_t time_ns, const char *name)
{
	const struct profile_label labels[] = {
	    {.key = "thread_id", .num = TID, .unit = ""}, {.key = "thread_name", .str = name ? name : ""}};
	const struct profile_location location = {.address = 1};
	const int64_t bytes = 100;
	struct profile *p = profile_new();
	char text[128];
	uint32_t id;

	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_period(p, "space", "bytes", 1);
	profile_set_time(p, time_ns, 0);
	profile_add_comment(p, "heaptap 0.1.0");
	snprintf(text, sizeof(text), "session=%s start=5", session);
	profile_add_comment(p, text);
	id = profile_add_location(p, &location);
	assert_int_equal(profile_add_sample(p, &id, 1, &bytes, labels, name ? 2 : 1), 0);
	return p;
}

static void rows_make(
    struct traces *t, const struct traces_options *options, struct profile **profiles, size_t count)
{
	assert_int_equal(traces_init(t, options, profiles[0], 1), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(traces_expect(t, profiles[i], 0), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(traces_add(t, profiles[i], 0), 0);
		profile_free(profiles[i]);
	}
	assert_int_equal(traces_finish(t), 0);
}

static const char *name_of(const struct traces *t, size_t row)
{
	return t->frames.rows[traces_stack(t, row)[0]].name;
}

/* The first knows no name yet, the newest one counts. */
static void a_thread_is_one_row(void **unused)
{
	const struct traces_options options = {.by = GROUP_THREAD};
	struct profile *profiles[] = {profile_make("1-1", 10, NULL), profile_make("1-1", 30, "worker"),
	    profile_make("1-1", 20, "worker"), profile_make("1-1", 40, NULL)};
	struct traces t;

	(void)unused;
	rows_make(&t, &options, profiles, 4);
	assert_int_equal(t.row_count, 1);
	assert_string_equal(name_of(&t, 0), "worker (77)");
	assert_int_equal(traces_value(&t, 0, 0, MEASURE_INUSE), 400);
	traces_fini(&t);
}

static void another_session_has_other_threads(void **unused)
{
	const struct traces_options options = {.by = GROUP_THREAD};
	struct profile *profiles[] = {profile_make("1-1", 10, "worker"), profile_make("2-1", 30, NULL)};
	struct traces t;

	(void)unused;
	rows_make(&t, &options, profiles, 2);
	assert_int_equal(t.row_count, 2);
	assert_string_equal(name_of(&t, 0), "worker (77)");
	assert_string_equal(name_of(&t, 1), "thread 77");
	traces_fini(&t);
}

static void a_thread_is_selected_by_a_name_that_is_told_elsewhere(void **unused)
{
	struct filter filter = {0};
	const struct traces_options options = {.filter = &filter};
	struct profile *profiles[] = {
	    profile_make("1-1", 10, NULL), profile_make("1-1", 30, "worker"), profile_make("2-1", 40, NULL)};
	char words[256];
	struct traces t;

	(void)unused;
	assert_int_equal(pattern_new("^work", 0, &filter.thread, words, sizeof(words)), 0);
	rows_make(&t, &options, profiles, 3);
	assert_int_equal(traces_value(&t, 0, 0, MEASURE_INUSE), 200);
	assert_int_equal(traces_all(&t, 0, MEASURE_INUSE), 300);
	traces_fini(&t);
	pattern_free(filter.thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_thread_is_one_row),
	    cmocka_unit_test(another_session_has_other_threads),
	    cmocka_unit_test(a_thread_is_selected_by_a_name_that_is_told_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
