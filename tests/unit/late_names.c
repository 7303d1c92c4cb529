/* SPDX-License-Identifier: Apache-2.0 */
/* A function that is made at run time, or a thread, has one name, whichever profile knows it. */
#include "pprof/analysis/late_names.h"
#include "pprof/analysis/filter.h"
#include "pprof/analysis/traces.h"
#include "pprof/model/profile.h"
#include "pprof/text/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Names of functions made at run time that a later snapshot has. */

enum { ADDRESS = 4096 };

/* With one location, number 1. */
static struct profile *profile_with(int pid, int64_t time_ns, const char *name, const char *file)
{
	struct profile *p = profile_new();
	const struct profile_function function = {.name = name};
	const struct profile_line line = {.function = profile_add_function(p, &function)};
	const struct profile_mapping mapping = {.start = ADDRESS, .limit = 2 * ADDRESS, .filename = file};
	const struct profile_location location = {
	    .address = ADDRESS, .mapping = profile_add_mapping(p, &mapping), .lines = &line, .line_count = 1};
	char comment[64];

	profile_add_comment(p, "heaptap 0.1.0");
	snprintf(comment, sizeof(comment), "pid=%d comm=java host=box", pid);
	profile_add_comment(p, comment);
	profile_add_comment(p, "session=1700000000000000000-42 start=1700000001000000000");
	profile_set_time(p, time_ns, 0);
	assert_int_equal(profile_add_location(p, &location), 1);
	return p;
}

static struct late_names names;

static void learn(int pid, int64_t time_ns, const char *name, const char *file)
{
	struct profile *p = profile_with(pid, time_ns, name, file);

	assert_int_equal(late_names_learn_code(&names, p), 0);
	profile_free(p);
}

/* What a snapshot that has this name there gets; "" nothing. */
static const char *found(int pid, const char *name, const char *file)
{
	static char text[64];
	struct profile *p = profile_with(pid, 1, name, file);
	const char *late = late_names_of_code(&names, p, late_names_process(p), 1);

	snprintf(text, sizeof(text), "%s", late ? late : "");
	profile_free(p);
	return text;
}

static void the_newest_name_counts(void **state)
{
	(void)state;
	learn(7, 1, "[jit]", "[anon:jit]");
	assert_string_equal(found(7, "[jit]", "[anon:jit]"), "");
	learn(7, 3, "Svc.keep", "[anon:jit]");
	learn(7, 2, "Interpreter", "[anon:jit]");
	assert_string_equal(found(7, "[jit]", "[anon:jit]"), "Svc.keep");
	late_names_fini(&names);
}

static void only_code_without_a_name_gets_one(void **state)
{
	(void)state;
	learn(7, 3, "Svc.keep", "[anon:jit]");
	assert_string_equal(found(7, "Svc.other", "[anon:jit]"), "");
	assert_string_equal(found(8, "[jit]", "[anon:jit]"), "");
	assert_string_equal(found(7, "[jit]", "/usr/lib/libc.so.6"), "");
	late_names_fini(&names);
	learn(7, 3, "malloc", "/usr/lib/libc.so.6");
	assert_string_equal(found(7, "[jit]", "[anon:jit]"), "");
	late_names_fini(&names);
}

/* A thread has one name, whichever profile knows it. */

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
	    cmocka_unit_test(the_newest_name_counts),
	    cmocka_unit_test(only_code_without_a_name_gets_one),
	    cmocka_unit_test(a_thread_is_one_row),
	    cmocka_unit_test(another_session_has_other_threads),
	    cmocka_unit_test(a_thread_is_selected_by_a_name_that_is_told_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
