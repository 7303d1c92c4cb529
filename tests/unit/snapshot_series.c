/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/snapshot_series.h"
#include "sampler/snapshot/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { INTERVAL = 1000 };

/* Names are paths. */
static const struct sink sink = {NULL, NULL};

static void the_clock_keeps_its_phase(void **state)
{
	struct snapshot_series *series = snapshot_series_new(0, INTERVAL, 0);
	uint64_t taken = 0;

	(void)state;
	assert_int_equal(snapshot_series_look(series, INTERVAL, INTERVAL - 1), SNAPSHOT_SERIES_NOT_DUE);
	/* looked at every 7: each snapshot is late by up to 6, the next is not later for it */
	for (uint64_t now = 0; now <= 100 * INTERVAL; now += 7) {
		if (snapshot_series_look(series, INTERVAL, now) == SNAPSHOT_SERIES_NOT_DUE)
			continue;
		taken++;
		assert_true(now >= taken * INTERVAL && now < taken * INTERVAL + 7);
		snapshot_series_advance(series, INTERVAL, now);
	}
	assert_int_equal(taken, 99);
	assert_int_equal(series->skipped, 0);
	snapshot_series_free(series);
}

static void what_cannot_be_made_up_for_is_skipped_and_counted(void **state)
{
	struct snapshot_series *series = snapshot_series_new(0, INTERVAL, 0);

	(void)state;
	/* but the writer is busy */
	assert_int_equal(snapshot_series_look(series, INTERVAL, 1 * INTERVAL + 1), SNAPSHOT_SERIES_DUE);
	assert_int_equal(snapshot_series_look(series, INTERVAL, 1 * INTERVAL + 999), SNAPSHOT_SERIES_DUE);
	assert_int_equal(series->skipped, 0);
	assert_int_equal(snapshot_series_look(series, INTERVAL, 4 * INTERVAL + 1), SNAPSHOT_SERIES_DUE);
	assert_int_equal(series->skipped, 3);
	snapshot_series_advance(series, INTERVAL, 4 * INTERVAL + 1);
	assert_int_equal(snapshot_series_look(series, INTERVAL, 4 * INTERVAL + 2), SNAPSHOT_SERIES_NOT_DUE);
	assert_int_equal(series->due_ns, 5 * INTERVAL);
	assert_int_equal(series->skipped, 3);
	snapshot_series_free(series);
}

static void no_interval_is_never_due(void **state)
{
	struct snapshot_series *series = snapshot_series_new(0, 0, 0);

	(void)state;
	assert_int_equal(snapshot_series_look(series, 0, UINT64_MAX), SNAPSHOT_SERIES_NOT_DUE);
	snapshot_series_free(series);
}

static void requests_become_one(void **state)
{
	struct snapshot_series *series = snapshot_series_new(0, 0, 0);

	(void)state;
	assert_true(snapshot_series_want(series, "first", "name", 0));
	for (uint64_t asker = 1; asker <= SNAPSHOT_ASKERS; asker++)
		assert_true(snapshot_series_want(series, "later", NULL, asker));
	assert_false(snapshot_series_want(series, "too many", NULL, 99));
	assert_true(snapshot_series_want(series, "nobody waits", NULL, 0));
	assert_string_equal(series->wanted_cause, "first");
	assert_string_equal(series->wanted_name, "name");
	assert_int_equal(series->asker_count, SNAPSHOT_ASKERS);
	snapshot_series_free(series);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void touch(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fclose(file);
}

static void the_newest_are_kept(void **state)
{
	char folder[] = "/tmp/heaptap-series.XXXXXX", path[64], delta[64];
	struct snapshot_series *series = snapshot_series_new(0, 0, 0);

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (int i = 1; i <= 9; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		snprintf(delta, sizeof(delta), "%s/%d-delta", folder, i);
		touch(path);
		touch(delta);
		const struct snapshot_series_file file = {path, i % 2 ? delta : NULL, true, false};
		assert_int_equal(snapshot_series_keep(series, &file, 3, &sink), 0);
	}
	for (int i = 1; i <= 9; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		snprintf(delta, sizeof(delta), "%s/%d-delta", folder, i);
		assert_int_equal(exists(path), i > 6);
		/* what is not ours stays */
		assert_int_equal(exists(delta), i > 6 || i % 2 == 0);
		unlink(path);
		unlink(delta);
	}
	assert_int_equal(rmdir(folder), 0);
	snapshot_series_free(series);
}

/* Of some events there are files only from a later snapshot on. */
static void snapshots_are_kept_not_files(void **state)
{
	char folder[] = "/tmp/heaptap-series.XXXXXX", path[64];
	struct snapshot_series *series = snapshot_series_new(0, 0, 0);

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (int i = 1; i <= 6; i++) {
		for (int file = 0; file < (i < 4 ? 1 : 3); file++) {
			snprintf(path, sizeof(path), "%s/%d-%d", folder, i, file);
			touch(path);
			const struct snapshot_series_file one = {path, NULL, file == 0, false};
			assert_int_equal(snapshot_series_keep(series, &one, 2, &sink), 0);
		}
		for (int old = 1; old <= i; old++) {
			snprintf(path, sizeof(path), "%s/%d-%d", folder, old, old < 4 ? 0 : 2);
			assert_int_equal(exists(path), old > i - 2);
		}
	}
	for (int i = 5; i <= 6; i++)
		for (int file = 0; file < 3; file++) {
			snprintf(path, sizeof(path), "%s/%d-%d", folder, i, file);
			unlink(path);
		}
	assert_int_equal(rmdir(folder), 0);
	snapshot_series_free(series);
}

/* Those by thresholds are few and matter, those of the clock are many. */
static void each_kind_is_kept_for_itself(void **state)
{
	char folder[] = "/tmp/heaptap-series.XXXXXX", path[64];
	struct snapshot_series *series = snapshot_series_new(0, 0, 0);

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (int i = 1; i <= 12; i++) {
		const struct snapshot_series_file file = {path, NULL, true, i % 4 == 0};

		snprintf(path, sizeof(path), "%s/%d", folder, i);
		touch(path);
		assert_int_equal(snapshot_series_keep(series, &file, 2, &sink), 0);
	}
	for (int i = 1; i <= 12; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		assert_int_equal(exists(path), i == 8 || i >= 10);
		unlink(path);
	}
	assert_int_equal(rmdir(folder), 0);
	snapshot_series_free(series);
}

static void a_rule_and_a_user_at_once(void **state)
{
	struct snapshot_series *series = snapshot_series_new(0, 0, 0);
	const struct threshold_crossing crossing = {"rss", "rss 2.1 GiB >= 2.0 GiB"};

	(void)state;
	snapshot_series_want_by_rule(series, &crossing);
	assert_true(series->wanted && series->wanted_by_a_rule && !series->wanted_by_hand);
	assert_string_equal(series->wanted_name, "rss");
	assert_true(snapshot_series_want(series, "heaptap snapshot", NULL, 0));
	assert_true(series->wanted_by_hand);
	assert_string_equal(series->wanted_cause, crossing.cause);
	series->wanted = series->wanted_by_a_rule = false;
	assert_true(snapshot_series_want(series, "heaptap snapshot", NULL, 0));
	for (int i = 0; i < 100; i++)
		snapshot_series_want_by_rule(series, &crossing);
	assert_true(series->wanted_by_a_rule && series->wanted_by_hand);
	assert_string_equal(series->wanted_name, "");
	assert_memory_equal(series->wanted_cause, "heaptap snapshot; rss 2.1 GiB >= 2.0 GiB; ", 42);
	snapshot_series_free(series);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_clock_keeps_its_phase),
	    cmocka_unit_test(what_cannot_be_made_up_for_is_skipped_and_counted),
	    cmocka_unit_test(no_interval_is_never_due),
	    cmocka_unit_test(requests_become_one),
	    cmocka_unit_test(the_newest_are_kept),
	    cmocka_unit_test(snapshots_are_kept_not_files),
	    cmocka_unit_test(each_kind_is_kept_for_itself),
	    cmocka_unit_test(a_rule_and_a_user_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
