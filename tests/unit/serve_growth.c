/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of a service of several processes: what is added up, and how sure it is. */
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "serve/api_view.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PERIOD = 4096 };

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
static char *growth(
    struct profile **profiles, const size_t *columns, const size_t *owners, const bool *ended, size_t count)
{
	struct api_input_profile given[16];
	const struct api_input input = {given, count, columns[count - 1] + 1, "server"};
	struct api_query query;
	char *text = NULL, error[256] = "";
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_true(count <= sizeof(given) / sizeof(given[0]));
	for (size_t i = 0; i < count; i++)
		given[i] = (struct api_input_profile){
		    profiles[i], columns[i], owners ? owners[i] : 0, ended && ended[i]};
	assert_int_equal(api_query_parse(&query, none, NULL, error, sizeof(error)), 0);
	assert_int_equal(
	    api_view_write(out, api_view_find("growth"), &query, &input, error, sizeof(error)), 0);
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
	static const size_t columns[] = {0, 1, 1, 2, 2, 3, 3}, owners[] = {0, 0, 1, 0, 1, 0, 1};
	struct profile *profiles[] = {snapshot(1, 0, 100, 50, 0), snapshot(1, 1200, 300, 50, 0),
	    snapshot(2, 1200, 100, 0, 0), snapshot(1, 2400, 500, 50, 0), snapshot(2, 2400, 200, 0, 0),
	    snapshot(1, 3600, 700, 50, 0), snapshot(2, 3600, 300, 0, 0)};
	char *text = growth(profiles, columns, owners, NULL, 7);

	assert_true(number(text, "\"total\"", "\"difference\":") == 900.0 * PERIOD);
	assert_true(number(text, "\"total\"", "\"change\":") == 900.0 * PERIOD);
	assert_true(fabs(number(text, "\"total\"", "\"per_hour\":") - 900.0 * PERIOD) < 1);
	assert_true(number(text, "\"rows\"", "\"change\":") == 900.0 * PERIOD);
	assert_true(number(text, "{", "\"began_since\":") == 1);
	assert_non_null(strstr(text, "\"one_process\":false"));
	/* What was there before, load(), is not in the error. */
	assert_true(number(text, "\"total\"", "\"difference_error\":") < 1.6 * PERIOD * 31);
	free(text);
}

/* A worker ends and another takes its place: what the first had is given back, and nothing has grown. */
static void a_worker_that_is_replaced_is_no_growth(void **state)
{
	static const size_t columns[] = {0, 1, 2, 2, 3, 3, 4, 4}, owners[] = {0, 0, 0, 1, 0, 1, 0, 1};
	static const bool ended[] = {false, false, true, false, true, false, true, false};
	struct profile *profiles[] = {snapshot(1, 0, 300, 0, 0), snapshot(1, 900, 300, 0, 0),
	    snapshot(1, 900, 300, 0, 0), snapshot(2, 1800, 290, 0, 0), snapshot(1, 900, 300, 0, 0),
	    snapshot(2, 2700, 300, 0, 0), snapshot(1, 900, 300, 0, 0), snapshot(2, 3600, 300, 0, 0)};
	char *text = growth(profiles, columns, owners, ended, 8);

	assert_true(number(text, "\"total\"", "\"difference\":") == 0);
	assert_null(strstr(text, "\"kind\":\"grows\""));
	free(text);
}

/* Of another process there is a state in between: that is no growth. */
static void states_of_others_are_no_series(void **state)
{
	static const size_t columns[] = {0, 1, 2, 3}, owners[] = {0, 0, 0, 0};
	struct profile *profiles[] = {snapshot(1, 0, 100, 50, 0), snapshot(2, 1200, 300, 50, 0),
	    snapshot(1, 2400, 500, 50, 0), snapshot(1, 3600, 700, 50, 0)};
	char *text = growth(profiles, columns, owners, NULL, 4);

	assert_null(strstr(text, "\"total\""));
	assert_null(strstr(text, "\"name\":\"leak\""));
	free(text);
}

/* Two children free what they inherited, the same samples: their errors are the same too, and add up. */
static void the_error_of_what_is_inherited_counts_for_each(void **state)
{
	static const size_t columns[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3},
	                    owners[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
	struct profile *profiles[] = {snapshot(1, 0, 10, 400, 0), snapshot(2, 0, 10, 400, 1),
	    snapshot(3, 0, 10, 400, 1), snapshot(1, 1200, 10, 400, 0), snapshot(2, 1200, 10, 400, 1),
	    snapshot(3, 1200, 10, 400, 1), snapshot(1, 2400, 10, 400, 0), snapshot(2, 2400, 10, 400, 1),
	    snapshot(3, 2400, 10, 400, 1), snapshot(1, 3600, 10, 400, 0), snapshot(2, 3600, 10, 0, 1),
	    snapshot(3, 3600, 10, 0, 1)};
	char *text = growth(profiles, columns, owners, NULL, 12);

	assert_true(number(text, "\"total\"", "\"difference\":") == -800.0 * PERIOD);
	/* 400 samples have an error of 20 of them; two processes' together 40, not 28. */
	assert_true(number(text, "\"total\"", "\"difference_error\":") >= 40.0 * PERIOD);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_growth_of_processes_is_added_up),
	    cmocka_unit_test(a_worker_that_is_replaced_is_no_growth),
	    cmocka_unit_test(states_of_others_are_no_series),
	    cmocka_unit_test(the_error_of_what_is_inherited_counts_for_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
