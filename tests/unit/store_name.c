/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void services_are_cleaned(void **state)
{
	char name[SERVICE_NAME_BYTES], longer[300];

	service_name_clean("getty@tty1", name);
	assert_string_equal(name, "getty@tty1");
	service_name_clean("shop/checkout prod", name);
	assert_string_equal(name, "shop_checkout_prod");
	service_name_clean("../../etc", name);
	assert_string_equal(name, "_._.._etc");
	service_name_clean("..", name);
	assert_string_equal(name, "_.");
	service_name_clean("-rf", name);
	assert_string_equal(name, "_rf");
	service_name_clean("a-", name);
	assert_string_equal(name, "a-");
	service_name_clean("", name);
	assert_string_equal(name, "unknown");
	service_name_clean("\xc3\xa4\n", name);
	assert_string_equal(name, "___");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	service_name_clean(longer, name);
	assert_int_equal(strlen(name), 128);
	assert_true(service_name_is_good(name));
	assert_false(service_name_is_good(".."));
	assert_false(service_name_is_good("-rf"));
	assert_false(service_name_is_good(""));
	assert_false(service_name_is_good("a/b"));
	assert_false(service_name_is_good(".state"));
	assert_false(service_name_is_good("-rf"));
}

static void names_are_taken_apart(void **state)
{
	static const struct {
		const char *day, *file, *kind;
		int64_t time_s;
		pid_t pid;
		enum store_class class;
	} cases[] = {
	    {"2026-11-22", "101500.4711.heap.pb.gz", "heap", 1795342500, 4711, STORE_HEAP},
	    {"2026-11-22", "101500.4711.heap-2.pb.gz", "heap-2", 1795342500, 4711, STORE_HEAP},
	    {"2026-11-22", "101500.4711.heap-rss.pb.gz", "heap-rss", 1795342500, 4711, STORE_HEAP_CAUSE},
	    {"2026-11-22", "101500.4711.heap-memory.high.pb.gz", "heap-memory.high", 1795342500, 4711,
	        STORE_HEAP_CAUSE},
	    {"1970-01-01", "000000.1.exit.pb.gz", "exit", 0, 1, STORE_EXIT},
	    {"2026-11-22", "235959.4194304.oom.pb.gz", "oom", 1795391999, 4194304, STORE_OOM},
	    {"2026-11-22", "000000.1.peak.pb.gz", "peak", 1795305600, 1, STORE_PEAK},
	    {"2026-11-22", "000000.1.delta.pb.gz", "delta", 1795305600, 1, STORE_DELTA},
	    {"2026-11-22", "000000.1.event-cpu-clock.pb.gz", "event-cpu-clock", 1795305600, 1, STORE_EVENT},
	    {"2026-11-22", "000000.1.other.pb.gz", "other", 1795305600, 1, STORE_OTHER},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char day[STORE_NAME_DAY_BYTES], file[STORE_NAME_FILE_BYTES];
		struct store_name name;

		assert_true(store_name_parse(cases[i].day, cases[i].file, &name));
		assert_string_equal(name.kind, cases[i].kind);
		assert_int_equal(name.time_s, cases[i].time_s);
		assert_int_equal(name.pid, cases[i].pid);
		assert_int_equal(name.class, cases[i].class);
		assert_int_equal(store_name_format(&name, day, file), 0);
		assert_string_equal(day, cases[i].day);
		assert_string_equal(file, cases[i].file);
	}
}

static void other_names_are_not_ours(void **state)
{
	static const char *const names[][2] = {
	    {"2026-11-22", "101500.4711.heap.pb"},
	    {"2026-11-22", "101500.4711.heap.jsonl"},
	    {"2026-11-22", "101500.4711.timeline.jsonl"},
	    {"2026-11-22", "101500.4711.heap.pb.gz.symbolized"},
	    {"2026-11-22", "101500.4711..pb.gz"},
	    {"2026-11-22", "101500.4711.pb.gz"},
	    {"2026-11-22", "101500.04711.heap.pb.gz"},
	    {"2026-11-22", "101500.0.heap.pb.gz"},
	    {"2026-11-22", "101500.-1.heap.pb.gz"},
	    {"2026-11-22", "101500.99999999.heap.pb.gz"},
	    {"2026-11-22", "241500.1.heap.pb.gz"},
	    {"2026-11-22", "106000.1.heap.pb.gz"},
	    {"2026-11-22", "10150.1.heap.pb.gz"},
	    {"2026-11-22", "101500.1.he/ap.pb.gz"},
	    {"2026-11-22", "101500.1.he ap.pb.gz"},
	    {"2026-11-22", "101500.1.-heap.pb.gz"},
	    {"2026-11-22", "101500.1.../x.pb.gz"},
	    {"2026-11-22", ""},
	    {"2026-11-22", "."},
	    {"2026-02-30", "101500.1.heap.pb.gz"},
	    {"2026-13-01", "101500.1.heap.pb.gz"},
	    {"2026-1-01", "101500.1.heap.pb.gz"},
	    {"1969-12-31", "101500.1.heap.pb.gz"},
	    {"+026-11-22", "101500.1.heap.pb.gz"},
	    {"..", "101500.1.heap.pb.gz"},
	};
	struct store_name name;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (store_name_parse(names[i][0], names[i][1], &name))
			fail_msg("%s/%s", names[i][0], names[i][1]);
}

static void snapshots_have_kinds(void **state)
{
	static const struct {
		const char *snapshot;
		bool oom;
		const char *kind;
	} cases[] = {
	    {"0001", false, "heap"},
	    {"123456", false, "heap"},
	    {"0001-rss", false, "heap-rss"},
	    {"0001-memory.high", false, "heap-memory.high"},
	    {"0001-a b/c", false, "heap-a_b_c"},
	    {"0001-delta", false, "delta"},
	    {"exit", false, "exit"},
	    {"exit", true, "oom"},
	    {"peak", true, "peak"},
	    {"cpu-clock-0001", false, "event-cpu-clock"},
	    {"cpu-clock-0001-rss", false, "event-cpu-clock-rss"},
	    {"cpu-clock-exit", false, "event-cpu-clock-exit"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store_name name;

		store_name_of_snapshot(cases[i].snapshot, cases[i].oom, &name);
		assert_string_equal(name.kind, cases[i].kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(services_are_cleaned),
	    cmocka_unit_test(names_are_taken_apart),
	    cmocka_unit_test(other_names_are_not_ours),
	    cmocka_unit_test(snapshots_have_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
