/* SPDX-License-Identifier: Apache-2.0 */
/* Resident memory in words, and how often it is read. */
#include "sampler/write/resident_watch.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)
#define S   UINT64_C(1000000000)

static const struct resident_reading example = {
    .time_ns = 7 * S,
    .unix_ns = INT64_C(1700000000123456789),
    .parts =
        {
            .bytes = {[RESIDENT_HEAP] = 100 * MIB,
                [RESIDENT_ANONYMOUS] = 20 * MIB,
                [RESIDENT_CODE] = 8 * MIB,
                [RESIDENT_STACKS] = MIB,
                [RESIDENT_OURS] = 2 * MIB},
            .total_bytes = 131 * MIB,
            .swap_bytes = 3 * MIB,
            .threads = 5,
        },
    .heap_bytes = 80.0 * MIB,
    .heap_variance = 4.0 * MIB * MIB,
};

static char printed[8192];

/* The only reading is the largest, too. */
static const char *print(const struct resident_watch *watch, uint64_t end_ns)
{
	struct resident_watch whole = *watch;

	if (!whole.largest.time_ns)
		whole.largest = whole.newest;
	printed[0] = '\0';
	FILE *out = fmemopen(printed, sizeof(printed), "w");
	resident_text_print(out, &whole, end_ns);
	fclose(out);
	return printed;
}

static void the_rows(void **unused)
{
	const struct resident_watch watch = {.newest = example, .largest = example};

	assert_string_equal(print(&watch, 7 * S + S / 2),
	    "  resident 131.0 MiB, 0.5 s before the end:\n"
	    "      80.0 MiB  heap in use, +- 2.0 MiB\n"
	    "      20.0 MiB  allocator's slack, +- 2.0 MiB\n"
	    "      20.0 MiB  not malloc, by the samples: pools, JS or Java heap, mmap\n"
	    "       8.0 MiB  program and libraries\n"
	    "       2.0 MiB  heaptap's own\n"); /* and not the stacks, which have less than a hundredth */
	struct resident_watch attached = watch;
	attached.newest.older = attached.largest.older = true;
	assert_non_null(strstr(print(&attached, 7 * S),
	    " 20.0 MiB  allocator's slack, blocks from before heaptap attached, +- "));
	const struct resident_watch nothing = {0};
	assert_string_equal(print(&nothing, S), "");
}

/* A process that had given back most of its memory: what it had is what the user wonders about. */
static void the_largest(void **unused)
{
	struct resident_watch watch = {.newest = example, .largest = example};

	watch.newest.time_ns = 9 * S;
	watch.newest.parts.bytes[RESIDENT_HEAP] -= 10 * MIB;
	watch.newest.parts.total_bytes -= 10 * MIB;
	assert_non_null(
	    strstr(print(&watch, 10 * S), "resident 131.0 MiB at its largest, 3.0 s before the end:\n"));
	watch.newest.parts.bytes[RESIDENT_HEAP] -= 10 * MIB;
	watch.newest.parts.total_bytes -= 10 * MIB;
	assert_non_null(
	    strstr(print(&watch, 10 * S), "resident 131.0 MiB at its largest, 3.0 s before the end:\n"));
}

/* More in use than is resident says something only if it cannot be chance. */
static void less_than_nothing(void **unused)
{
	struct resident_watch watch = {.newest = example};

	watch.newest.heap_bytes = 105.0 * MIB;
	assert_non_null(strstr(print(&watch, 7 * S), "  -5.0 MiB  allocator's slack, +- 2.0 MiB\n"));
	watch.newest.heap_bytes = 107.0 * MIB;
	assert_non_null(strstr(print(&watch, 7 * S),
	    "  -7.0 MiB  in use, but not resident: never touched, or swapped out (swap: 3.0 MiB)\n"));
	watch.newest.heap_bytes = watch.newest.heap_variance = 0;
	assert_non_null(
	    strstr(print(&watch, 7 * S), " 100.0 MiB  allocator's slack; no sampled byte is in use\n"));
	assert_null(strstr(printed, "heap in use"));
}

static void the_kernels_counters(void **unused)
{
	struct resident_watch watch = {.newest = example};

	memset(watch.newest.parts.bytes, 0, sizeof(watch.newest.parts.bytes));
	watch.newest.parts.counters = true;
	watch.newest.parts.bytes[RESIDENT_ANONYMOUS] = 121 * MIB;
	watch.newest.parts.bytes[RESIDENT_FILES] = 10 * MIB;
	assert_string_equal(print(&watch, 7 * S),
	    "  resident 131.0 MiB, 0.0 s before the end (the kernel's counters; it is too large to "
	    "look at each mapping):\n"
	    "      80.0 MiB  heap in use, +- 2.0 MiB\n"
	    "      41.0 MiB  allocator's slack, other anonymous memory and stacks, +- 2.0 MiB\n"
	    "      10.0 MiB  files: program, libraries and others\n");
}

static void with_mappings(void **unused)
{
	struct resident_watch watch = {.newest = example};
	struct resident_reading *r = &watch.newest;

	r->parts.bytes[RESIDENT_ANONYMOUS] = 40 * MIB;
	r->with_mmap = true;
	r->mapped_bytes = 64.0 * MIB;
	assert_non_null(strstr(print(&watch, 7 * S),
	    " 40.0 MiB  other anonymous memory (mapped by the program, touched or not: 64.0 MiB +- 0 "
	    "B)\n"));
}

static void without_samples(void **unused)
{
	char rows[RESIDENT_TEXT_ROWS][RESIDENT_TEXT_BYTES];

	assert_int_equal(5, resident_text_rows(&example, false, rows));
	assert_string_equal(rows[0], " 100.0 MiB  [heap]");
	assert_string_equal(
	    rows[1], "  20.0 MiB  other anonymous memory: the allocator's, and the program's own");
}

/* Its parts add up to the total, whatever was estimated. */
static void the_comment(void **unused)
{
	struct resident_reading reading = example;
	char text[512];

	resident_text_comment(&reading, text, sizeof(text));
	assert_string_equal(text,
	    "rss: total=137363456 heap=83886080 heap_error=2097152 slack=20971520 anonymous=20971520 "
	    "code=8388608 files=0 shared=0 stacks=1048576 heaptap=2097152 kernel=0 swap=3145728 threads=5 "
	    "(bytes; smaps, 2023-11-14T22:13:20.123Z)");
	reading.heap_bytes = 200.4 * MIB;
	reading.with_mmap = true;
	resident_text_comment(&reading, text, sizeof(text));
	assert_non_null(strstr(text, " heap=210134630 heap_error=2097152 slack=-105277030 "));
	assert_non_null(strstr(text, " mmap=0 mmap_error=0 swap="));
	for (int i = 0; i < RESIDENT_KINDS; i++)
		reading.parts.bytes[i] = UINT64_MAX;
	reading.heap_bytes = 1e300;
	reading.heap_variance = 1e300;
	reading.parts.total_bytes = reading.parts.swap_bytes = reading.parts.threads = UINT64_MAX;
	resident_text_comment(&reading, text, sizeof(text)); /* cut, at worst */
	assert_true(strlen(text) < sizeof(text));
	resident_text_comment(&reading, text, 20);
	assert_int_equal(19, strlen(text));
}

/* Young processes often, old ones once a second, none for more than its share of the time. */
static void how_often(void **unused)
{
	const uint64_t ms = 1000000;

	assert_int_equal(50 * ms, resident_watch_wait_ns(0, 0, 0));
	assert_int_equal(50 * ms, resident_watch_wait_ns(400 * ms, ms / 10, 1));
	assert_int_equal(125 * ms, resident_watch_wait_ns(S, ms / 10, 1));
	assert_int_equal(S, resident_watch_wait_ns(3600 * S, ms / 10, 1));
	assert_int_equal(20 * S, resident_watch_wait_ns(3600 * S, 100 * ms, 1));
	assert_int_equal(2 * S, resident_watch_wait_ns(0, ms / 10, 100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_rows),
	    cmocka_unit_test(the_largest),
	    cmocka_unit_test(less_than_nothing),
	    cmocka_unit_test(the_kernels_counters),
	    cmocka_unit_test(with_mappings),
	    cmocka_unit_test(without_samples),
	    cmocka_unit_test(the_comment),
	    cmocka_unit_test(how_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
