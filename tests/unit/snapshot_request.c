/* SPDX-License-Identifier: Apache-2.0 */
/* The request of a snapshot: each arrow of its drawing, and who waits for it. */
#include "sampler/write/snapshot_series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A row for each state, a column for each event, as the enums have them. Letters are states. */
static void each_event_has_its_arrow(void **state)
{
	static const char letters[] = "-dawW"; /* none, due, asked, writing, writing and asked */
	static const char *const next[] = {
	    "ad--w--", /* ask, due, not due, take, beside, drop, written */
	    "ad-ww-d",
	    "aaawW-a",
	    "Wwwwww-",
	    "WWWWWwa",
	};

	(void)state;
	for (int from = 0; from <= REQUEST_WRITING_ASKED; from++)
		for (int event = 0; event <= REQUEST_ON_WRITTEN; event++) {
			struct snapshot_request request = {.state = (enum request_state)from};

			snapshot_request_step(&request, (enum request_event)event);
			assert_int_equal(letters[request.state], next[from][event]);
		}
}

/* All states that can be reached lead back to NONE, so nothing is asked for or written for ever. */
static void each_state_comes_to_an_end(void **state)
{
	static const enum request_event end[] = {
	    REQUEST_ON_TAKE, REQUEST_ON_WRITTEN, REQUEST_ON_TAKE, REQUEST_ON_WRITTEN};

	(void)state;
	for (int from = 0; from <= REQUEST_WRITING_ASKED; from++) {
		struct snapshot_request request = {.state = (enum request_state)from};

		for (size_t i = 0; i < sizeof(end) / sizeof(end[0]); i++)
			snapshot_request_step(&request, end[i]);
		assert_int_equal(request.state, REQUEST_NONE);
	}
}

static void requests_become_one(void **state)
{
	uint64_t askers[SNAPSHOT_ASKERS];
	struct snapshot_request request = {0};

	(void)state;
	assert_true(snapshot_request_ask(&request, SNAPSHOT_BY_PROGRAM, "first", "name", 0));
	for (uint64_t asker = 1; asker <= SNAPSHOT_ASKERS; asker++)
		assert_true(snapshot_request_ask(&request, SNAPSHOT_BY_CLIENT, "later", NULL, asker));
	assert_false(snapshot_request_ask(&request, SNAPSHOT_BY_CLIENT, "too many", NULL, 99));
	assert_true(snapshot_request_ask(&request, SNAPSHOT_BY_CLIENT, "nobody waits", NULL, 0));
	assert_string_equal(request.cause, "first");
	assert_string_equal(request.name, "name");
	assert_int_equal(request.by, SNAPSHOT_BY_PROGRAM | SNAPSHOT_BY_CLIENT);
	snapshot_request_forget(&request, 3);
	assert_int_equal(snapshot_request_take_askers(&request, askers), SNAPSHOT_ASKERS - 1);
	assert_int_equal(request.asker_count, 0);
}

static void a_threshold_and_a_user_at_once(void **state)
{
	static const char cause[] = "rss 2.1 GiB >= 2.0 GiB";
	struct snapshot_request request = {0};

	(void)state;
	snapshot_request_ask(&request, SNAPSHOT_BY_THRESHOLD, cause, "rss", 0);
	assert_int_equal(request.by, SNAPSHOT_BY_THRESHOLD);
	assert_true(snapshot_request_ask(&request, SNAPSHOT_BY_CLIENT, "heaptap snapshot", NULL, 0));
	assert_int_equal(request.by, SNAPSHOT_BY_THRESHOLD | SNAPSHOT_BY_CLIENT);
	assert_string_equal(request.name, "rss");
	assert_string_equal(request.cause, cause);
	snapshot_request_step(&request, REQUEST_ON_TAKE);
	assert_int_equal(request.by, 0);
	assert_true(snapshot_request_ask(&request, SNAPSHOT_BY_CLIENT, "heaptap snapshot", NULL, 0));
	for (int i = 0; i < 100; i++)
		snapshot_request_ask(&request, SNAPSHOT_BY_THRESHOLD, cause, "rss", 0);
	assert_int_equal(request.by, SNAPSHOT_BY_THRESHOLD | SNAPSHOT_BY_CLIENT);
	assert_string_equal(request.name, "");
	assert_memory_equal(request.cause, "heaptap snapshot; rss 2.1 GiB >= 2.0 GiB; ", 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_event_has_its_arrow),
	    cmocka_unit_test(each_state_comes_to_an_end),
	    cmocka_unit_test(requests_become_one),
	    cmocka_unit_test(a_threshold_and_a_user_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
