/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics and /sd: sums by service, counters that never fall, and labels. */
#include "serve/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
	    cmocka_unit_test(metrics_are_sums_by_service),
	    cmocka_unit_test(counters_never_fall),
	    cmocka_unit_test(counters_are_bounded),
	    cmocka_unit_test(discovery_is_of_our_own_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
