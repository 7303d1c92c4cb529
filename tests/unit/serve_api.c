/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* The JSON API of `heaptap serve`, from decoded profiles: queries, views, points, growth, lists. */
#include "pprof/model/profile.h"
#include "serve/api_lists.h"
#include "serve/api_view.h"
#include "serve/request.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PERIOD = 4096 };

struct given {
	const char *names[8], *values[8];
};

static const struct given nothing;

static const char *get(const void *context, const char *name)
{
	const struct given *given = context;

	for (size_t i = 0; i < 8 && given->names[i]; i++)
		if (strcmp(given->names[i], name) == 0)
			return given->values[i];
	return NULL;
}

static int parse(struct api_query *query, const char *name, const char *value, char error[256])
{
	const struct given given = {{name}, {value}};

	error[0] = '\0';
	return api_query_parse(query, get, &given, error, 256);
}

/* A snapshot of one process: what each function has allocated and holds, in blocks of one period. */
static struct profile *snapshot(
    int64_t seconds, const char *const names[], const int64_t blocks[][2], size_t count)
{
	struct profile *p = profile_new();

	profile_add_sample_type(p, "alloc_objects", "count");
	profile_add_sample_type(p, "alloc_space", "bytes");
	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_default_sample_type(p, "inuse_space");
	profile_set_period(p, "space", "bytes", PERIOD);
	profile_set_time(p, seconds * 1000000000, 0);
	profile_add_comment(p, "heaptap 0.1.0");
	profile_add_comment(p, "pid=42 comm=server host=box");
	profile_add_comment(p, "session=1-1 start=2");
	profile_add_comment(p, "snapshot: interval");
	profile_add_comment(p, "rss: total=123456 heap=1 heap_error=1 (bytes; smaps, now)");
	for (size_t i = 0; i < count; i++) {
		const struct profile_function function = {.name = names[i], .system_name = names[i]};
		const struct profile_line line = {.function = profile_add_function(p, &function)};
		const struct profile_location location = {
		    .address = (uintptr_t)names[i], .lines = &line, .line_count = 1};
		uint32_t id = profile_add_location(p, &location);
		const int64_t values[] = {
		    blocks[i][0], blocks[i][0] * PERIOD, blocks[i][1], blocks[i][1] * PERIOD};

		assert_int_equal(profile_add_sample(p, &id, 1, values, NULL, 0), 0);
	}
	assert_int_equal(profile_error(p), 0);
	return p;
}

static const char *const both[] = {"cache", "leak"};

static struct profile *snapshot_at(int64_t seconds, int64_t leaked)
{
	const int64_t blocks[][2] = {{1000 + leaked, 1000}, {leaked, leaked}};

	return snapshot(seconds, both, blocks, 2);
}

/* The answer's text, which the caller frees; NULL with *err. */
static char *view(const char *which, struct profile *const *profiles, size_t count, bool series,
    const struct given *given, int *err, char error[256])
{
	struct api_input_profile given_profiles[8] = {{0}};
	const struct api_input input = {
	    .profiles = given_profiles, .count = count, .column_count = series ? count : 1, .title = ""};
	size_t bytes;
	struct api_query query;
	char *text = NULL;
	FILE *out = open_memstream(&text, &bytes);

	for (size_t i = 0; i < count; i++)
		given_profiles[i] =
		    (struct api_input_profile){.profile = profiles[i], .column = series ? i : 0};
	error[0] = '\0';
	assert_int_equal(api_query_parse(&query, get, given, error, 256), 0);
	*err = api_view_write(out, api_view_find(which), &query, &input, error, 256);
	api_query_fini(&query);
	fclose(out);
	return text;
}

/* Line breaks say nothing. */
static void contains(const char *text, const char *part)
{
	char *line = strdup(text), *to = line;

	for (const char *from = text; *from; from++)
		if (*from != '\n')
			*to++ = *from;
	*to = '\0';
	if (!strstr(line, part))
		fail_msg("no '%s' in %s", part, line);
	free(line);
}

static void queries_are_read_and_wrong_ones_named(void **state)
{
	static const char *const wrong[][3] = {
	    {"sort", "size", "sort: 'size' is not valid; allowed: inuse, "},
	    {"by", "line", "allowed: function, thread"}, {"rows", "0", "1 or more, or all"},
	    {"rows", "-1", "1 or more"}, {"threshold", "101", "0 to 100"}, {"threshold", "1x", "0 to 100"},
	    {"size", "9:1", "MIN:MAX"}, {"age", "5", "MIN:MAX"}, {"lines", "maybe", "1, 0, true, false"},
	    {"layout", "rings", "rows, columns"}, {"focus", "(", "focus: '(' is "}};
	struct api_query query;
	char error[256];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(parse(&query, wrong[i][0], wrong[i][1], error), -EINVAL);
		contains(error, wrong[i][2]);
		api_query_fini(&query);
	}
	assert_int_equal(parse(&query, "threshold", "0.5%", error), 0);
	assert_int_equal(query.threshold_permille, 5);
	assert_true(api_query_is_plain(&query));
	assert_int_equal(parse(&query, "lines", "", error), 0);
	assert_true(query.lines);
	assert_int_equal(parse(&query, "size", "64:4K", error), 0);
	assert_true(query.filter.by_size && query.filter.size_max == 4096.0 && !api_query_is_plain(&query));
	assert_int_equal(parse(&query, "focus", "", error), 0); /* as if it were not given */
	assert_null(query.filter.focus);
	api_query_fini(&query);
}

static void every_value_has_its_error(void **state)
{
	struct profile *p = snapshot_at(1000, 50);
	char error[256], *text;
	int err;

	text = view("top", &p, 1, false, &nothing, &err, error);
	assert_int_equal(err, 0);
	contains(text, "\"type\":\"inuse\"");
	contains(text, "{\"name\":\"cache\",\"file\":\"\",\"module\":\"\",\"flat\":4096000,\"error\":");
	contains(text, "\"cum_error\":");
	contains(text, "\"total\":{\"value\":4300800,\"error\":");
	free(text);
	text =
	    view("tree", &p, 1, false, &(struct given){{"sort", "threshold"}, {"alloc", "10"}}, &err, error);
	assert_int_equal(err, 0);
	contains(text, "\"type\":\"alloc\"");
	contains(text, "\"left_out\":1");
	assert_null(strstr(text, "\"name\":\"leak\""));
	free(text);
	text = view("leaks", &p, 1, false, &(struct given){{"focus"}, {"leak"}}, &err, error);
	assert_int_equal(err, 0);
	contains(text, "\"stacks\":1,\"objects\":50,\"value\":204800,\"error\":");
	free(text);
	text = view("tree", &p, 1, false, &(struct given){{"layout"}, {"columns"}}, &err, error);
	assert_int_equal(err, 0);
	contains(text, "\"nodes\":{\"frame\":[-1,0,1],\"parent\":[-1,0,0]}");
	contains(text, "\"value\":[4096000,204800]");
	free(text);
	profile_free(p);
}

static void a_difference_knows_chance(void **state)
{
	struct profile *pair[] = {snapshot_at(1000, 2), snapshot_at(4600, 500)};
	char error[256], *text;
	int err;

	text = view("diff", pair, 2, true, &nothing, &err, error);
	assert_int_equal(err, 0);
	contains(text, "\"same_process\":true");
	contains(text,
	    "{\"name\":\"leak\",\"file\":\"\",\"module\":\"\",\"flat\":2039808,\"base\":8192,\"new\":2048000,"
	    "\"mark\":\"\"");
	contains(text, "\"within_two_errors\":false,\"beyond_chance\":true");
	free(text);
	text = view("diff", pair, 1, true, &nothing, &err, error);
	assert_int_equal(err, -EINVAL);
	contains(error, "needs two profiles");
	free(text);
	profile_free(pair[0]);
	profile_free(pair[1]);
}

static void growth_has_its_beginning_and_its_rate(void **state)
{
	struct profile *series[] = {
	    snapshot_at(0, 10), snapshot_at(1200, 230), snapshot_at(2400, 470), snapshot_at(3600, 700)};
	char error[256], *text;
	int err;

	text = view("growth", series, 4, true, &nothing, &err, error);
	assert_int_equal(err, 0);
	contains(
	    text, "\"snapshots\":4,\"snapshots_least\":4,\"one_process\":true,\"series_ns\":3600000000000");
	contains(text,
	    "{\"name\":\"leak\",\"is_caller\":false,\"kind\":\"grows\",\"change\":2826240,\"change_error\":");
	contains(text, "\"since_ns\":0,\"until_ns\":3600000000000,\"per_hour\":28");
	assert_null(strstr(text, "\"name\":\"cache\",\"is_caller\""));
	free(text);
	text = view("growth", series, 3, true, &nothing, &err, error);
	assert_null(strstr(text, "\"total\""));
	free(text);
	for (size_t i = 0; i < 4; i++)
		profile_free(series[i]);
}

static void a_profile_is_a_point(void **state)
{
	struct profile *p = snapshot_at(1000, 50);
	struct api_query query;
	struct api_point point;
	char error[256];

	assert_int_equal(parse(&query, "focus", "leak", error), 0);
	assert_int_equal(api_facts_point(&point, p, &query), 0);
	assert_true(point.value == 204800.0 && point.known && point.error > 0);
	assert_true(point.rss_bytes == 123456 && point.time_ns == INT64_C(1000000000000));
	assert_string_equal(point.cause, "interval");
	api_query_fini(&query);
	assert_int_equal(parse(&query, "age", "1s:", error), 0);
	assert_int_equal(api_facts_point(&point, p, &query), -EINVAL); /* no sample has an age */
	profile_free(p);
}

static void lists_say_what_is_not_known(void **state)
{
	struct api_point points[200];
	struct api_process process = {.id = "f-1",
	    .pid = 7,
	    .program = "a\"b",
	    .name = "a\"b c",
	    .service = "",
	    .host = "",
	    .session = "",
	    .rss_bytes = -1,
	    .points = points,
	    .point_count = 200};
	const struct api_growth growth = {.per_hour = 10, .per_hour_error = 2};
	char *text = NULL;
	size_t bytes, shown = 0;
	FILE *out = open_memstream(&text, &bytes);

	for (size_t i = 0; i < 200; i++)
		points[i] = (struct api_point){.time_ns = (int64_t)i, .value = (double)i, .rss_bytes = -1};
	api_lists_write_processes(out, &process, 1, true, false);
	fclose(out);
	contains(text, "\"files\":true,\"samplers\":false,");
	contains(text, "\"program\":\"a\\\"b\",\"name\":\"a\\\"b c\"");
	contains(text, "\"inuse\":199,\"error\":null,\"rss\":null,\"growth_per_hour\":null,");
	for (const char *at = text; (at = strstr(at, "\"time_ns\":")); at++)
		shown++;
	assert_in_range(shown, 30, 66);
	contains(text, "\"time_ns\":199,\"inuse\":199,\"error\":null,\"samples\":null,\"rss\":null}]");
	free(text);
	out = open_memstream(&text, &bytes);
	process.growth = &growth;
	api_lists_write_timeline(out, &process, &(struct api_query){0});
	fclose(out);
	contains(text, "\"growth_per_hour\":10,\"growth_error\":2.0}");
	contains(text, "\"type\":\"inuse\",\"unit\":\"bytes\"");
	free(text);
}

/* ---- the description */

/* How often `wanted` is in the text before `end`. */
static size_t count_in(const char *text, const char *end, const char *wanted)
{
	size_t count = 0;

	while ((text = strstr(text, wanted)) && text < end) {
		count++;
		text += strlen(wanted);
	}
	return count;
}

static void check_description(const struct endpoint *endpoint, const char *text)
{
	static const char next[] = "\n    \"/", parameter[] = "#/components/parameters/";
	char wanted[128], words[512], *rest = words, *word;
	const char *begin, *end;
	size_t count = 0;

	snprintf(wanted, sizeof(wanted), "\n    \"%s\": {", endpoint->path + strlen("/api/v1"));
	begin = strstr(text, wanted);
	if (!begin)
		fail_msg("%s is not described", endpoint->path);
	end = strstr(begin + strlen(wanted), next);
	end = end ? end : strstr(begin, "\n  },");
	assert_int_equal(
	    count_in(begin, end, strcmp(endpoint->methods, "POST") == 0 ? "\"post\": {" : "\"get\": {"), 1);
	snprintf(words, sizeof(words), "%s", endpoint->parameters);
	while ((word = strsep(&rest, " "))) {
		if (!*word)
			continue;
		count++;
		snprintf(wanted, sizeof(wanted), "%s%s\"", parameter, word);
		if (count_in(begin, end, wanted) != 1)
			fail_msg("%s: %s is not described", endpoint->path, word);
	}
	assert_int_equal(count_in(begin, end, parameter), count);
}

/* openapi.json has the paths, methods and parameters of the table of endpoints, and no other. */
static void the_table_of_endpoints_is_described(void **state)
{
	const char *text = endpoint_openapi(), *paths = strstr(text, "\"paths\""),
	           *end = strstr(text, "\"components\"");
	size_t count, described = 0;
	const struct endpoint *endpoints = endpoint_all(&count);

	(void)state;
	contains(text, "\"openapi\": \"3.0.3\"");
	for (size_t i = 0; i < count; i++) {
		if (strncmp(endpoints[i].path, "/api/v1/", 8) != 0 || strchr(endpoints[i].path, '*'))
			continue;
		check_description(&endpoints[i], text);
		described++;
	}
	assert_int_equal(count_in(paths, end, "\n    \"/"), described);
}

static struct api_point point_of_sum(int64_t seconds, double value, double error, int64_t rss_bytes)
{
	return (struct api_point){.time_ns = seconds * 1000000000,
	    .value = value,
	    .error = error,
	    .known = true,
	    .rss_bytes = rss_bytes};
}

static void time_lines_are_added_up(void **state)
{
	/* The second starts at 20 and is known from 25 on; the first ends at 40, the third has no points. */
	static const struct api_sum_process processes[] = {
	    {INT64_C(1000000000), false}, {INT64_C(20000000000), true}, {INT64_C(20000000000), true}};
	struct api_sum_event events[] = {
	    {point_of_sum(50, 9, 2, 90), 1},
	    {point_of_sum(10, 1, 3, 10), 0},
	    {point_of_sum(40, 2, 3, 20), 0},
	    {point_of_sum(22, 1, 3, -1), 0},
	    {point_of_sum(25, 7, 4, 70), 1},
	};
	struct api_sum_input input = {events, 5, processes, 3, 0};
	struct api_point points[API_SUM_POINTS + 1];
	const double values[] = {1, 1, 8, 9, 9}, errors[] = {3, 3, 7, 7, 2};
	const int64_t rss[] = {10, -1, -1, 90, 90};
	const size_t missing[] = {0, 1, 0, 0, 0}, members[] = {1, 1, 2, 2, 1};
	size_t count;

	(void)state;
	assert_int_equal(api_lists_sum(&input, points, &count), 0);
	assert_int_equal(count, 5);
	for (size_t i = 0; i < count; i++) {
		assert_float_equal(points[i].value, values[i], 0);
		assert_float_equal(points[i].error, errors[i], 0);
		assert_int_equal(points[i].rss_bytes, rss[i]);
		assert_int_equal(points[i].missing, missing[i]);
		assert_int_equal(points[i].processes, members[i]);
	}
	/* Where older ones are left out, what was before their end is not said. */
	input.from_ns = INT64_C(25000000000);
	assert_int_equal(api_lists_sum(&input, points, &count), 0);
	assert_int_equal(count, 3);
	assert_float_equal(points[0].value, 8, 0);
	input.event_count = 0;
	assert_int_equal(api_lists_sum(&input, points, &count), 0);
	assert_int_equal(count, 0);
}

/* However many points there are: so many, and the last of them is the last. */
static void sums_of_time_lines_are_bounded(void **state)
{
	enum { EVENTS = 20000, MEMBERS = 7 };
	static struct api_sum_event events[EVENTS];
	static struct api_point points[API_SUM_POINTS + 1];
	const struct api_sum_process processes[MEMBERS] = {
	    {0, true}, {0, true}, {0, true}, {0, true}, {0, true}, {0, true}, {0, true}};
	const struct api_sum_input input = {events, EVENTS, processes, MEMBERS, 0};
	size_t count;

	(void)state;
	for (int i = 0; i < EVENTS; i++)
		events[i] = (struct api_sum_event){point_of_sum(1 + i * 3, 5, 1, 1), (size_t)i % MEMBERS};
	assert_int_equal(api_lists_sum(&input, points, &count), 0);
	assert_in_range(count, API_SUM_POINTS / 2, API_SUM_POINTS);
	assert_float_equal(points[count - 1].value, 5 * MEMBERS, 0);
	assert_true(points[count - 1].time_ns == INT64_C(1000000000) * (1 + (EVENTS - 1) * 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(time_lines_are_added_up),
	    cmocka_unit_test(sums_of_time_lines_are_bounded),
	    cmocka_unit_test(queries_are_read_and_wrong_ones_named),
	    cmocka_unit_test(every_value_has_its_error),
	    cmocka_unit_test(a_difference_knows_chance),
	    cmocka_unit_test(growth_has_its_beginning_and_its_rate),
	    cmocka_unit_test(a_profile_is_a_point),
	    cmocka_unit_test(lists_say_what_is_not_known),
	    cmocka_unit_test(the_table_of_endpoints_is_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
