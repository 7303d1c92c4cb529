/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel is asked for, and what this kernel says to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/linux/regs.h"
#include "sampler/perf/event_attr.h"
#include "sampler/perf/record.h"

#include <errno.h>
#include <string.h>

enum { DUMP_BYTES = 8192 };

static struct event parse(const char *text)
{
	struct event event;
	char error[512];

	if (event_parse(text, &event, error, sizeof(error)) != 0)
		fail_msg("%s: %s", text, error);
	return event;
}

static struct perf_event_attr attr_of(const struct event *event)
{
	struct perf_event_attr attr;

	event_attr_part(&attr, event, 0, DUMP_BYTES);
	return attr;
}

/* record_parse_event() finds nothing else in a record than this, and needs the first of it. */
static void records_are_such_as_are_parsed(void **state)
{
	static const char *const events[] = {
	    "cpu-clock", "cpu-clock@99", "page-faults/1", "context-switches", "cpu-clock:u"};
	struct perf_event_attr tracker;

	event_attr_tracker(&tracker);
	assert_true(tracker.sample_type == RECORD_EVENT_TYPE);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		const struct event event = parse(events[i]);
		const struct perf_event_attr attr = attr_of(&event);

		assert_true((attr.sample_type & RECORD_EVENT_TYPE) == RECORD_EVENT_TYPE);
		assert_true((attr.sample_type & ~(uint64_t)(RECORD_EVENT_TYPE | RECORD_EVENT_EXTRA)) == 0);
		assert_true(attr.sample_id_all && attr.use_clockid && attr.disabled && attr.inherit);
		assert_true(attr.clockid == tracker.clockid);
		assert_true(attr.sample_regs_user == regs_arch_native()->perf_mask);
		assert_int_equal(attr.sample_stack_user, DUMP_BYTES);
		/* The user's side is unwound from the dump. */
		assert_true(attr.exclude_callchain_user);
		assert_true(!attr.exclude_kernel == !!(attr.sample_type & PERF_SAMPLE_CALLCHAIN));
	}
}

static void a_rate_is_a_frequency_or_a_period(void **state)
{
	const struct event every = parse("page-faults/7");
	struct event often =
	    every; /* only hardware events take a frequency, and not every machine has them */

	often.hz = 99;
	often.period = 0;
	const struct perf_event_attr by_time = attr_of(&often), by_count = attr_of(&every);

	assert_true(by_time.freq && by_time.sample_freq == 99 && by_time.sample_type & PERF_SAMPLE_PERIOD);
	/* With the period in the record a software event would be a sample each time (perf_swevent_event). */
	assert_true(!by_count.freq && by_count.sample_period == 7);
	assert_false(by_count.sample_type & PERF_SAMPLE_PERIOD);
}

static void the_tracker_sees_what_maps_need(void **state)
{
	struct perf_event_attr attr;

	event_attr_tracker(&attr);
	assert_true(attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_DUMMY);
	assert_true(attr.mmap && attr.mmap2 && attr.comm && attr.comm_exec && attr.task);
	assert_true(attr.exclude_kernel && attr.exclude_hv);
	assert_true(attr.sample_stack_user == 0);
}

/* Both ways of asking: what is open to this user, and what is not said to exist. */
static void the_kernel_is_asked(void **state)
{
	struct event clock = parse("cpu-clock:u");
	const char *remedy = NULL;
	char reason[256] = "";
	int error = event_try(&clock, reason, sizeof(reason), &remedy);

	if (error == -EACCES || error == -EPERM || error == -ENOSYS) {
		assert_true(reason[0] && remedy && remedy[0]);
		print_message("SKIPPED: no perf events for this user\n");
		skip();
	}
	assert_int_equal(error, 0);
	assert_false(clock.kernel_refused);
	clock.part[0].type = UINT32_MAX;
	assert_true(event_try(&clock, reason, sizeof(reason), &remedy) < 0);
	assert_true(reason[0] != '\0');
	assert_non_null(remedy);
	clock = parse("cpu-clock:u");
	clock.part[0].bp_type = 77;
	clock.part[0].config = 1000;
	assert_true(event_try(&clock, reason, sizeof(reason), &remedy) < 0);
	clock = parse("cpu-clock:u");
	assert_int_equal(event_try(&clock, reason, sizeof(reason), &remedy), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(records_are_such_as_are_parsed),
	    cmocka_unit_test(a_rate_is_a_frequency_or_a_period),
	    cmocka_unit_test(the_tracker_sees_what_maps_need),
	    cmocka_unit_test(the_kernel_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
