/* SPDX-License-Identifier: Apache-2.0 */
/* Events as users write them; what is near to a word; tracepoints' names; the books of events. */
#include "sampler/perf/event.h"
#include "pprof/text/nearest.h"
#include "sampler/books/event_process.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void rates(void **unused)
{
	static const struct {
		const char *text, *name;
		uint64_t hz, period;
	} good[] = {
	    {"cpu-clock", "cpu-clock", 0, 0},
	    {"cpu-clock@99", "cpu-clock", 99, 0},
	    {"page-faults/1", "page-faults", 0, 1},
	    {"cycles:u@999", "cycles:u", 999, 0},
	    {"perf_raw::r00c0/100000", "perf_raw::r00c0", 0, 100000},
	    {"sched:sched_switch", "sched:sched_switch", 0, 0},
	    {"icl::INST_RETIRED:ANY:u=1/7", "icl::INST_RETIRED:ANY:u=1", 0, 7},
	    {"a/9223372036854775807", "a", 0, INT64_MAX},
	};
	static const char *const bad[] = {"", "@99", "/1", "cpu-clock@", "cpu-clock/", "cpu-clock@0",
	    "cpu-clock@9x", "cpu-clock@ 9", "cpu-clock@-9", "cpu-clock@+9", "cpu-clock@99/1",
	    "cpu-clock/1@99", "a/1/2", "a b@1", "a\n", "a'b", "a/9223372036854775808",
	    "a/99999999999999999999999"};
	struct event_spec spec;
	char error[128], longer[EVENT_TEXT_BYTES + 8];
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(0, event_split(good[i].text, &spec, error, sizeof(error)));
		assert_string_equal(good[i].name, spec.name);
		assert_int_equal(good[i].hz, spec.hz);
		assert_int_equal(good[i].period, spec.period);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error[0] = '\0';
		assert_int_equal(-EINVAL, event_split(bad[i], &spec, error, sizeof(error)));
		assert_true(error[0]);
	}
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(-EINVAL, event_split(longer, &spec, error, sizeof(error)));
	longer[EVENT_TEXT_BYTES - 1] = '\0';
	assert_int_equal(0, event_split(longer, &spec, error, sizeof(error)));
}

static void software_events(void **unused)
{
	struct event event, other;
	char error[512];

	assert_int_equal(0, event_parse("cpu-clock", &event, error, sizeof(error)));
	assert_int_equal(EVENT_CLOCK, event.kind);
	assert_int_equal(10101010, event.period);
	assert_string_equal("cpu", event.type);
	assert_int_equal(0, event_parse("CPU-CLOCK:u@1000", &event, error, sizeof(error)));
	assert_int_equal(1000000, event.period);
	assert_true(event.part[0].exclude_kernel);
	assert_false(event.kernel_wanted);
	assert_string_equal("cpu-clock-u", event.label);
	assert_int_equal(0, event_parse("task-clock:k/5000000", &event, error, sizeof(error)));
	assert_true(event.kernel_wanted && event.part[0].exclude_user);
	assert_int_equal(0, event_parse("page-faults", &event, error, sizeof(error)));
	assert_int_equal(EVENT_FAULT, event.kind);
	assert_int_equal(2, event.parts);
	assert_int_equal(127, event.period);
	assert_string_equal("page_faults", event.type);
	assert_int_equal(0, event_parse("perf::minor-faults:period=5", &other, error, sizeof(error)));
	assert_int_equal(5, other.period);
	assert_int_equal(1, other.parts);
	assert_true(event_clashes(&event, &other) && event_clashes(&other, &event));
	assert_int_equal(0, event_parse("context-switches", &other, error, sizeof(error)));
	assert_int_equal(1, other.period);
	assert_true(event_is_of_kernel(&other));
	assert_false(event_clashes(&event, &other));
	assert_int_equal(0, event_parse("cycles:u", &other, error, sizeof(error)));
	assert_int_equal(EVENT_HARDWARE, other.kind);
	assert_int_equal(99, other.hz);
}

static void refused(void **unused)
{
	static const char *const bad[][2] = {
	    {"cpu-clok@9", "nearest: cpu-clock"},
	    {"pagefaults", "nearest: page-faults"},
	    {"cpu-clock:zz", "invalid event attr"},
	    {"page-faults@99", "takes no @HZ"},
	    {"cpu-clock@100001", "at most 100000"},
	    {"cpu-clock:freq=9@9", "given twice"},
	    {"context-switches@5", "takes no @HZ"},
	    {"zzzzzzzzzzzz", "no such event;"},
	};
	struct event event;
	char error[1024];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(-EINVAL, event_parse(bad[i][0], &event, error, sizeof(error)));
		if (!strstr(error, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], error);
		assert_null(strchr(error, '\n'));
	}
}

static void multiplexed(void **unused)
{
	assert_true(event_scale(100, 100) == 1);
	assert_true(event_scale(100, 25) == 4);
	assert_true(event_scale(100, 0) == 1);  /* nothing was counted: nothing to scale */
	assert_true(event_scale(99, 100) == 1); /* two clocks, read one after the other */
}

static void near_words(void **unused)
{
	struct nearest nearest;
	char list[512];

	assert_int_equal(0, nearest_distance("abc", "ABC"));
	assert_int_equal(3, nearest_distance("", "abc"));
	assert_int_equal(1, nearest_distance("cpu-clcok", "cpu-clock"));
	assert_int_equal(3, nearest_distance("kitten", "sitting"));
	nearest_init(&nearest, "sched_swich");
	nearest_offer(&nearest, "sched:sched_swat");
	nearest_offer(&nearest, "sched:sched_switch");
	nearest_offer(&nearest, "cpu-clock");
	nearest_list(&nearest, list, sizeof(list));
	assert_string_equal("sched:sched_switch, sched:sched_swat", list);
	for (int i = 0; i < 9; i++) {
		char name[32];

		snprintf(name, sizeof(name), "sched_swich%.*s", 8 - i > 0 ? (8 - i) % 4 : 0, "xyz");
		nearest_offer(&nearest, name);
	}
	assert_int_equal(NEAREST_KEPT, nearest.count);
	assert_int_equal(0, nearest.kept[0].distance);
	assert_true(nearest.kept[0].distance <= nearest.kept[1].distance &&
	    nearest.kept[1].distance <= nearest.kept[2].distance);
	nearest_list(&nearest, list, 8); /* cut, not overrun */
	assert_int_equal(7, strlen(list));
}

static void tracepoint_names(void **unused)
{
	struct event_tracepoint name;
	char longer[EVENT_TRACEPOINT_PART_BYTES + 8];

	assert_true(event_tracepoint_parse("sched:sched_switch", &name));
	assert_string_equal("sched", name.subsystem);
	assert_string_equal("sched_switch", name.name);
	assert_true(event_tracepoint_parse("a-b:c_1:ku", &name));
	assert_string_equal("uk", name.modifiers);
	assert_false(event_tracepoint_parse("sched", &name));
	assert_false(event_tracepoint_parse("perf::cycles", &name));
	assert_false(event_tracepoint_parse("sched:", &name));
	assert_false(event_tracepoint_parse(":x", &name));
	assert_false(event_tracepoint_parse("../x:y", &name));
	assert_false(event_tracepoint_parse("x:../../id", &name));
	assert_false(event_tracepoint_parse("x:y:z", &name));
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_false(event_tracepoint_parse(longer, &name));
}

/* Against a plain array: 300 stacks in two threads, thousands of rows, so that the table grows several times.
 * */
static void books(void **unused)
{
	enum { STACKS = 3000, TURNS = 20000 };
	static uint64_t want[STACKS][2];
	struct event_book *book = event_book_new();
	uint32_t state = 12345;

	for (uint32_t i = 0; i < TURNS; i++) {
		state = state * 1664525 + 1013904223;
		struct event_row row = {.stack = state >> 8 & 0xfff,
		    .tid = state >> 20 & 1,
		    .samples = 1,
		    .value = i,
		    .bytes = 2};
		row.stack %= STACKS;
		want[row.stack][row.tid] += i;
		assert_true(event_book_add(book, &row));
	}
	uint64_t sum = 0;
	for (size_t i = 0; i < event_book_count(book); i++) {
		const struct event_row *row = &event_book_rows(book)[i];

		assert_int_equal(want[row->stack][row->tid], row->value);
		assert_int_equal(2 * row->samples, row->bytes);
		want[row->stack][row->tid] = 0;
		sum += row->value;
	}
	for (size_t i = 0; i < STACKS; i++)
		assert_true(!want[i][0] && !want[i][1]);
	assert_int_equal(TURNS, event_book_total(book).samples);
	assert_int_equal(sum, event_book_total(book).value);
	event_book_free(book);
	event_book_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rates),
	    cmocka_unit_test(software_events),
	    cmocka_unit_test(refused),
	    cmocka_unit_test(multiplexed),
	    cmocka_unit_test(near_words),
	    cmocka_unit_test(tracepoint_names),
	    cmocka_unit_test(books),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
