/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* Sums that a process left behind in the middle of counting: none has bytes without objects, or objects
 * without bytes. */
#include "sampler/books/heap.h"

#include "sampler/intake/region.h"

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
	const struct tally wanted[] = {{1, 0, 1 << 16}, {1, 250 << 8, 1 << 16}, {1, 250 << 8, 5 << 15}};
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

/* Bytes of the books of some sites, each with a sample and its free. */
static uint64_t bytes_of_sites(const struct heap_options *options)
{
	enum { SITES = 1000 };
	struct region region;
	const struct region_options of_region = {.period_bytes = 64, .clock_id = 1, .live_max = 1024};

	assert_int_equal(0, region_open(&region, 3, 0, &of_region));
	struct heap *heap = heap_new(&region, options);
	assert_non_null(heap);
	const uint64_t before = heap_bytes(heap);
	for (uint32_t i = 0; i < SITES; i++)
		assert_int_equal(
		    0, heap_add_walked(heap, i + 1, i + 1, (struct tally){1, 100 << WEIGHT_BYTES_SHIFT, 1}));
	const struct free_copy gone = {
	    .sample = {.size_bytes = 100, .period_bytes = 64, .stack = SITES, .tid = 7}, .freed_tid = 7};
	assert_true(heap_freed(heap, &gone));
	assert_int_equal(heap_lifetimes(heap)->samples, 1);
	assert_int_equal(heap_site_count(heap), SITES);
	assert_int_equal(
	    heap_site_temporary(heap, SITES - 1).samples, options->labels == HEAP_LABEL_LIFETIME);
	assert_int_equal(heap_site_temporary(heap, 0).samples, 0);
	heap_mark(heap, (struct tally){0}, 5);
	assert_int_equal(heap_site_marked(heap, 0).samples, options->deltas);
	assert_int_equal(heap_last_mark(heap)->time_ns, options->deltas ? 5 : 0);
	const uint64_t bytes = heap_bytes(heap) - before;
	heap_free(heap);
	region_close(&region);
	return bytes / SITES;
}

/* A program of a hundred thousand stacks has as many sites. */
static void a_site_keeps_only_what_is_asked_for(void **unused)
{
	const uint64_t least = bytes_of_sites(&(const struct heap_options){.labels = 0});
	const uint64_t deltas = bytes_of_sites(&(const struct heap_options){.deltas = true});
	const uint64_t all = bytes_of_sites(
	    &(const struct heap_options){.labels = HEAP_LABEL_LIFETIME, .temporary_ns = 1, .deltas = true});

	assert_in_range(least, sizeof(struct heap_site), 120); /* with indexes, and what grows by half */
	assert_in_range(deltas, least + sizeof(struct tally), least + 2 * sizeof(struct tally));
	assert_in_range(all, deltas + sizeof(struct tally), deltas + 2 * sizeof(struct tally));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lost_sums_are_whole),
	    cmocka_unit_test(a_site_keeps_only_what_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
