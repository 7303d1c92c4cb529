/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/store_fixture.h"

#define NOW INT64_C(1795342500) /* 2026-11-22 10:15:00 UTC */

enum { MINUTE = 60, HOUR = 3600, DAY = 24 * 3600 };

static const struct store_plan_limits roomy = {
    .now_s = NOW, .days = 7, .most_bytes = UINT64_MAX, .evict_to_bytes = UINT64_MAX};

static uint8_t *plan(const struct store_list *list, const struct store_plan_limits *limits, uint64_t *left)
{
	uint8_t *fates = malloc(list->file_count + 1);

	assert_int_equal(store_plan_make(list, limits, fates, left), 0);
	return fates;
}

/* What stays, as letters: '.' keep, t thinned, x expired, e evicted. */
static void expect(struct store_list *list, const struct store_plan_limits *limits, const char *wanted)
{
	static const char letters[] = ".txe";
	uint64_t left, sum = 0;
	uint8_t *fates = plan(list, limits, &left);
	char *got = calloc(list->file_count + 1, 1);

	for (size_t i = 0; i < list->file_count; i++) {
		got[i] = letters[fates[i]];
		sum += fates[i] == STORE_PLAN_KEEP ? store_plan_charge(list->files[i].bytes) : 0;
	}
	assert_string_equal(got, wanted);
	assert_int_equal(sum, left);
	free(got);
	free(fates);
	store_list_fini(list);
}

static void nothing_needs_no_plan(void **state)
{
	struct store_list list = {0};

	expect(&list, &roomy, "");
}

static void files_cost_whole_blocks_and_their_names(void **state)
{
	assert_int_equal(store_plan_charge(0), 64);
	assert_int_equal(store_plan_charge(1), 4096 + 64);
	assert_int_equal(store_plan_charge(4096), 4096 + 64);
	assert_int_equal(store_plan_charge(4097), 8192 + 64);
}

static void snapshots_are_thinned_by_age(void **state)
{
	struct store_list list = {0};
	/* one a minute: of the last hour, of an hour 3 hours ago, of 2 hours 2 days ago */
	static const int64_t spans[][2] = {
	    {2 * DAY + 30 * MINUTE, 61}, {3 * HOUR + 15 * MINUTE, 21}, {HOUR, 61}};
	char wanted[256] = "";

	for (size_t i = 0; i < 3; i++)
		for (int64_t k = 0; k < spans[i][1]; k++) {
			int64_t time_s = NOW - spans[i][0] + k * MINUTE, slot = i == 0 ? HOUR : 10 * MINUTE;

			fixture_add(&list, "a", time_s, 7, "heap", 100);
			strcat(wanted, i == 2 || k == 0 || time_s % slot == 0 ? "." : "t");
		}
	expect(&list, &roomy, wanted);
}

/* By cause, of another process, and of another event: each has its own slots. */
static void series_are_thinned_apart(void **state)
{
	struct store_list list = {0};

	for (int64_t k = 0; k < 2; k++) {
		int64_t time_s = NOW - 2 * HOUR - 15 * MINUTE + k;

		fixture_add(&list, "a", time_s, 7, "heap", 100);
		fixture_add(&list, "a", time_s, 7, "heap-rss", 100);
		fixture_add(&list, "a", time_s, 7, "delta", 100);
		fixture_add(&list, "a", time_s, 7, "event-cpu-clock", 100);
		fixture_add(&list, "a", time_s, 7, "event-page-faults", 100);
		fixture_add(&list, "a", time_s, 8, "heap", 100);
		fixture_add(&list, "a", time_s, 7, "exit", 100);
	}
	fixture_add(&list, "b", NOW - 2 * HOUR - 15 * MINUTE, 7, "heap", 100);
	expect(&list, &roomy,
	    "......."
	    "tttttt."
	    ".");
}

static void everything_expires(void **state)
{
	struct store_list list = {0};

	fixture_add(&list, "a", NOW - 8 * DAY, 7, "heap", 100);
	fixture_add(&list, "a", NOW - 8 * DAY, 7, "peak", 100);
	fixture_add(&list, "a", NOW - 7 * DAY - 1, 7, "oom", 100);
	fixture_add(&list, "a", NOW - 7 * DAY, 7, "exit", 100);
	fixture_add(&list, "a", NOW + DAY, 7, "heap", 100); /* the clock was wrong */
	expect(&list, &roomy, "xxx..");
}

static void the_last_peak_of_a_process_stays(void **state)
{
	struct store_list list = {0};

	fixture_add(&list, "a", NOW - 500, 7, "peak", 100);
	fixture_add(&list, "a", NOW - 500, 8, "peak", 100);
	fixture_add(&list, "a", NOW - 400, 7, "peak", 100);
	fixture_add(&list, "a", NOW - 300, 7, "exit", 100);
	fixture_add(&list, "a", NOW - 299, 7, "peak", 100); /* of the exit */
	fixture_add(&list, "a", NOW - 200, 7, "peak", 100); /* of the next process with that pid */
	fixture_add(&list, "a", NOW - 100, 7, "peak", 100);
	expect(&list, &roomy,
	    "t.t.."
	    "t.");
}

/* Ten files of 4160 bytes each, of which six may stay. */
static void the_oldest_snapshots_go_first(void **state)
{
	struct store_plan_limits limits = roomy;
	struct store_list list = {0};
	static const char *const kinds[] = {
	    "oom", "exit", "peak", "heap", "heap", "delta", "heap-rss", "other", "heap", "heap"};

	limits.most_bytes = limits.evict_to_bytes = 6 * store_plan_charge(100);
	for (int i = 0; i < 10; i++)
		fixture_add(&list, "a", NOW - 1000 + i, 7, kinds[i], 100);
	expect(&list, &limits, "...eeee...");
}

static void a_tiny_budget_keeps_something_of_each(void **state)
{
	struct store_plan_limits limits = roomy;
	struct store_list list = {0};
	static const char *const kinds[] = {"oom", "exit", "peak", "heap"};

	limits.most_bytes = limits.evict_to_bytes = 2 * store_plan_charge(100);
	for (int i = 0; i < 4; i++)
		fixture_add(&list, "a", NOW - 1000 + i, 7, kinds[i], 100);
	expect(&list, &limits, ".ee.");
	for (int i = 0; i < 4; i++)
		fixture_add(&list, "a", NOW - 1000 + i, 7, kinds[i], 100);
	limits.most_bytes = limits.evict_to_bytes = 0;
	expect(&list, &limits, "eeee");
}

/* Processes that start and end all day do not push out what others have. */
static void ends_take_half_of_the_budget_at_most(void **state)
{
	struct store_plan_limits limits = roomy;
	struct store_list list = {0};

	limits.most_bytes = limits.evict_to_bytes = 8 * store_plan_charge(100);
	for (int i = 0; i < 20; i++)
		fixture_add(&list, "a", NOW - 1000 + i, 100 + i, "exit", 100);
	for (int i = 0; i < 4; i++)
		fixture_add(&list, "b", NOW - 1000 + i, 7, "heap", 100);
	expect(&list, &limits, "eeeeeeeeeeeeeeee........");
}

/* The one that holds most gives, whatever the age of the others' files is. */
static void a_service_cannot_push_out_the_others(void **state)
{
	struct store_plan_limits limits = roomy;
	struct store_list list = {0};

	limits.most_bytes = limits.evict_to_bytes = 8 * store_plan_charge(100);
	fixture_add(&list, "a", NOW - 5 * DAY, 7, "heap", 100);
	fixture_add(&list, "a", NOW - 4 * DAY, 7, "heap", 100);
	for (int i = 0; i < 20; i++)
		fixture_add(&list, "b", NOW - 1000 + i, 7, "heap", 100);
	fixture_add(&list, "c", NOW - 2 * DAY, 7, "heap", 100);
	expect(&list, &limits,
	    ".."
	    "eeeeeeeeeeeeeee....."
	    ".");
}

static void the_file_system_gets_back_snapshots_only(void **state)
{
	struct store_plan_limits limits = roomy;
	struct store_list list = {0};

	limits.free_bytes = 2 * store_plan_charge(100);
	for (int i = 0; i < 4; i++)
		fixture_add(&list, "a", NOW - 1000 + i, 7, "heap", 100);
	fixture_add(&list, "a", NOW - 1000 + 5, 7, "exit", 100);
	expect(&list, &limits, "ee...");
	fixture_add(&list, "a", NOW - 10 * DAY, 7, "exit", 100); /* gone anyway */
	for (int i = 0; i < 4; i++)
		fixture_add(&list, "a", NOW - 1000 + i, 7, "heap", 100);
	expect(&list, &limits, "xe...");
	fixture_add(&list, "a", NOW - 1000, 7, "exit", 100);
	fixture_add(&list, "a", NOW - 1000, 7, "peak", 100);
	limits.free_bytes = UINT64_MAX;
	expect(&list, &limits, "..");
}

/* ---- days and weeks */

struct simulation {
	struct store_list list;
	int64_t interval_s[3]; /* of a process of each service */
	uint64_t disk_bytes;
	uint64_t written;
};

static void sweep(struct simulation *s, int64_t now_s, uint64_t need, uint64_t *left)
{
	struct store_plan_limits limits = {.now_s = now_s,
	    .days = 7,
	    .most_bytes = s->disk_bytes - need,
	    .evict_to_bytes = s->disk_bytes - need - s->disk_bytes / 16};
	uint8_t *fates = plan(&s->list, &limits, left);
	size_t kept = 0;

	for (size_t i = 0; i < s->list.file_count; i++)
		if (fates[i] == STORE_PLAN_KEEP)
			s->list.files[kept++] = s->list.files[i];
	s->list.file_count = kept;
	free(fates);
	assert_true(*left + need <= s->disk_bytes);
}

static int compare_files(const void *a, const void *b)
{
	const struct store_file *x = a, *y = b;

	if (x->service != y->service)
		return x->service < y->service ? -1 : 1;
	return x->time_s < y->time_s ? -1 : x->time_s > y->time_s;
}

/* Is there a file of that process in [from_s, to_s)? */
static size_t count_between(const struct simulation *s, uint32_t service, int64_t from_s, int64_t to_s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->list.file_count; i++)
		count += s->list.files[i].service == service && s->list.files[i].class == STORE_HEAP &&
		    s->list.files[i].time_s >= from_s && s->list.files[i].time_s < to_s;
	return count;
}

/* What docs/configuration.md promises, of the process of each service since `begin_s`. */
static void check_promises(const struct simulation *s, int64_t begin_s, int64_t now_s)
{
	for (uint32_t service = 0; service < 3; service++) {
		int64_t interval_s = s->interval_s[service];

		for (int64_t at = now_s - HOUR + 1; at <= now_s; at++)
			if (at >= begin_s && at % interval_s == 0)
				assert_int_equal(count_between(s, service, at, at + 1), 1);
		for (int64_t at = now_s - DAY + 10 * MINUTE; at < now_s - HOUR; at += 10 * MINUTE) {
			int64_t slot = at / (10 * MINUTE) * 10 * MINUTE;

			if (slot >= begin_s && slot >= now_s - DAY && slot + 10 * MINUTE <= now_s - HOUR)
				assert_int_equal(count_between(s, service, slot, slot + 10 * MINUTE), 1);
		}
		for (int64_t at = now_s - 7 * DAY + HOUR; at < now_s - DAY; at += HOUR) {
			int64_t slot = at / HOUR * HOUR;

			if (slot >= begin_s && slot >= now_s - 7 * DAY && slot + HOUR <= now_s - DAY)
				assert_int_equal(count_between(s, service, slot, slot + HOUR), 1);
		}
	}
}

/* Sweeps when the store does: once a minute (or step), or when what is to be written does not fit. */
static void simulate(struct simulation *s, int64_t seconds, int64_t step_s, bool promised)
{
	static const char *const services[] = {"a", "b", "c"};
	const int64_t begin_s = NOW / DAY * DAY;
	uint64_t used = 0;
	uint32_t kind;

	assert_int_equal(intern_add(&s->list.kinds, "heap", 4, &kind), 0);
	for (int i = 0; i < 3; i++)
		fixture_service(&s->list, services[i]);
	for (int64_t now_s = begin_s; now_s < begin_s + seconds; now_s++) {
		for (uint32_t i = 0; i < 3; i++) {
			uint64_t bytes = 3000 + (uint64_t)now_s * 7919 % 20000,
			         charge = store_plan_charge(bytes);
			struct store_file file = {now_s, bytes, i, kind, 7, STORE_HEAP};

			if (now_s % s->interval_s[i])
				continue;
			if (used + charge > s->disk_bytes) {
				qsort(s->list.files, s->list.file_count, sizeof(file), compare_files);
				sweep(s, now_s, charge, &used);
			}
			assert_true(used + charge <= s->disk_bytes);
			assert_int_equal(array_reserve(&s->list.files, &s->list.file_room,
			                     s->list.file_count + 1, sizeof(file)),
			    0);
			s->list.files[s->list.file_count++] = file;
			used += charge;
			s->written++;
		}
		if (now_s % step_s)
			continue;
		qsort(s->list.files, s->list.file_count, sizeof(*s->list.files), compare_files);
		sweep(s, now_s, 0, &used);
		if (promised && now_s % (3 * HOUR) == 0)
			check_promises(s, begin_s, now_s);
	}
	store_list_fini(&s->list);
}

static void a_day_at_the_shortest_interval_keeps_its_promises(void **state)
{
	struct simulation s = {.interval_s = {1, 60, 300}, .disk_bytes = UINT64_C(1) << 30};

	simulate(&s, DAY + 2 * HOUR, MINUTE, true);
	assert_true(s.written > DAY);
}

static void a_week_keeps_its_promises(void **state)
{
	struct simulation s = {.interval_s = {20, 60, 600}, .disk_bytes = UINT64_C(1) << 30};

	simulate(&s, 8 * DAY, 10 * MINUTE, true);
}

static void a_day_fits_into_the_smallest_budget(void **state)
{
	struct simulation s = {.interval_s = {1, 10, 60}, .disk_bytes = 1 << 20};

	simulate(&s, DAY, MINUTE, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_needs_no_plan),
	    cmocka_unit_test(files_cost_whole_blocks_and_their_names),
	    cmocka_unit_test(snapshots_are_thinned_by_age),
	    cmocka_unit_test(series_are_thinned_apart),
	    cmocka_unit_test(everything_expires),
	    cmocka_unit_test(the_last_peak_of_a_process_stays),
	    cmocka_unit_test(the_oldest_snapshots_go_first),
	    cmocka_unit_test(a_tiny_budget_keeps_something_of_each),
	    cmocka_unit_test(ends_take_half_of_the_budget_at_most),
	    cmocka_unit_test(a_service_cannot_push_out_the_others),
	    cmocka_unit_test(the_file_system_gets_back_snapshots_only),
	    cmocka_unit_test(a_day_at_the_shortest_interval_keeps_its_promises),
	    cmocka_unit_test(a_week_keeps_its_promises),
	    cmocka_unit_test(a_day_fits_into_the_smallest_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
