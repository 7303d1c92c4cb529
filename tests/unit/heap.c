/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that a process left behind in the middle of counting: none has bytes without objects, or objects
 * without bytes. */
#include "sampler/heap/heap.h"

#include "sampler/region/region.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void lost_sums_are_whole(void **unused)
{
	struct region region;
	const struct region_options options = {.period_bytes = 64, .clock_id = 1, .live_max = 1024};
	assert_int_equal(0, region_open(&region, 3, 0, &options));
	struct heap *heap = heap_new(&region, &(const struct heap_options){0});
	assert_non_null(heap);
	/* Killed after each of the three additions of a sample of 100 bytes that stands for 2.5 objects. */
	const struct tally steps[] = {{1, 0, 0}, {1, 250 << 8, 0}, {1, 250 << 8, 5 << 15}};
	const struct tally wanted[] = {{1, 1 << 8, 1 << 16}, {1, 250 << 8, 1 << 16}, {1, 250 << 8, 5 << 15}};
	for (size_t i = 0; i < 3; i++) {
		struct tally lost = heap_lost(heap, steps[i]);
		assert_int_equal(wanted[i].samples, lost.samples);
		assert_int_equal(wanted[i].bytes_q8, lost.bytes_q8);
		assert_int_equal(wanted[i].objects_q16, lost.objects_q16);
	}
	struct tally none = heap_lost(heap, (struct tally){0, 500, 500});
	assert_true(none.samples == 0 && none.bytes_q8 == 0 && none.objects_q16 == 0);
	none = heap_whole((struct tally){0, 500, 500});
	assert_true(none.samples == 0 && none.bytes_q8 == 0 && none.objects_q16 == 0);
	heap_free(heap);
	region_close(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lost_sums_are_whole)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
