/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* The sampler's view of shared memory that a hostile target may fill with anything, at any time. */
#include "sampler/intake/region.h"
#include "proto/region_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

static const struct region_options options = {
    .period_bytes = 64, .dump_bytes = 8192, .clock_id = 1, .live_max = 5000, .mode = REGION_MODE_COPY};

static void opens_as_described(void **unused)
{
	struct region region;

	assert_int_equal(0, region_open(&region, 3, 0x123450000, &options));
	const struct region_header *header = region_header(&region);
	assert_int_equal(5, region.segments);
	assert_int_equal(REGION_MAGIC, header->magic);
	assert_int_equal(region.offsets.end, header->offsets.end);
	assert_int_equal(region.offsets.segments, header->offsets.segments);
	assert_int_equal(REGION_SPARE, header->state);
	const uint64_t offsets[] = {region.offsets.places, region.offsets.modules, region.offsets.owners,
	    region.offsets.buffers, region.offsets.frees, region.offsets.dropped_buffers, region.offsets.walk,
	    region.offsets.stack_log, region.offsets.segments, region.offsets.end};
	for (size_t i = 1; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		assert_true(offsets[i - 1] < offsets[i] && offsets[i] % 64 == 0);
	/* Forked children and program runs map over these parts, or map them again, on any kernel's pages. */
	assert_int_equal(region.offsets.buffers % (64 << 10), 0);
	assert_int_equal(region.offsets.frees % (64 << 10), 0);
	assert_int_equal(region.offsets.segments % (64 << 10), 0);
	/* Nobody can make it shorter under us. */
	assert_int_equal(-1, ftruncate(region.fd, 4096));
	assert_int_equal(EPERM, errno);
	assert_int_equal(-1, ftruncate(region.buffers_fd, 4096));
	assert_int_equal(EPERM, errno);
	region_close(&region);
	assert_int_equal(-1, region.fd);
	assert_int_equal(-1, region.buffers_fd);
}

/* Whoever has the region's own file mapped has no way to the stacks: they are in the other file. */
static void the_buffers_are_a_file_of_their_own(void **unused)
{
	static const char secret[] = "known to root alone";
	struct region region;

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	memcpy(region.base + region.offsets.buffers, secret, sizeof(secret));
	memcpy(region.base + region.offsets.dropped_buffers, secret, sizeof(secret));
	unsigned char *own = mmap(NULL, region.offsets.end, PROT_READ, MAP_SHARED, region.fd, 0);
	assert_ptr_not_equal(own, MAP_FAILED);
	assert_null(memmem(own, region.offsets.frees, secret, sizeof(secret)));
	assert_memory_equal(own + region.offsets.dropped_buffers, secret, sizeof(secret));
	munmap(own, region.offsets.end);
	uint64_t offset = region.offsets.buffers + 1;
	assert_int_equal(region.buffers_fd, region_file_at(&region, &offset));
	assert_int_equal(1, offset);
	offset = region.offsets.frees;
	assert_int_equal(region.fd, region_file_at(&region, &offset));
	assert_int_equal(region.offsets.frees, offset);
	region_close(&region);
}

/* A file that cannot be cut, and has the very size. */
static void buffers_that_we_would_not_have_made(void **unused)
{
	const struct {
		int bytes_more, seals, error;
	} files[] = {{0, F_SEAL_SHRINK | F_SEAL_GROW, 0}, {0, F_SEAL_GROW, -EPROTO},
	    {-REGION_PAGE_BYTES, F_SEAL_SHRINK, -EPROTO}, {REGION_PAGE_BYTES, F_SEAL_SHRINK, -EPROTO}};
	struct region made, taken;

	assert_int_equal(0, region_open(&made, 3, 0, &options));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const int fd = memfd_create("heaptap-buffers", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		assert_int_equal(
		    0, ftruncate(fd, (off_t)region_buffers_bytes(&made.offsets) + files[i].bytes_more));
		assert_int_equal(0, fcntl(fd, F_ADD_SEALS, files[i].seals));
		assert_int_equal(0, region_reopen(&taken, dup(made.fd), false));
		assert_int_equal(files[i].error, region_add_buffers(&taken, fd));
		if (files[i].error)
			close(fd);
		region_close(&taken);
	}
	region_close(&made);
}

/* Both sides ask region_is_whole before they map a byte: each offset is the one of the layout, and a sum of
 * hostile ones is never made. */
static void a_header_is_refused_for_each_wrong_number(void **unused)
{
	struct region_header good = {.magic = REGION_MAGIC, .abi = REGION_ABI};
	uint64_t *offset = (uint64_t *)&good.offsets;
	const size_t offsets = sizeof(good.offsets) / sizeof(*offset);
	const uint32_t segments[] = {1, 5, REGION_SEGMENTS};

	for (size_t s = 0; s < sizeof(segments) / sizeof(segments[0]); s++) {
		good.segments = segments[s];
		good.start_segments = 1;
		good.large_buffers = 8;
		region_lay_out(&good.offsets, good.segments, good.large_buffers);
		const uint64_t end = good.offsets.end;
		assert_true(region_is_whole(&good, end));
		const uint64_t wrong_sizes[] = {0, 1, end - REGION_PAGE_BYTES, end - 1, end + 1, UINT64_MAX};
		for (size_t i = 0; i < sizeof(wrong_sizes) / sizeof(wrong_sizes[0]); i++)
			assert_false(region_is_whole(&good, wrong_sizes[i]));
		for (size_t i = 0; i < offsets; i++) {
			const uint64_t right = offset[i];
			/* beyond the end, before the start, and what makes a sum small */
			const uint64_t wrong[] = {0, 1, right - 1, right + 1, right + REGION_PAGE_BYTES, end,
			    end - 8, end + REGION_PAGE_BYTES, UINT64_C(1) << 62, UINT64_C(1) << 63,
			    UINT64_MAX, UINT64_MAX - REGION_PAGE_BYTES + 1, UINT64_MAX - right,
			    -(uint64_t)REGION_COMMAND_LINE_BYTES, -(uint64_t)sizeof(struct walk_area),
			    -(uint64_t)good.segments * REGION_SEGMENT_SLOTS * sizeof(struct region_slot)};

			for (size_t w = 0; w < sizeof(wrong) / sizeof(wrong[0]); w++) {
				offset[i] = wrong[w];
				assert_int_equal(wrong[w] == right, region_is_whole(&good, end));
				/* not even if the file is as large as it says */
				if (wrong[w] != right)
					assert_false(region_is_whole(&good, good.offsets.end));
			}
			offset[i] = right;
		}
	}
	const uint32_t wrong_segments[] = {0, 1, REGION_SEGMENTS - 1, REGION_SEGMENTS + 1, UINT32_MAX};
	for (size_t i = 0; i < sizeof(wrong_segments) / sizeof(wrong_segments[0]); i++) {
		good.segments = wrong_segments[i];
		assert_false(region_is_whole(&good, good.offsets.end));
	}
	/* More of them, laid out as they should be. */
	good.segments = REGION_SEGMENTS + 1;
	region_lay_out(&good.offsets, good.segments, good.large_buffers);
	assert_false(region_is_whole(&good, good.offsets.end));
	good.segments = 5;
	region_lay_out(&good.offsets, good.segments, good.large_buffers);
	good.magic++;
	assert_false(region_is_whole(&good, good.offsets.end));
	good.magic--;
	good.abi++;
	assert_false(region_is_whole(&good, good.offsets.end));
	good.abi--;
	const uint32_t wrong_starts[] = {0, 6, UINT32_MAX};
	for (size_t i = 0; i < sizeof(wrong_starts) / sizeof(wrong_starts[0]); i++) {
		good.start_segments = wrong_starts[i];
		assert_false(region_is_whole(&good, good.offsets.end));
	}
	good.start_segments = 5;
	assert_true(region_is_whole(&good, good.offsets.end));
	const uint32_t wrong_buffers[] = {0, 7, 9, 65, UINT32_MAX};
	for (size_t i = 0; i < sizeof(wrong_buffers) / sizeof(wrong_buffers[0]); i++) {
		good.large_buffers = wrong_buffers[i];
		assert_false(region_is_whole(&good, good.offsets.end));
	}
}

/* What a program run maps when it starts: no more than 128 MiB with the tables (live.c) at the default
 * period. */
static void the_mapping_of_the_start_is_by_the_period(void **unused)
{
	const struct {
		uint64_t period_bytes;
		uint32_t segments;
	} want[] = {
	    {1, 1024}, {16 << 10, 1024}, {64 << 10, 512}, {512 << 10, 64}, {UINT64_MAX, 64}, {0, 1024}};
	struct region_header header = {0};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(region_start_segments(want[i].period_bytes, 1024), want[i].segments);
	assert_int_equal(region_start_segments(1, 5), 5);
	region_lay_out(&header.offsets, REGION_OFFER_SEGMENTS, region_large_buffers(512 << 10));
	header.start_segments = region_start_segments(512 << 10, REGION_OFFER_SEGMENTS);
	assert_in_range(region_start_bytes(&header), 1, 112 << 20);
}

static void sizes_are_bounded(void **unused)
{
	struct region region;
	struct region_options odd = options;

	odd.live_max = UINT64_MAX / 2;
	assert_int_equal(0, region_open(&region, 3, 0, &odd));
	assert_int_equal(REGION_SEGMENTS, region.segments);
	region_close(&region);
	odd.live_max = 0;
	assert_int_equal(0, region_open(&region, 3, 0, &odd));
	assert_int_equal(1, region.segments);
	assert_null(region_place(&region, REGION_PLACES));
	assert_null(region_place(&region, UINT32_MAX));
	region_close(&region);
}

static void abandoned_when_nobody_maps_it(void **unused)
{
	struct region region;

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	void *other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, region.fd, 0);
	assert_false(region_abandoned(&region));
	assert_int_equal(REGION_MAGIC, region_header(&region)->magic);
	munmap(other, 4096);
	assert_true(region_abandoned(&region));
	region_close(&region);
}

static void released_place_is_clean(void **unused)
{
	struct region region;
	struct slot_copy copy;

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	fixture_own(&region, 1, 5);
	fixture_own(&region, 2, 6);
	fixture_slot(&region, 1024)->word = fixture_slot(&region, 2048)->word = 1 << 8 | SLOT_LIVE;
	region_place(&region, 5)->state = PLACE_READY;
	region_place(&region, 5)->allocated.samples = 9;
	region_release_place(&region, 5);
	assert_int_equal(PLACE_FREE, region_place(&region, 5)->state);
	assert_int_equal(0, region_place(&region, 5)->allocated.samples);
	assert_int_equal(-1, region_segment_owner(&region, 1));
	assert_int_equal(6, region_segment_owner(&region, 2));
	assert_false(region_read_slot(&region, 1024, &copy));
	assert_true(region_read_slot(&region, 2048, &copy));
	region_release_place(&region, REGION_PLACES);
	region_release_place(&region, UINT32_MAX);
	region_close(&region);
}

/* ---- a child waits for a place that is being released */

enum { RELEASES = 20000, WANTED = 5 };
static _Atomic int stop;
static _Atomic uint32_t releases, taken_early;

/* As place_take does: what it finds then must stay as it is until it is done. */
static void *take_again_and_again(void *argument)
{
	struct region_place *place = region_place(argument, WANTED);

	while (!stop) {
		uint32_t free_state = PLACE_FREE;

		if (!atomic_compare_exchange_strong(&place->state, &free_state, PLACE_CLAIMED))
			continue;
		const uint32_t generation = atomic_load(&place->generation);
		place->pid = 4711;
		for (int i = 0; i < 50; i++)
			taken_early += atomic_load(&place->state) != PLACE_CLAIMED ||
			    atomic_load(&place->generation) != generation ||
			    *(volatile uint32_t *)&place->pid != 4711;
		taken_early += generation != atomic_load(&releases);
		atomic_store(&place->state, PLACE_READY);
	}
	return NULL;
}

static void a_place_is_free_when_it_is_empty(void **unused)
{
	struct region region;
	pthread_t thread;

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	struct region_place *place = region_place(&region, WANTED);
	releases = taken_early = 0;
	stop = 0;
	assert_int_equal(0, pthread_create(&thread, NULL, take_again_and_again, &region));
	for (uint32_t i = 1; i <= RELEASES; i++) {
		while (atomic_load(&place->state) != PLACE_READY)
			;
		atomic_store(&releases, i);
		region_release_place(&region, WANTED);
	}
	while (atomic_load(&place->state) != PLACE_READY)
		;
	stop = 1;
	pthread_join(thread, NULL);
	assert_int_equal(0, taken_early);
	region_close(&region);
}

/* Whichever it is, it is one timeline: that of the perf records. */
static void clock_is_monotonic_time(void **unused)
{
	struct timespec before, told, after;
	uint32_t clock = region_clock();

	assert_true(clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE);
	clock_gettime(CLOCK_MONOTONIC, &before);
	clock_gettime((clockid_t)clock, &told);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_in_range(told.tv_sec, before.tv_sec - 1, after.tv_sec);
}

static void every_loss_has_a_name(void **unused)
{
	for (int i = 0; i <= REGION_LOSS_USER_CHANGED; i++)
		assert_string_not_equal("unknown", region_loss_name((enum region_loss)i));
	assert_string_equal("unknown", region_loss_name((enum region_loss)4711));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(opens_as_described),
	    cmocka_unit_test(the_buffers_are_a_file_of_their_own),
	    cmocka_unit_test(buffers_that_we_would_not_have_made),
	    cmocka_unit_test(a_header_is_refused_for_each_wrong_number),
	    cmocka_unit_test(the_mapping_of_the_start_is_by_the_period),
	    cmocka_unit_test(sizes_are_bounded),
	    cmocka_unit_test(abandoned_when_nobody_maps_it),
	    cmocka_unit_test(released_place_is_clean),
	    cmocka_unit_test(a_place_is_free_when_it_is_empty),
	    cmocka_unit_test(clock_is_monotonic_time),
	    cmocka_unit_test(every_loss_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
