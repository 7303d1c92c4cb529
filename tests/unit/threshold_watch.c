/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of a process for its thresholds, and what the causes say. */
#include "sampler/write/threshold_watch.h"

#include "proto/weight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB    (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

static struct region_place place;
static struct threshold_crossing crossing;

static void set_place(uint64_t live, uint64_t allocated, uint64_t peak, uint64_t error)
{
	atomic_store(&place.live.bytes_q8, live << WEIGHT_BYTES_SHIFT);
	atomic_store(&place.allocated.bytes_q8, allocated << WEIGHT_BYTES_SHIFT);
	if (peak << WEIGHT_BYTES_SHIFT != atomic_load(&place.peak_bytes_q8))
		atomic_fetch_add(&place.peak_order, 1);
	atomic_store(&place.peak_bytes_q8, peak << WEIGHT_BYTES_SHIFT);
	atomic_store(&place.live_variance, error * error);
}

static int clear_place(void **state)
{
	memset(&place, 0, sizeof(place));
	return 0;
}

static bool look(struct threshold_watch *watch, const struct threshold_subject *subject)
{
	static uint64_t now_ns = SECOND;

	return threshold_watch_look(watch, subject, now_ns += SECOND, false, &crossing);
}

static void causes_of_the_heap(void **state)
{
	static const struct threshold rules[] = {{THRESHOLD_ALLOC, true, 100 * MIB},
	    {THRESHOLD_INUSE, false, 64 * MIB}, {THRESHOLD_INUSE, true, 48 * MIB}};
	const struct threshold_settings settings = {rules, 3, 0};
	const struct threshold_subject subject = {.place = &place, .cgroup = ""};
	struct threshold_watch *watch = threshold_watch_new(&settings);

	set_place(10 * MIB, 20 * MIB, 10 * MIB, 0);
	assert_false(look(watch, &subject));
	set_place(70 * MIB, 90 * MIB, 71 * MIB, 2 * MIB);
	assert_true(look(watch, &subject));
	assert_string_equal(crossing.name, "inuse");
	assert_string_equal(crossing.cause,
	    "inuse 70.0 MiB +- 2.0 MiB >= 64.0 MiB; inuse 70.0 MiB +- 2.0 MiB, +70.0 MiB >= +48.0 MiB");
	set_place(20 * MIB, 110 * MIB, 71 * MIB, 1 * MIB);
	assert_true(look(watch, &subject));
	assert_string_equal(crossing.name, "alloc");
	assert_string_equal(crossing.cause, "alloc 110.0 MiB, +110.0 MiB >= +100.0 MiB");
	set_place(20 * MIB, 180 * MIB, 90 * MIB, 0);
	assert_true(look(watch, &subject));
	assert_string_equal(crossing.cause, "inuse 20.0 MiB, was 90.0 MiB >= 64.0 MiB");
	assert_false(look(watch, &subject));
	assert_int_equal(threshold_watch_suppressed(watch), 0);
	threshold_watch_free(watch);
}

static void what_it_began_with(void **state)
{
	static const struct threshold rules[] = {
	    {THRESHOLD_INUSE, false, 64 * MIB}, {THRESHOLD_INUSE, true, 32 * MIB}};
	const struct threshold_settings settings = {rules, 2, 0};
	const struct threshold_subject forked = {.place = &place, .forked = true, .cgroup = ""};
	const struct threshold_subject before = {.place = &place, .before = true, .cgroup = ""};
	struct threshold_watch *watch = threshold_watch_new(&settings);

	/* A child of a parent with 100 MiB, whose peak was 200. */
	set_place(105 * MIB, 5 * MIB, 200 * MIB, 0);
	assert_false(look(watch, &forked));
	set_place(131 * MIB, 31 * MIB, 200 * MIB, 0);
	assert_false(look(watch, &forked));
	set_place(132 * MIB, 32 * MIB, 200 * MIB, 0);
	assert_true(look(watch, &forked));
	assert_string_equal(crossing.cause, "inuse 132.0 MiB, +32.0 MiB >= +32.0 MiB");
	threshold_watch_free(watch);
	/* A child that has more of its own than its parent had, at the first look. */
	watch = threshold_watch_new(&settings);
	set_place(70 * MIB, 60 * MIB, 70 * MIB, 0);
	assert_true(look(watch, &forked));
	assert_string_equal(
	    crossing.cause, "inuse 70.0 MiB >= 64.0 MiB; inuse 70.0 MiB, +60.0 MiB >= +32.0 MiB");
	threshold_watch_free(watch);
	watch = threshold_watch_new(&settings);
	set_place(70 * MIB, 600 * MIB, 300 * MIB, 0);
	assert_false(look(watch, &before));
	set_place(102 * MIB, 640 * MIB, 300 * MIB, 0);
	assert_true(look(watch, &before));
	assert_string_equal(crossing.cause, "inuse 102.0 MiB, +32.0 MiB >= +32.0 MiB");
	threshold_watch_free(watch);
}

/* A real process: this one. */
static void resident_memory(void **state)
{
	static const struct threshold rules[] = {{THRESHOLD_RSS, true, 64 * MIB}};
	const struct threshold_settings settings = {rules, 1, 0};
	const struct threshold_subject self = {
	    .place = &place, .pid = getpid(), .before = true, .cgroup = ""};
	const struct threshold_subject unknown = {.place = &place, .cgroup = ""};
	struct threshold_watch *watch = threshold_watch_new(&settings);
	void *memory;

	assert_false(look(watch, &unknown));
	assert_false(look(watch, &self));
	memory =
	    mmap(NULL, 100 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_true(look(watch, &self));
	assert_non_null(strstr(crossing.cause, ">= +64.0 MiB"));
	assert_null(strstr(crossing.cause, "was"));
	munmap(memory, 100 * MIB);
	assert_false(look(watch, &self));
	/* A higher peak than before, which nobody has seen. */
	memory =
	    mmap(NULL, 300 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	munmap(memory, 300 * MIB);
	assert_true(look(watch, &self));
	assert_non_null(strstr(crossing.cause, "was"));
	assert_false(look(watch, &self));
	threshold_watch_free(watch);
}

/* A hostile process' place. */
static void any_numbers(void **state)
{
	static const struct threshold rules[] = {{THRESHOLD_INUSE, false, 64 * MIB},
	    {THRESHOLD_INUSE, true, 1}, {THRESHOLD_ALLOC, true, 1}, {THRESHOLD_RSS, false, 1},
	    {THRESHOLD_MEMORY_HIGH, false, 0}};
	const struct threshold_settings settings = {rules, 5, SECOND / 2};
	struct memory_high *list = NULL;
	const struct threshold_subject subject = {
	    .place = &place, .pid = -1, .cgroup = "/no/such/cgroup", .cgroup_version = 2, .cgroups = &list};
	struct threshold_watch *watch = threshold_watch_new(&settings);
	char text[256];

	assert_true(threshold_watch_is_about(watch, THRESHOLD_RSS));
	for (int i = 0; i < 10000; i++) {
		for (size_t j = 0; j < sizeof(place) / sizeof(uint64_t); j++)
			((volatile uint64_t *)(void *)&place)[j] = (uint64_t)random() << (random() % 64);
		if (i % 3 == 0)
			atomic_store(&place.live_variance, UINT64_MAX);
		if (look(watch, &subject))
			assert_true(strlen(crossing.cause) > 0);
	}
	threshold_describe_memory_high(threshold_watch_cgroup(watch), text, sizeof(text));
	assert_non_null(strstr(text, "not readable"));
	threshold_describe_memory_high(NULL, text, sizeof(text));
	assert_non_null(strstr(text, "no memory cgroup"));
	threshold_watch_free(watch);
	assert_null(list);
	threshold_watch_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup(name, clear_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(causes_of_the_heap),
	    TEST(what_it_began_with),
	    TEST(resident_memory),
	    TEST(any_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
