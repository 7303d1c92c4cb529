/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of a service of several processes: between which moments it is measured, and how sure it is. */
#include "pprof/profile/origin.h"
#include "pprof/profile/profile.h"
#include "serve/api_view.h"
#include "serve/growth_moments.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PERIOD = 4096, NOW = 1000, NONE = GROWTH_MOMENTS_NO_STATE };

/* ---- moments */

static void the_first_is_when_all_are_known(void **state)
{
	static const int64_t early[] = {100, 200, 300, 400, NOW}, late[] = {150, 250, NOW};
	struct growth_moments_process both[] = {{.start_ns = 50, .times_ns = early, .count = 5, .runs = true},
	    {.start_ns = 90, .times_ns = late, .count = 3, .runs = true}};
	struct growth_moments moments;

	growth_moments_choose(&moments, both, 2);
	assert_int_equal(moments.count, 3);
	assert_int_equal(
	    moments.times_ns[0], 150); /* at 100 the second one ran, and nobody knows what it had */
	assert_int_equal(moments.times_ns[1], 400); /* of those between the nearest to the middle */
	assert_int_equal(moments.times_ns[2], NOW);
	assert_int_equal(growth_moments_state(&both[0], 150), 0);
	assert_int_equal(growth_moments_state(&both[1], 400), 1);
	assert_int_equal(growth_moments_state(&both[0], NOW), 4);
}

static void who_began_between_had_nothing(void **state)
{
	static const int64_t early[] = {100, 200, 900, NOW}, late[] = {600, NOW};
	struct growth_moments_process both[] = {{.start_ns = 50, .times_ns = early, .count = 4, .runs = true},
	    {.start_ns = 500, .times_ns = late, .count = 2, .runs = true}};
	struct growth_moments moments;

	growth_moments_choose(&moments, both, 2);
	assert_int_equal(moments.count, 3);
	assert_int_equal(moments.times_ns[0], 100);
	assert_int_equal(moments.times_ns[1], 600);
	assert_int_equal(growth_moments_state(&both[1], 100), NONE);
	assert_int_equal(growth_moments_state(&both[1], 600), 0);
}

/* Nothing is guessed of a process whose only state is the one that it has now, or of one without a start. */
static void what_is_not_known_is_no_beginning(void **state)
{
	static const int64_t early[] = {100, 200, NOW}, now[] = {NOW}, late[] = {150, NOW};
	struct growth_moments_process some[] = {{.start_ns = 50, .times_ns = early, .count = 3, .runs = true},
	    {.start_ns = 60, .times_ns = now, .count = 1, .runs = true}};
	struct growth_moments_process unknown[] = {
	    {.start_ns = 50, .times_ns = early, .count = 3, .runs = true},
	    {.start_ns = 0, .times_ns = late, .count = 2, .runs = true}};
	struct growth_moments moments;

	growth_moments_choose(&moments, some, 2);
	assert_int_equal(moments.count, 1);
	assert_int_equal(moments.times_ns[0], NOW);
	growth_moments_choose(&moments, unknown, 2);
	assert_int_equal(moments.times_ns[0], 150);
}

/* A service that was stopped: its processes ended one after the other. */
static void of_those_that_ended_the_last_that_lived_together(void **state)
{
	static const int64_t long_ago[] = {20, 40, 60}, one[] = {100, 200, 300, 310},
	                     other[] = {105, 205, 305, 350};
	static const int64_t lost[] = {
	    108, 208}; /* its sampler was killed: no end, and not the snapshot after */
	struct growth_moments_process all[] = {
	    {.start_ns = 10, .times_ns = long_ago, .count = 3, .over = true},
	    {.start_ns = 50, .times_ns = one, .count = 4, .over = true},
	    {.start_ns = 55, .times_ns = other, .count = 4, .over = true},
	    {.start_ns = 60, .times_ns = lost, .count = 2}};
	struct growth_moments moments;

	growth_moments_choose(&moments, all, 4);
	assert_int_equal(moments.count, 3);
	assert_int_equal(moments.times_ns[0], 108);
	assert_int_equal(moments.times_ns[2], 305);
	assert_true(all[0].left && !all[1].left && !all[2].left);
	assert_false(all[3].left);                               /* its next would have been due at 308 */
	assert_int_equal(growth_moments_state(&all[1], 305), 2); /* and not its end */
}

/* ---- what is added up */

/* A snapshot of a process: blocks of one period, allocated and in use by leak(), and in use by load(), which
 * the process has inherited from process `from` (0: from nobody). */
static struct profile *snapshot(int pid, int64_t seconds, int64_t leaked, int64_t loaded, int from)
{
	static const char *const names[] = {"leak", "load"};
	const struct profile_label inherited[] = {
	    {.key = "inherited", .str = "yes"}, {.key = ORIGIN_LABEL_FROM, .num = from, .unit = ""}};
	const int64_t blocks[][2] = {{leaked, leaked}, {from ? 0 : loaded, loaded}};
	struct profile *p = profile_new();
	char text[64];

	profile_add_sample_type(p, "alloc_objects", "count");
	profile_add_sample_type(p, "alloc_space", "bytes");
	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_default_sample_type(p, "inuse_space");
	profile_set_period(p, "space", "bytes", PERIOD);
	profile_set_time(p, seconds * 1000000000, 0);
	profile_add_comment(p, "heaptap 0.1.0");
	snprintf(text, sizeof(text), "pid=%d comm=server host=box", pid);
	profile_add_comment(p, text);
	snprintf(text, sizeof(text), "session=1-1 start=%d", pid);
	profile_add_comment(p, text);
	profile_add_comment(p, "snapshot: interval");
	for (size_t i = 0; i < 2; i++) {
		const struct profile_function function = {.name = names[i], .system_name = names[i]};
		const struct profile_line line = {.function = profile_add_function(p, &function)};
		const struct profile_location location = {
		    .address = (uintptr_t)names[i], .lines = &line, .line_count = 1};
		uint32_t id = profile_add_location(p, &location);
		const int64_t values[] = {
		    blocks[i][0], blocks[i][0] * PERIOD, blocks[i][1], blocks[i][1] * PERIOD};
		const size_t labels = i == 1 && from ? 2 : 0;

		assert_int_equal(profile_add_sample(p, &id, 1, values, inherited, labels), 0);
	}
	assert_int_equal(profile_error(p), 0);
	return p;
}

static const char *none(const void *context, const char *name)
{
	return NULL;
}

/* The answer's text, which the caller frees. */
static char *growth(struct profile **profiles, const size_t *columns, const size_t *owners, size_t count)
{
	const struct api_input input = {profiles, columns, count, 3, "server", owners};
	struct api_query query;
	char *text = NULL, error[256] = "";
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(api_query_parse(&query, none, NULL, error, sizeof(error)), 0);
	assert_int_equal(api_view_write(out, API_GROWTH, &query, &input, error, sizeof(error)), 0);
	api_query_fini(&query);
	fclose(out);
	for (size_t i = 0; i < count; i++)
		profile_free(profiles[i]);
	return text;
}

/* The number behind the first `"name":` that follows `after`. */
static double number(const char *text, const char *after, const char *name)
{
	const char *at = strstr(text, after);

	assert_non_null(at);
	at = strstr(at, name);
	assert_non_null(at);
	return strtod(at + strlen(name), NULL);
}

static void the_growth_of_processes_is_added_up(void **state)
{
	static const size_t columns[] = {0, 1, 1, 2, 2}, owners[] = {0, 0, 1, 0, 1};
	struct profile *profiles[] = {snapshot(1, 0, 100, 50, 0), snapshot(1, 1800, 400, 50, 0),
	    snapshot(2, 1800, 100, 0, 0), snapshot(1, 3600, 700, 50, 0), snapshot(2, 3600, 300, 0, 0)};
	char *text = growth(profiles, columns, owners, 5);

	assert_true(number(text, "\"total\"", "\"change\":") == 900.0 * PERIOD);
	assert_true(number(text, "\"total\"", "\"per_hour\":") == 900.0 * PERIOD);
	assert_true(number(text, "\"rows\"", "\"change\":") == 900.0 * PERIOD);
	assert_true(number(text, "{", "\"began_since\":") == 1);
	assert_non_null(strstr(text, "\"one_process\":false"));
	/* What was there before, load(), is not in the error. */
	assert_true(number(text, "\"total\"", "\"error\":") < 1.6 * PERIOD * 31);
	free(text);
}

/* Of another process there is a state in between: that is no growth. */
static void states_of_others_are_no_series(void **state)
{
	static const size_t columns[] = {0, 1, 2}, owners[] = {0, 0, 0};
	struct profile *profiles[] = {
	    snapshot(1, 0, 100, 50, 0), snapshot(2, 1800, 400, 50, 0), snapshot(1, 3600, 700, 50, 0)};
	char *text = growth(profiles, columns, owners, 3);

	assert_null(strstr(text, "\"total\""));
	assert_null(strstr(text, "\"name\":\"leak\""));
	free(text);
}

/* Two children free what they inherited, the same samples: their errors are the same too, and add up. */
static void the_error_of_what_is_inherited_counts_for_each(void **state)
{
	static const size_t columns[] = {0, 0, 0, 1, 1, 1, 2, 2, 2}, owners[] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
	struct profile *profiles[] = {snapshot(1, 0, 10, 400, 0), snapshot(2, 0, 10, 400, 1),
	    snapshot(3, 0, 10, 400, 1), snapshot(1, 1800, 10, 400, 0), snapshot(2, 1800, 10, 400, 1),
	    snapshot(3, 1800, 10, 400, 1), snapshot(1, 3600, 10, 400, 0), snapshot(2, 3600, 10, 0, 1),
	    snapshot(3, 3600, 10, 0, 1)};
	char *text = growth(profiles, columns, owners, 9);

	assert_true(number(text, "\"total\"", "\"change\":") == -800.0 * PERIOD);
	/* 400 samples have an error of 20 of them; two processes' together 40, not 28. */
	assert_true(number(text, "\"total\"", "\"error\":") >= 40.0 * PERIOD);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_first_is_when_all_are_known),
	    cmocka_unit_test(who_began_between_had_nothing),
	    cmocka_unit_test(what_is_not_known_is_no_beginning),
	    cmocka_unit_test(of_those_that_ended_the_last_that_lived_together),
	    cmocka_unit_test(the_growth_of_processes_is_added_up),
	    cmocka_unit_test(states_of_others_are_no_series),
	    cmocka_unit_test(the_error_of_what_is_inherited_counts_for_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
