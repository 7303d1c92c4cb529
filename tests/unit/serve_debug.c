/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* /debug/pprof: what is asked, and what is made of profiles. */
#include "pprof/codec/decode.h"
#include "pprof/codec/encode.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/profile.h"
#include "serve/blob.h"
#include "serve/debug_answer.h"
#include "serve/debug_text.h"
#include "serve/difference.h"
#include "serve/endpoint.h"
#include "serve/metrics.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "200" or "400 what Go says". */
static void plan_of(const char *target, struct debug_plan *plan, char *said, size_t bytes)
{
	struct reply reply = {0};
	struct route route;
	const char *name;

	assert_int_equal(route_parse(&route, target), 0);
	name = strrchr(endpoint_find(&route)->path, '/') + 1;
	if (debug_answer_plan(plan, name, &route.parameters, &reply))
		snprintf(said, bytes, "200");
	else
		snprintf(said, bytes, "%u %.*s", reply.status, (int)reply.body->length - 1,
		    (const char *)reply.body->bytes);
	reply_fini(&reply);
	route_fini(&route);
}

static void requests_are_judged_as_go_judges_them(void **state)
{
	static const struct {
		const char *target, *said;
		enum debug_kind kind;
		uint32_t seconds;
		bool text;
	} cases[] = {
	    {"/debug/pprof/", "200", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap", "200", DEBUG_HEAP, 0, false},
	    {"/debug/pprof/heap?gc=1&debug=0", "200", DEBUG_HEAP, 0, false},
	    {"/debug/pprof/heap?debug=x", "200", DEBUG_HEAP, 0, false},
	    {"/debug/pprof/heap?debug=2", "200", DEBUG_HEAP, 0, true},
	    {"/debug/pprof/heap?debug=99999999999999999999", "200", DEBUG_HEAP, 0, true},
	    {"/debug/pprof/heap?seconds=", "200", DEBUG_HEAP, 0, false},
	    {"/debug/pprof/heap?seconds=5", "200", DEBUG_DIFFERENCE, 5, false},
	    {"/debug/pprof/heap?seconds=600", "200", DEBUG_DIFFERENCE, 600, false},
	    {"/debug/pprof/allocs?seconds=%2B5", "200", DEBUG_DIFFERENCE, 5, false},
	    {"/debug/pprof/heap?seconds=601", "400 profile duration exceeds server's WriteTimeout",
	        DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap?seconds=0", "400 invalid value for \"seconds\" - must be a positive integer",
	        DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap?seconds=1.5",
	        "400 invalid value for \"seconds\" - must be a positive integer", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap?seconds=9223372036854775808",
	        "400 invalid value for \"seconds\" - must be a positive integer", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap?seconds=5&debug=1", "400 seconds and debug params are incompatible",
	        DEBUG_INDEX, 0, false},
	    {"/debug/pprof/delta_heap?seconds=5",
	        "400 \"seconds\" parameter is not supported for this profile type", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/block?seconds=x", "404 Unknown profile", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/goroutine", "404 Unknown profile", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap/x", "404 Unknown profile", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/profile", "200", DEBUG_CPU, 30, false},
	    {"/debug/pprof/profile?seconds=-1", "200", DEBUG_CPU, 30, false},
	    {"/debug/pprof/profile?seconds=2&debug=1", "200", DEBUG_CPU, 2, false},
	    {"/debug/pprof/profile?seconds=99999999999999999999", "200", DEBUG_CPU, 30, false},
	    {"/debug/pprof/profile?seconds=601", "400 profile duration exceeds server's WriteTimeout",
	        DEBUG_INDEX, 0, false},
	    {"/debug/pprof/cmdline?seconds=x", "200", DEBUG_CMDLINE, 0, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct debug_plan plan = {0};
		char said[256];

		plan_of(cases[i].target, &plan, said, sizeof(said));
		assert_string_equal(said, cases[i].said);
		if (strcmp(said, "200") != 0)
			continue;
		assert_int_equal(plan.kind, cases[i].kind);
		assert_int_equal(plan.seconds, cases[i].seconds);
		assert_int_equal(plan.text, cases[i].text);
	}
}

/* Two stacks, f and g, each called by main; values of the four types. */
static struct profile *make(int64_t time_ns, const int64_t f[4], const int64_t g[4])
{
	static const char *const types[4][2] = {{"alloc_objects", "count"}, {"alloc_space", "bytes"},
	    {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
	struct profile *p = profile_new();
	uint32_t mapping, frames[3];

	for (size_t i = 0; i < 4; i++)
		profile_add_sample_type(p, types[i][0], types[i][1]);
	profile_set_default_sample_type(p, "inuse_space");
	profile_set_period(p, "space", "bytes", 1);
	profile_set_time(p, time_ns, 0);
	mapping = profile_add_mapping(p,
	    &(struct profile_mapping){
	        .start = 0x1000, .limit = 0x9000, .filename = "/bin/x", .build_id = ""});
	for (uint32_t i = 0; i < 3; i++) {
		static const char *const names[] = {"main", "f", "g"};
		const struct profile_function function = {names[i], names[i], "/x.c", 1};
		const struct profile_line line = {profile_add_function(p, &function), 10 + i, 0};
		const struct profile_location location = {
		    .mapping = mapping, .address = 0x2000 + 0x10 * i, .lines = &line, .line_count = 1};

		frames[i] = profile_add_location(p, &location);
	}
	if (f)
		profile_add_sample(p, (uint32_t[]){frames[1], frames[0]}, 2, f, NULL, 0);
	if (g)
		profile_add_sample(p, (uint32_t[]){frames[2], frames[0]}, 2, g, NULL, 0);
	assert_int_equal(profile_error(p), 0);
	return p;
}

static const int64_t *values_of(const struct profile *p, const char *function)
{
	for (size_t i = 0; i < profile_sample_count(p); i++) {
		struct profile_sample sample = profile_sample(p, i);
		struct profile_location leaf = profile_location(p, sample.locations[0]);

		if (strcmp(profile_function(p, leaf.lines[0].function).name, function) == 0)
			return sample.values;
	}
	return NULL;
}

static void assert_values(const struct profile *p, const char *function, const int64_t wanted[4])
{
	const int64_t *values = values_of(p, function);

	assert_non_null(values);
	for (int i = 0; i < 4; i++)
		assert_int_equal(values[i], wanted[i]);
}

static void a_difference_is_last_minus_first(void **state)
{
	struct profile *first = make(1000, (int64_t[]){5, 50, 3, 30}, NULL);
	struct profile *last = make(4000, (int64_t[]){9, 90, 1, 10}, (int64_t[]){2, 20, 2, 20}), *out;

	assert_int_equal(difference_make(first, last, false, false, &out), 0);
	assert_values(out, "f", (int64_t[]){4, 40, -2, -20});
	assert_values(out, "g", (int64_t[]){2, 20, 2, 20});
	assert_int_equal(profile_time_ns(out), 4000);
	assert_int_equal(profile_duration_ns(out), 3000);
	profile_free(out);
	assert_int_equal(difference_make(first, last, true, false, &out), 0);
	assert_values(out, "f", (int64_t[]){4, 40, 1, 10});
	profile_free(out);
	assert_int_equal(difference_make(NULL, last, true, false, &out), 0);
	assert_values(out, "f", (int64_t[]){9, 90, 1, 10});
	profile_free(out);
	assert_int_equal(difference_make(NULL, last, true, true, &out), 0);
	assert_values(out, "f", (int64_t[]){0, 0, 1, 10});
	assert_true(profile_duration_ns(out) > 0);
	profile_free(out);
	profile_free(first);
	profile_free(last);
}

/* A daemon that was started again knows no stack of what was freed before: no total falls by that. */
static void a_total_moves_to_another_stack(void **state)
{
	struct profile *first = make(1000, (int64_t[]){10, 100, 3, 30}, (int64_t[]){1, 10, 0, 0}),
	               *last = make(4000, (int64_t[]){4, 40, 3, 30}, (int64_t[]){9, 90, 0, 0}), *out;

	(void)state;
	assert_int_equal(difference_make(first, last, true, false, &out), 0);
	assert_values(out, "f", (int64_t[]){0, 0, 3, 30});
	assert_values(out, "g", (int64_t[]){2, 20, 0, 0});
	profile_free(out);
	/* Less than before, as of one who says less: nothing. */
	assert_int_equal(difference_make(last, first, true, false, &out), 0);
	assert_values(out, "f", (int64_t[]){0, 0, 3, 30});
	profile_free(out);
	profile_free(first);
	profile_free(last);
}

static char *text_of(bool (*write)(FILE *out, const struct profile *p), const struct profile *p)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_true(write(out, p));
	fclose(out);
	return text;
}

static void a_heap_as_text_is_what_gperftools_reads(void **state)
{
	struct profile *p = make(1, (int64_t[]){9, 90, 1, 10}, NULL);
	char *text = text_of(debug_text_write_heap, p);

	assert_string_equal(text,
	    "heap profile: 1: 10 [9: 90] @ heapprofile\n"
	    "1: 10 [9: 90] @ 0x2011 0x2001\n"
	    "#\t0x2010\tf\t/x.c:11\n#\t0x2000\tmain\t/x.c:10\n\n"
	    "MAPPED_LIBRARIES:\n1000-9000 r-xp 00000000 00:00 0 /bin/x\n");
	free(text);
	profile_free(p);
}

static void addresses_have_names(void **state)
{
	struct profile *p = make(1, NULL, (int64_t[]){1, 1, 1, 1});
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	/* as in the profile, a return address, decimal, unknown, nonsense, octal */
	assert_int_equal(debug_text_write_symbols(out, "0x2020+0x2001+8192+0x9+zz++0X2010+020020", p), 0);
	fclose(out);
	assert_string_equal(text, "num_symbols: 1\n0x2020 g\n0x2001 main\n0x2000 main\n0x2010 f\n0x2010 f\n");
	free(text);
	profile_free(p);
}

static void metrics_are_sums_by_service(void **state)
{
	struct control_loss lost[] = {{"full_ring", 3}};
	struct control_process a = {.inuse_bytes = 30,
	    .inuse_bytes_error = 3,
	    .alloc_bytes = 100,
	    .rss_bytes = 7,
	    .samples = 11,
	    .growth = {.kind = "grows", .bytes_per_hour = 7200, .bytes_per_hour_error = 3 * 3600},
	    .losses = lost,
	    .loss_count = 1};
	struct control_process b = a, c = a;
	struct metrics_process processes[] = {{"web", &a}, {"a\"b\\c\n", &c}, {"web", &b}};
	struct spool_list_row row = {.target = "one",
	    .counters = {.sent = 12,
	        .retried = 3,
	        .rejected = 2,
	        .dropped = 1,
	        .given_up = 7,
	        .passed_over = 8,
	        .resent = 4,
	        .denied = 9},
	    .bytes = 5000,
	    .count = 2,
	    .oldest_ns = INT64_C(1000000000)};
	const struct spool_list spools = {.rows = &row, .count = 1}, none = {0};
	struct counters *counters = counters_new();
	struct metrics metrics = {.processes = processes,
	    .process_count = 3,
	    .counters = counters,
	    .spools = &spools,
	    .now_ns = INT64_C(61000000000)};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	b.inuse_bytes_error = 4;
	b.growth.bytes_per_hour_error = 4 * 3600;
	c.inuse_bytes = NAN;
	c.growth = (struct control_growth){.kind = "", .bytes_per_hour = NAN, .bytes_per_hour_error = NAN};
	b.pid = 2;
	c.pid = 3;
	for (size_t i = 0; i < metrics.process_count; i++)
		counters_note(counters, processes[i].service, processes[i].listed, false, 1);
	assert_int_equal(metrics_write(out, &metrics), 0);
	fclose(out);
	assert_non_null(strstr(text, "\nheaptap_inuse_bytes{service_name=\"web\"} 60\n"));
	assert_non_null(strstr(text, "\nheaptap_inuse_bytes_stderr{service_name=\"web\"} 5\n"));
	assert_non_null(strstr(text, "\nheaptap_growth_bytes_per_second{service_name=\"web\"} 4\n"));
	assert_non_null(strstr(text, "\nheaptap_growth_bytes_per_second_stderr{service_name=\"web\"} 5\n"));
	assert_null(strstr(text, "growth_bytes_per_second{service_name=\"a"));
	assert_non_null(strstr(text, "\nheaptap_targets{service_name=\"web\"} 2\n"));
	assert_non_null(
	    strstr(text, "\nheaptap_lost_samples_total{service_name=\"web\",cause=\"full_ring\"} 6\n"));
	assert_non_null(strstr(text, "\nheaptap_samples_total{service_name=\"a\\\"b\\\\c\\n\"} 11\n"));
	assert_null(strstr(text, "inuse_bytes{service_name=\"a"));
	assert_non_null(strstr(text, "\nheaptap_push_sent_total{target=\"one\"} 12\n"));
	assert_non_null(strstr(text, "\nheaptap_push_retried_total{target=\"one\"} 3\n"));
	assert_non_null(strstr(text, "\nheaptap_push_rejected_total{target=\"one\"} 2\n"));
	assert_non_null(strstr(text, "\nheaptap_push_dropped_total{target=\"one\"} 1\n"));
	assert_non_null(strstr(text, "\nheaptap_push_given_up_total{target=\"one\"} 7\n"));
	assert_non_null(strstr(text, "\nheaptap_push_passed_over_total{target=\"one\"} 8\n"));
	assert_non_null(strstr(text, "\nheaptap_push_resent_total{target=\"one\"} 4\n"));
	assert_non_null(strstr(text, "\nheaptap_push_denied{target=\"one\"} 9\n"));
	assert_non_null(strstr(text, "\nheaptap_spool_bytes{target=\"one\"} 5000\n"));
	assert_non_null(strstr(text, "\nheaptap_spool_profiles{target=\"one\"} 2\n"));
	assert_non_null(strstr(text, "\nheaptap_spool_oldest_seconds{target=\"one\"} 60\n"));
	free(text);
	/* No target, no series. */
	metrics.spools = &none;
	out = open_memstream(&text, &length);
	assert_int_equal(metrics_write(out, &metrics), 0);
	fclose(out);
	assert_null(strstr(text, "heaptap_push"));
	free(text);
	counters_free(counters);
}

/* One step of time, in which a look may find anything. */
static uint64_t later(uint64_t *now_ns, uint64_t seconds)
{
	return *now_ns += seconds * UINT64_C(1000000000);
}

static void counters_never_fall(void **state)
{
	struct control_loss lost[] = {{"full_ring", 3}, {"no memory", 1}};
	struct control_process one = {.pid = 1, .since_unix_ns = 5, .alloc_bytes = 100, .samples = 10};
	struct control_process two = {
	    .pid = 2, .since_unix_ns = 6, .alloc_bytes = 50, .samples = 5, .losses = lost, .loss_count = 2};
	struct control_daemon sampler = {.pid = 9, .since_unix_ns = 1, .cpu_ns = 1000};
	struct counters *counters = counters_new();
	uint64_t now_ns = UINT64_C(1) << 50;

	(void)state;
	counters_note(counters, "web", &one, false, now_ns);
	counters_note(counters, "web", &two, false, now_ns);
	counters_note_sampler(counters, &sampler, now_ns);
	assert_float_equal(counters_of(counters, "web")->alloc_bytes, 150, 0);
	assert_null(counters_of(counters, "other"));
	/* One has ended. The other goes on, and its losses too. */
	two.alloc_bytes = 60;
	two.samples = 6;
	lost[0].count = 7;
	counters_note(counters, "web", &two, false, later(&now_ns, 5));
	counters_sweep(counters, now_ns);
	assert_float_equal(counters_of(counters, "web")->alloc_bytes, 160, 0);
	assert_int_equal(counters_of(counters, "web")->samples, 16);
	assert_int_equal(counters_of(counters, "web")->loss_count, 2);
	assert_int_equal(counters_of(counters, "web")->losses[0].count, 7);
	/* It had not ended: its sampler had not answered. It does not count twice. */
	counters_note(counters, "web", &one, false, later(&now_ns, 5));
	assert_float_equal(counters_of(counters, "web")->alloc_bytes, 160, 0);
	/* What says less than before is the same, by fewer words; what is not known is no 0. */
	one.alloc_bytes = 90;
	two.alloc_bytes = NAN;
	counters_note(counters, "web", &one, false, now_ns);
	counters_note(counters, "web", &two, false, now_ns);
	assert_float_equal(counters_of(counters, "web")->alloc_bytes, 160, 0);
	/* Another program of the same pid is another process. */
	one.since_unix_ns = 7;
	one.alloc_bytes = 1;
	counters_note(counters, "web", &one, false, now_ns);
	assert_float_equal(counters_of(counters, "web")->alloc_bytes, 161, 0);
	/* As its profiles have its start it is the same, whenever a daemon took it up. */
	one.start_unix_ns = 7;
	one.since_unix_ns = 1000;
	counters_note(counters, "web", &one, false, now_ns);
	assert_float_equal(counters_of(counters, "web")->alloc_bytes, 161, 0);
	/* Its service is renamed: to each what was its own. */
	one.alloc_bytes = 11;
	counters_note(counters, "new", &one, false, now_ns);
	assert_float_equal(counters_of(counters, "web")->alloc_bytes, 161, 0);
	assert_float_equal(counters_of(counters, "new")->alloc_bytes, 10, 0);
	/* All of them have been gone for long: nothing is remembered, but the CPU time. */
	later(&now_ns, 601);
	counters_sweep(counters, now_ns);
	assert_null(counters_of(counters, "web"));
	assert_null(counters_of(counters, "new"));
	sampler.since_unix_ns = 2;
	counters_note_sampler(counters, &sampler, now_ns);
	assert_int_equal(counters_cpu_ns(counters), 2000);
	counters_free(counters);
}

/* More processes than there is room for, again and again: those that are there count once. */
static void counters_are_bounded(void **state)
{
	struct control_process process = {.alloc_bytes = 1};
	struct counters *counters = counters_new();
	uint64_t now_ns = UINT64_C(1) << 50;

	(void)state;
	for (int look = 0; look < 3; look++) {
		process.since_unix_ns = look + 1;
		for (pid_t pid = 1; pid <= COUNTERS_PROCESSES_MAX + 10; pid++) {
			process.pid = pid;
			counters_note(counters, "web", &process, false, now_ns);
			counters_note(counters, "web", &process, false, now_ns);
		}
		later(&now_ns, 61);
	}
	assert_float_equal(counters_of(counters, "web")->alloc_bytes, 3.0 * COUNTERS_PROCESSES_MAX, 0);
	counters_free(counters);
}

/* However many profiles an answer is made of, they take no more memory than one may. */
static void profiles_of_an_answer_share_one_bound(void **state)
{
	static const int64_t some[4] = {1, 2, 3, 4};
	struct profile *profile = make(1, some, some), *kept[64];
	struct blob_budget budget = {.left_bytes = SIZE_MAX / 2};
	size_t length, one, count = 0;
	struct blob *blob;
	uint8_t *bytes;
	int err;

	(void)state;
	assert_int_equal(encode_profile(profile, &bytes, &length), 0);
	profile_free(profile);
	blob = blob_new(bytes, length);
	assert_int_equal(blob_decode(blob, &budget, &profile), 0);
	one = profile_bytes(profile);
	assert_true(one > 0 && budget.left_bytes == SIZE_MAX / 2 - one);
	profile_free(profile);
	budget.left_bytes = 32 * one;
	while ((err = blob_decode(blob, &budget, &kept[count])) == 0 && count < 63)
		count++;
	assert_int_equal(err, -EFBIG);
	assert_true(count > 0 && count <= 32);
	while (count)
		profile_free(kept[--count]);
	blob_drop(blob);
}

/* A sampler of another user sends profiles that are small in the end and long to read: what was read of all
 * of them has a bound. */
static void foreign_profiles_share_what_is_read(void **state)
{
	enum { JUNK = 1 << 20 };
	static const int64_t some[4] = {1, 2, 3, 4};
	static const uint8_t head[] = {
	    0xa2, 0x06, 0x80, 0x80, 0x40}; /* field 100, which nobody knows: JUNK bytes */
	struct blob_budget budget = {SIZE_MAX / 2, (size_t)16 * JUNK};
	struct profile *profile = make(1, some, some);
	size_t length, packed_length, count = 0;
	uint8_t *bytes, *packed;
	struct blob *blob;
	int err;

	(void)state;
	assert_int_equal(encode_profile(profile, &bytes, &length), 0);
	profile_free(profile);
	bytes = realloc(bytes, length + sizeof(head) + JUNK);
	assert_non_null(bytes);
	memcpy(bytes + length, head, sizeof(head));
	memset(bytes + length + sizeof(head), 0, JUNK);
	assert_int_equal(
	    gzip_encode(bytes, length + sizeof(head) + JUNK, GZIP_LEVEL_FAST, &packed, &packed_length), 0);
	free(bytes);
	blob = blob_new(packed, packed_length);
	blob->foreign = true;
	while ((err = blob_decode(blob, &budget, &profile)) == 0 && count++ < 64)
		profile_free(profile);
	assert_int_equal(err, -EFBIG);
	assert_in_range(count, 8, 15);
	/* Those of others are not concerned. */
	blob->foreign = false;
	assert_int_equal(blob_decode(blob, &budget, &profile), 0);
	profile_free(profile);
	blob_drop(blob);
}

/* A label is what a process says of itself; it must not say to Prometheus where to go. */
static void discovery_is_of_our_own_words(void **state)
{
	struct control_label labels[] = {{"host", "a\"b"}, {"__address__", "evil:80"}, {"host", "other"},
	    {"service_name", "other"}, {"__profile_path_prefix__", "/pid/1"}, {"pid", "1"}, {"a b", "c"},
	    {"1a", "c"}, {"", "c"}, {"zone_1", "x"}};
	const struct control_process listed = {
	    .labels = labels, .label_count = sizeof(labels) / sizeof(labels[0])};
	const struct catalog_process processes[] = {
	    {.key.pid = 7, .service = "redis", .listed = &listed}, {.key.pid = 8, .service = "over"}};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	metrics_write_targets(out, processes, 2, "box:1");
	fclose(out);
	assert_string_equal(text,
	    "[\n{\"targets\":[\"box:1\"],\"labels\":{\"service_name\":\"redis\",\"pid\":\"7\","
	    "\"__profile_path_prefix__\":\"/pid/7\",\"host\":\"a\\\"b\",\"zone_1\":\"x\"}}]\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(requests_are_judged_as_go_judges_them),
	    cmocka_unit_test(counters_never_fall),
	    cmocka_unit_test(counters_are_bounded),
	    cmocka_unit_test(a_difference_is_last_minus_first),
	    cmocka_unit_test(a_total_moves_to_another_stack),
	    cmocka_unit_test(a_heap_as_text_is_what_gperftools_reads),
	    cmocka_unit_test(addresses_have_names),
	    cmocka_unit_test(metrics_are_sums_by_service),
	    cmocka_unit_test(profiles_of_an_answer_share_one_bound),
	    cmocka_unit_test(foreign_profiles_share_what_is_read),
	    cmocka_unit_test(discovery_is_of_our_own_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
