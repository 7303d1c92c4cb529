/* SPDX-License-Identifier: Apache-2.0 */
/* What lists of processes say is missing. */
#include "sampler/core/process_row.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/process_scene.h"

static void each_cause_is_said(void **state)
{
	struct scene *s = *state;
	struct control_loss losses[PROCESS_ROW_LOSSES];
	struct control_process row = {.pid = getpid()};
	struct process *process = claim(s, 0, getpid(), 0);

	assert_non_null(process);
	process_row_fill(&row, losses, process);
	assert_int_equal(row.loss_count, 0);
	fixture_count(s->region, 0, 5, 5000);
	const struct heap_sample sample = {
	    .slot = REGION_NO_SLOT, .stack = 1, .size_bytes = 8, .period_bytes = 1};
	assert_int_equal(heap_add(process->heap, &sample), 0);
	assert_int_equal(heap_add(process->heap, &sample), 0);
	atomic_store(&region_place(s->region, 0)->lost[REGION_LOSS_NO_BUFFER].samples, 3);
	process->counters.before_restart = 7;
	process_row_fill(&row, losses, process);
	assert_int_equal(row.loss_count, 3);
	assert_string_equal(losses[0].cause, "stack");
	assert_int_equal(losses[0].count, 3);
	assert_string_equal(losses[1].cause, region_loss_name(REGION_LOSS_NO_BUFFER));
	assert_int_equal(losses[1].count, 3);
	assert_string_equal(losses[2].cause, "stack before restart");
	assert_int_equal(losses[2].count, 7);
	assert_ptr_equal(row.losses, losses);
	s->run->life.state = RUN_ADOPTING; /* the earlier sampler's are not in the books yet */
	process_row_fill(&row, losses, process);
	assert_int_equal(row.loss_count, 2);
}

static void numbers_are_those_of_the_place(void **state)
{
	struct scene *s = *state;
	struct control_loss losses[PROCESS_ROW_LOSSES];
	struct control_process row = {.pid = getpid()};
	struct process *process = claim(s, 0, getpid(), 0);
	struct region_place *place = region_place(s->region, 0);

	assert_non_null(process);
	fixture_count(s->region, 0, 5, 5000);
	atomic_store(&place->live.samples, 2);
	atomic_store(&place->live.bytes_q8, UINT64_C(3000) << WEIGHT_BYTES_SHIFT);
	atomic_store(&place->live.objects_q16, UINT64_C(7) << WEIGHT_OBJECTS_SHIFT);
	atomic_store(&place->live_variance, 400);
	process_row_fill(&row, losses, process);
	assert_true(row.samples == 5);
	assert_true(row.alloc_bytes == 5000);
	assert_true(row.inuse_bytes == 3000);
	assert_true(row.inuse_objects == 7);
	assert_true(row.inuse_bytes_error == 20);
	/* Any number may be there. */
	atomic_store(&place->live.bytes_q8, (uint64_t)-1);
	atomic_store(&place->live.objects_q16, (uint64_t)-1);
	process_row_fill(&row, losses, process);
	assert_true(row.inuse_bytes == 0 && row.inuse_objects == 0);
}

static void memory_is_that_of_the_process(void **state)
{
	const uint64_t bytes = process_row_resident_bytes(getpid());

	assert_in_range(bytes, 100 << 10, UINT64_C(1) << 40);
	assert_int_equal(bytes % 1024, 0);
	assert_true(process_row_resident_bytes(-1) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(each_cause_is_said, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(numbers_are_those_of_the_place, open_scene, close_scene),
	    cmocka_unit_test(memory_is_that_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
