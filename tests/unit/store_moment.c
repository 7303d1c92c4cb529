/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_moment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/store_fixture.h"

#define NOW INT64_C(1795342500) /* 2026-11-22 10:15:00 UTC */

enum { MINUTE = 60, HOUR = 3600, DAY = 24 * 3600 };

static void times_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t time_s;
	} cases[] = {
	    {"now", NOW},
	    {"30s", NOW - 30},
	    {"10m", NOW - 600},
	    {"2h", NOW - 7200},
	    {"3d", NOW - 3 * DAY},
	    {"@1795342000", 1795342000},
	    {"10:00", NOW - 15 * MINUTE + 59},
	    {"10:00:30", NOW - 15 * MINUTE + 30},
	    {"10:15", NOW + 59},
	    {"10:16", NOW + MINUTE + 59 - DAY}, /* still to come */
	    {"23:00:00", NOW - 11 * HOUR - 15 * MINUTE},
	    {"2026-11-22", NOW / DAY * DAY + DAY - 1},
	    {"2026-11-21T10:15", NOW - DAY + 59},
	    {"2026-11-21 10:15:01", NOW - DAY + 1},
	    {"2026-11-21T10:15:00Z", NOW - DAY},
	    {"10:00Z", NOW - 15 * MINUTE + 59},
	};
	static const char *const wrong[] = {"", "yesterday", "25:00", "10:61", "10", "10x", "-5m",
	    "2026-13-01", "2026-11-21T", "10:15:00ZZ", "@", "@x", "@-1"};
	int64_t time_s;

	setenv("TZ", "UTC", 1);
	tzset();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (store_moment_time(cases[i].text, NOW, &time_s) != 0 || time_s != cases[i].time_s)
			fail_msg("%s: %lld", cases[i].text, (long long)time_s);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (store_moment_time(wrong[i], NOW, &time_s) == 0)
			fail_msg("%s: %lld", wrong[i], (long long)time_s);
	/* Local time, unless there is a Z. */
	setenv("TZ", "UTC-2", 1);
	tzset();
	assert_int_equal(store_moment_time("2026-11-22T12:15:00", NOW, &time_s), 0);
	assert_int_equal(time_s, NOW);
	assert_int_equal(store_moment_time("2026-11-22T10:15:00Z", NOW, &time_s), 0);
	assert_int_equal(time_s, NOW);
	setenv("TZ", "UTC", 1);
	tzset();
}

static void words_are_split_at_the_last_at(void **state)
{
	static const struct {
		const char *text, *service;
		int64_t time_s;
		bool good, has_time;
	} cases[] = {
	    {"redis", "redis", NOW, true, false},
	    {"redis@10m", "redis", NOW - 600, true, true},
	    {"getty@tty1", "getty@tty1", NOW, true, false},
	    {"getty@tty1@10m", "getty@tty1", NOW - 600, true, true},
	    {"redis@@1795342000", "redis", 1795342000, true, true},
	    {"redis@", "redis@", NOW, true, false},
	    {"@10m", "", NOW - 600, false, true},
	    {"a b", "a b", NOW, false, false},
	    {"redis@25:00", "redis@25:00", NOW, false, false},
	    {"", "", NOW, false, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char service[SERVICE_NAME_BYTES] = "";
		int64_t time_s;
		bool has_time;

		assert_int_equal(
		    store_moment_split(cases[i].text, NOW, service, &time_s, &has_time), cases[i].good);
		assert_string_equal(service, cases[i].service);
		assert_int_equal(time_s, cases[i].time_s);
		assert_int_equal(has_time, cases[i].has_time);
	}
}

/* The chosen files as letters, in their order: the numbers of the list's files. */
static void expect(
    const struct store_list *list, int64_t time_s, enum store_moment_wanted wanted, const char *want)
{
	size_t first, count = store_list_service(list, "a", &first), chosen[256], chosen_count;
	char got[257] = "";

	assert_int_equal(store_moment_choose(list, first, count, time_s, wanted, chosen, &chosen_count), 0);
	for (size_t i = 0; i < chosen_count; i++)
		got[i] = (char)('A' + chosen[i]);
	assert_string_equal(got, want);
}

static void the_state_is_the_last_snapshot_of_each_process(void **state)
{
	struct store_list list = {0};

	fixture_add(&list, "a", NOW - 600, 7, "heap", 1);     /* A */
	fixture_add(&list, "a", NOW - 590, 8, "heap", 1);     /* B */
	fixture_add(&list, "a", NOW - 580, 7, "peak", 1);     /* C */
	fixture_add(&list, "a", NOW - 540, 7, "heap-rss", 1); /* D */
	fixture_add(&list, "a", NOW - 530, 8, "exit", 1);     /* E */
	fixture_add(&list, "a", NOW - 520, 7, "delta", 1);    /* F */
	fixture_add(&list, "a", NOW - 510, 7, "heap", 1);     /* G */
	fixture_add(&list, "b", NOW - 500, 9, "heap", 1);
	expect(&list, NOW, STORE_MOMENT_STATES, "CG");
	expect(&list, NOW - 535, STORE_MOMENT_STATES, "BCD");
	expect(&list, NOW - 591, STORE_MOMENT_STATES, "A");
	expect(&list, NOW - 601, STORE_MOMENT_STATES, "");
	expect(&list, NOW, STORE_MOMENT_SERIES, "ACDG");
	expect(&list, NOW - 535, STORE_MOMENT_SERIES, "BCD"); /* two processes */
	expect(&list, NOW, STORE_MOMENT_ALL, "ACDFG");
	expect(&list, NOW, STORE_MOMENT_EVERYTHING, "ABCDEFG");
	store_list_fini(&list);
}

/* Names have whole seconds: which snapshot of one second is the newest, only the profile tells. */
static void all_snapshots_of_the_last_second_are_chosen(void **state)
{
	struct store_list list = {0};

	fixture_add(&list, "a", NOW - 600, 7, "heap", 1);   /* A */
	fixture_add(&list, "a", NOW - 590, 7, "heap-2", 1); /* B */
	fixture_add(&list, "a", NOW - 590, 7, "heap", 1);   /* C */
	fixture_add(&list, "a", NOW - 590, 8, "heap", 1);   /* D */
	fixture_add(&list, "a", NOW - 590, 7, "delta", 1);  /* E */
	expect(&list, NOW, STORE_MOMENT_STATES, "BCD");
	expect(&list, NOW - 600, STORE_MOMENT_STATES, "A");
	store_list_fini(&list);
	fixture_add(&list, "a", NOW - 600, 7, "heap", 1);     /* A */
	fixture_add(&list, "a", NOW - 590, 7, "heap", 1);     /* B */
	fixture_add(&list, "a", NOW - 590, 7, "heap-rss", 1); /* C */
	fixture_add(&list, "a", NOW - 590, 7, "exit", 1);     /* D */
	expect(&list, NOW, STORE_MOMENT_SERIES, "ABCD");
	store_list_fini(&list);
}

static void without_a_living_process_those_that_ended_last_count(void **state)
{
	struct store_list list = {0};

	fixture_add(&list, "a", NOW - 5000, 6, "heap", 1); /* A */
	fixture_add(&list, "a", NOW - 4000, 6, "exit", 1); /* B */
	fixture_add(&list, "a", NOW - 600, 7, "heap", 1);  /* C */
	fixture_add(&list, "a", NOW - 500, 7, "exit", 1);  /* D */
	fixture_add(&list, "a", NOW - 499, 7, "peak", 1);  /* E */
	fixture_add(&list, "a", NOW - 480, 8, "oom", 1);   /* F */
	expect(&list, NOW, STORE_MOMENT_STATES, "DEF");
	expect(&list, NOW - 3000, STORE_MOMENT_STATES, "B");
	store_list_fini(&list);
}

static void a_pid_may_come_again(void **state)
{
	struct store_list list = {0};

	fixture_add(&list, "a", NOW - 600, 7, "heap", 1); /* A */
	fixture_add(&list, "a", NOW - 500, 7, "exit", 1); /* B */
	fixture_add(&list, "a", NOW - 400, 7, "heap", 1); /* C */
	fixture_add(&list, "a", NOW - 300, 7, "heap", 1); /* D */
	expect(&list, NOW, STORE_MOMENT_SERIES, "CD");
	expect(&list, NOW - 550, STORE_MOMENT_SERIES, "A");
	store_list_fini(&list);
}

static void who_is_silent_for_long_is_gone(void **state)
{
	struct store_list list = {0};

	fixture_add(&list, "a", NOW - 3 * DAY, 6, "heap", 1);  /* A: killed together with the daemon */
	fixture_add(&list, "a", NOW - 2 * HOUR, 7, "heap", 1); /* B */
	fixture_add(&list, "a", NOW - HOUR, 7, "heap", 1);     /* C */
	fixture_add(&list, "a", NOW - HOUR, 8, "heap", 1);     /* D */
	expect(&list, NOW, STORE_MOMENT_STATES, "CD");
	expect(&list, NOW - 2 * DAY, STORE_MOMENT_STATES, "A");
	fixture_add(&list, "a", NOW + 5 * HOUR, 9, "exit", 1); /* E */
	expect(&list, NOW + 6 * HOUR, STORE_MOMENT_STATES, "E");
	store_list_fini(&list);
}

static void a_long_series_is_a_choice_at_regular_times(void **state)
{
	size_t chosen[4096], count, first;
	struct store_list list = {0};

	for (int i = 0; i < 4000; i++)
		fixture_add(&list, "a", NOW - 4000 + i, 7, "heap", 1);
	assert_int_equal(store_list_service(&list, "a", &first), 4000);
	assert_int_equal(store_moment_choose(&list, 0, 4000, NOW, STORE_MOMENT_SERIES, chosen, &count), 0);
	assert_int_equal(count, STORE_MOMENT_SERIES_MOST);
	assert_int_equal(chosen[0], 0);
	assert_int_equal(chosen[count - 1], 3999);
	for (size_t i = 1; i < count; i++)
		assert_in_range(chosen[i] - chosen[i - 1], 80, 90);
	store_list_fini(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(times_are_read),
	    cmocka_unit_test(words_are_split_at_the_last_at),
	    cmocka_unit_test(the_state_is_the_last_snapshot_of_each_process),
	    cmocka_unit_test(all_snapshots_of_the_last_second_are_chosen),
	    cmocka_unit_test(without_a_living_process_those_that_ended_last_count),
	    cmocka_unit_test(a_pid_may_come_again),
	    cmocka_unit_test(who_is_silent_for_long_is_gone),
	    cmocka_unit_test(a_long_series_is_a_choice_at_regular_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
