/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/timeline.h"

#include "proto/weight.h"

#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static struct region_place place;

static void set_place(uint64_t live_bytes, uint64_t allocated_bytes, uint64_t samples)
{
	atomic_store(&place.live.bytes_q8, live_bytes << WEIGHT_BYTES_SHIFT);
	atomic_store(&place.live.objects_q16, (live_bytes / 100) << WEIGHT_OBJECTS_SHIFT);
	atomic_store(&place.allocated.bytes_q8, allocated_bytes << WEIGHT_BYTES_SHIFT);
	atomic_store(&place.allocated.samples, samples);
}

static void one_point_a_second(void **state)
{
	struct timeline timeline = {0};

	(void)state;
	set_place(1000, 5000, 5);
	assert_true(timeline_note(&timeline, &place, 0, 0, 100 * SECOND, false));
	assert_false(timeline_note(&timeline, &place, 0, 0, 101 * SECOND - 1, false));
	assert_true(timeline_note(&timeline, &place, 0, 0, 101 * SECOND, false));
	assert_true(timeline_note(&timeline, &place, 0, 0, 101 * SECOND + 1, true));
	assert_int_equal(timeline.count, 3);
	timeline_fini(&timeline);
	timeline_fini(&timeline);
}

/* A day, a second at a time. */
static void a_long_life_stays_bounded_and_covered(void **state)
{
	struct timeline timeline = {0};
	uint64_t day = 24 * 3600;

	(void)state;
	for (uint64_t second = 0; second <= day; second++) {
		set_place(second, second, second);
		timeline_note(&timeline, &place, 0, 0, second * SECOND, false);
		assert_true(timeline.count <= TIMELINE_POINTS);
	}
	assert_true(timeline.count >= TIMELINE_POINTS / 2);
	assert_int_equal(timeline.points[0].time_ns, 0);
	assert_true(timeline.points[timeline.count - 1].time_ns > (day - 300) * SECOND);
	for (size_t i = 1; i < timeline.count; i++)
		assert_int_equal(
		    timeline.points[i].time_ns - timeline.points[i - 1].time_ns, timeline.step_ns);
	timeline_fini(&timeline);
}

static void lines_of_json(void **state)
{
	struct timeline timeline = {0};
	size_t bytes;
	char *text;

	(void)state;
	set_place(1000, 5000, 5);
	timeline_note(&timeline, &place, 0, 2, 10 * SECOND, false);
	set_place(2000, 9000, 9);
	timeline_note(&timeline, &place, getpid(), 3, 12 * SECOND, false);
	text = timeline_print(&timeline, (int64_t)(1700000000 * SECOND), &bytes);
	assert_non_null(text);
	assert_int_equal(strlen(text), bytes);
	assert_memory_equal(text,
	    "{\"time\":1700000010.000,\"inuse_bytes\":1000,\"inuse_objects\":10,\"alloc_bytes\":5000,"
	    "\"alloc_bytes_per_second\":0,\"samples\":5,\"lost\":2}\n{\"time\":1700000012.000,\"inuse_"
	    "bytes\":2000,",
	    strlen("{\"time\":1700000010.000,\"inuse_bytes\":1000,\"inuse_objects\":10,\"alloc_bytes\":5000,"
	           "\"alloc_bytes_per_second\":0,\"samples\":5,\"lost\":2}\n{\"time\":1700000012.000,\"inuse_"
	           "bytes\":2000,"));
	assert_non_null(
	    strstr(text, "\"alloc_bytes_per_second\":2000,\"samples\":9,\"lost\":3,\"rss_bytes\":"));
	assert_non_null(strstr(text, "\"threads\":1,\"rss_minus_inuse_bytes\":"));
	free(text);
	timeline_fini(&timeline);
}

/* Their line of /proc/PID/status comes before memory and threads: none of these is 0 for want of room. */
static void a_process_in_hundreds_of_groups(void **state)
{
	enum { GROUPS = 500 };
	struct timeline timeline = {0};
	gid_t groups[GROUPS];
	int ready[2];
	char byte;

	(void)state;
	if (geteuid() != 0) {
		print_message("skip: only root can join groups\n");
		skip();
	}
	for (gid_t i = 0; i < GROUPS; i++)
		groups[i] = 4000000000u + i;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setgroups(GROUPS, groups) != 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(timeline_note(&timeline, &place, pid, 0, SECOND, true));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	assert_int_not_equal(timeline.points[0].rss_bytes, UINT64_MAX);
	assert_true(timeline.points[0].rss_bytes > 0);
	assert_int_equal(timeline.points[0].threads, 1);
	timeline_fini(&timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_point_a_second),
	    cmocka_unit_test(a_long_life_stays_bounded_and_covered),
	    cmocka_unit_test(lines_of_json),
	    cmocka_unit_test(a_process_in_hundreds_of_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
