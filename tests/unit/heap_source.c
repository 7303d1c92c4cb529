/* SPDX-License-Identifier: Apache-2.0 */
/* A program's requests for snapshots of its heap, and when it is told that it need wait no longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/books/program_run.h"
#include "sampler/write/heap_source.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>

#include "tests/unit/region_fixture.h"

enum {
	NOW_NS = 1000000000,
	BURST = 16, /* of requests */
	DEADLINE_S = 60,
};

struct scene {
	struct heap_source source;
	struct snapshot_settings settings;
	struct output output;
	struct program_run *run;
	struct process process;
	struct region_place *place;
};

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct region *region = malloc(sizeof(*region));

	*state = s;
	fixture_open(region, 1024);
	s->run = program_run_new(region, 1);
	s->process.run = s->run;
	s->process.target.pid = 4711;
	s->process.target.series = snapshot_series_new(0, 0, 0);
	s->process.target.series->target = &s->process.target;
	s->place = region_place(region, 0);
	s->settings.verbosity = -1;
	const struct scheduler_setup setup = {.settings = &s->settings, .output = &s->output};
	s->source.base =
	    (struct snapshot_source){.kind = &heap_source_kind, .scheduler = scheduler_new(&setup)};
	return 0;
}

static int close_scene(void **state)
{
	struct scene *s = *state;

	snapshot_series_free(s->process.target.series);
	scheduler_free(s->source.base.scheduler);
	program_run_free(s->run);
	free(s);
	return 0;
}

static void ask(struct scene *s)
{
	atomic_fetch_add(&s->place->asked, 1);
}

static void look(struct scene *s)
{
	heap_source_kind.look(&s->source.base, &s->process.target, NOW_NS, SNAPSHOT_LOOK_OFTEN);
}

static void was_taken(struct scene *s)
{
	const struct snapshot_order order = {.kind = SNAPSHOT_NUMBERED};

	struct snapshot_request *request = &s->process.target.series->numbered;

	assert_int_equal(request->state, REQUEST_ASKED);
	snapshot_request_step(request, REQUEST_ON_TAKE);
	snapshot_request_step(request, REQUEST_ON_WRITTEN);
	heap_source_kind.taken(&s->source.base, &s->process.target, &order, 0);
	assert_int_equal(s->place->answered, s->place->asked);
}

static void use_up_the_burst(struct scene *s)
{
	for (int i = 0; i < BURST; i++) {
		ask(s);
		look(s);
		was_taken(s);
	}
}

/* As heaptap_snapshot() does, but without a limit. */
static void *wait_for_answer(void *argument)
{
	struct scene *s = argument;
	uint32_t asked = s->place->asked, answered;

	while ((answered = s->place->answered) != asked)
		syscall(SYS_futex, &s->place->answered, FUTEX_WAIT, answered, NULL, NULL, 0);
	return NULL;
}

static void who_is_refused_does_not_wait(void **state)
{
	struct scene *s = *state;
	struct timespec deadline;
	pthread_t program;

	use_up_the_burst(s);
	ask(s);
	assert_int_equal(pthread_create(&program, NULL, wait_for_answer, s), 0);
	look(s);
	assert_int_equal(s->process.target.series->numbered.state, REQUEST_NONE);
	assert_int_equal(s->process.target.series->heap.refused, 1);
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += DEADLINE_S;
	assert_int_equal(pthread_timedjoin_np(program, NULL, &deadline), 0);
}

/* One that was asked for before is still to be taken, and answers for both. */
static void who_is_refused_waits_for_what_is_taken_anyway(void **state)
{
	struct scene *s = *state;

	use_up_the_burst(s);
	snapshot_request_ask(
	    &s->process.target.series->numbered, SNAPSHOT_BY_CLIENT, "heaptap snapshot", NULL, 1);
	ask(s);
	look(s);
	assert_int_equal(s->place->answered, s->place->asked - 1);
	was_taken(s);
}

/* ---- processes of few samples */

static void who_leaves_a_profile(void **state)
{
	struct scene *s = *state;
	struct target *target = &s->process.target;

	s->settings.min_samples = 16;
	const struct {
		uint64_t samples;
		bool command;
		enum target_end end;
		bool leaves;
	} cases[] = {{15, false, TARGET_GONE, false}, {16, false, TARGET_GONE, true},
	    {1, true, TARGET_EXITED, true}, {1, true, TARGET_EXEC, false}, {16, true, TARGET_EXEC, true},
	    {0, false, TARGET_GONE, false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fixture_count(s->run->region, 0, cases[i].samples, 1000);
		target->command = cases[i].command;
		target->end = cases[i].end;
		assert_int_equal(
		    heap_source_kind.has(&s->source.base, target, SNAPSHOT_REASON_END), cases[i].leaves);
		assert_true(heap_source_kind.has(&s->source.base, target, SNAPSHOT_REASON_ASKED));
	}
}

/* However few its samples are. What a forked process shares with others may be its parent's. */
static void who_has_much_that_is_not_sampled_leaves_one(void **state)
{
	static const uint64_t MIB = 1 << 20;
	struct scene *s = *state;
	struct target *target = &s->process.target;
	struct resident_reading *reading = &target->series->heap.resident.largest;

	s->settings.min_samples = 16;
	fixture_own(s->run->region, 0, 1);
	const struct {
		uint64_t anonymous_mib, alone_mib, period_bytes, own_period_bytes, heap_mib, mapped_mib;
		bool counters, with_mmap;
		uint32_t place;
		bool leaves;
	} cases[] = {
	    {.anonymous_mib = 15, .period_bytes = 512 << 10},
	    {.anonymous_mib = 16, .period_bytes = 512 << 10, .leaves = true},
	    {.anonymous_mib = 16, .period_bytes = 3 * MIB},
	    {.anonymous_mib = 24, .period_bytes = 3 * MIB, .leaves = true},
	    {.anonymous_mib = 24, .period_bytes = 1, .own_period_bytes = 4 * MIB},
	    {.anonymous_mib = 40, .with_mmap = true, .mapped_mib = 30},
	    {.anonymous_mib = 40, .mapped_mib = 30, .leaves = true},
	    {.anonymous_mib = 40, .counters = true, .heap_mib = 30},
	    {.anonymous_mib = 40, .counters = true, .heap_mib = 20, .leaves = true},
	    {.anonymous_mib = 40, .place = 1, .alone_mib = 15},
	    {.anonymous_mib = 40, .place = 1, .alone_mib = 16, .leaves = true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		*reading = (struct resident_reading){
		    .heap_bytes = (double)(cases[i].heap_mib * MIB),
		    .mapped_bytes = (double)(cases[i].mapped_mib * MIB),
		    .with_mmap = cases[i].with_mmap,
		};
		reading->parts.bytes[RESIDENT_ANONYMOUS] = cases[i].anonymous_mib * MIB;
		reading->parts.alone_bytes = cases[i].alone_mib * MIB;
		reading->parts.counters = cases[i].counters;
		s->source.period_bytes = cases[i].period_bytes;
		s->run->period.bytes = cases[i].own_period_bytes;
		s->process.place = cases[i].place;
		assert_int_equal(
		    heap_source_kind.has(&s->source.base, target, SNAPSHOT_REASON_END), cases[i].leaves);
		assert_int_equal(
		    heap_source_kind.has(&s->source.base, target, SNAPSHOT_REASON_DUE), cases[i].leaves);
	}
	s->process.place = 0;
}

/* Whoever writes into the region can make up processes. They leave no files before they are found. */
static void a_process_that_is_not_found_yet_has_no_periodic_snapshot(void **state)
{
	struct scene *s = *state;
	struct target *target = &s->process.target;

	atomic_store(&region_place(s->run->region, 0)->allocated.samples, 100);
	assert_true(heap_source_kind.has(&s->source.base, target, SNAPSHOT_REASON_DUE));
	s->process.unsure = true;
	assert_false(heap_source_kind.has(&s->source.base, target, SNAPSHOT_REASON_DUE));
	assert_true(heap_source_kind.has(&s->source.base, target, SNAPSHOT_REASON_ASKED));
	assert_true(heap_source_kind.has(&s->source.base, target, SNAPSHOT_REASON_END));
	s->process.unsure = false;
}

/* What it was forked with is its parent's. */
static void what_leaves_none_is_counted_once(void **state)
{
	struct scene *s = *state;
	const struct region *region = s->run->region;
	char text[256];

	heap_source_dropped_describe(s->source.dropped, SNAPSHOT_DROP_FEW, text, sizeof(text));
	assert_string_equal(text, "");
	s->process.place = 1;
	fixture_own(region, 0, 1);
	fixture_live(
	    region, 1, &(struct fixture_block){.seq = 1, .size_bytes = 100000, .flags = SLOT_INHERITED});
	fixture_live(region, 2, &(struct fixture_block){.seq = 2, .size_bytes = 3000});
	fixture_count(region, 1, 3, 5000);
	for (int i = 0; i < 2; i++)
		heap_source_kind.dropped(&s->source.base, &s->process.target, SNAPSHOT_DROP_FEW);
	/* At place 0 nothing can be inherited: its own count is taken. */
	s->process.place = 0;
	fixture_count(region, 0, 4, 7000);
	atomic_store(&s->place->live.bytes_q8, 1000 << WEIGHT_BYTES_SHIFT);
	heap_source_kind.dropped(&s->source.base, &s->process.target, SNAPSHOT_DROP_FEW);
	heap_source_dropped_describe(s->source.dropped, SNAPSHOT_DROP_FEW, text, sizeof(text));
	assert_string_equal(text,
	    "3 processes of few samples left no profile: 10 samples, 17000 bytes allocated, 7000 in use at "
	    "their "
	    "ends");
	summary_list_clear(&s->source.ended); /* a summary does not end the count */
	heap_source_dropped_describe(s->source.dropped, SNAPSHOT_DROP_FEW, text, sizeof(text));
	assert_memory_equal(text, "3 processes", 11);
}

/* A worker of another user that forks cannot fill our disk. */
static void processes_of_other_users_leave_so_many_profiles(void **state)
{
	enum { MOST = 1000 };
	struct scene *s = *state;
	struct target *target = &s->process.target;
	char text[200];

	if (geteuid() != 0)
		skip();
	target->pidfd = -1;
	s->process.place = 1; /* a child that was not seen alive */
	for (int i = 0; i < MOST; i++)
		assert_true(heap_source_kind.may_leave(&s->source.base, target));
	assert_false(heap_source_kind.may_leave(&s->source.base, target));
	heap_source_kind.dropped(&s->source.base, target, SNAPSHOT_DROP_USER);
	assert_true(heap_source_dropped_describe(s->source.dropped, SNAPSHOT_DROP_USER, text, sizeof(text)));
	assert_non_null(
	    strstr(text, "1 processes left no profile, because processes of other users leave 1,000"));
	target->command = true;
	assert_true(heap_source_kind.may_leave(&s->source.base, target));
	target->command = false;
	s->process.place = 0; /* a program that took a ticket, as root alone can */
	assert_true(heap_source_kind.may_leave(&s->source.base, target));
	s->run->region->taken_by = 4711;
	assert_false(heap_source_kind.may_leave(&s->source.base, target));
	target->pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	s->process.share.account = target_account_of_user(0);
	assert_true(heap_source_kind.may_leave(&s->source.base, target));
	s->process.share.account = target_account_of_user(1234);
	assert_false(heap_source_kind.may_leave(&s->source.base, target));
	close(target->pidfd);
	target->pidfd = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(who_is_refused_does_not_wait, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(
	        who_is_refused_waits_for_what_is_taken_anyway, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(who_leaves_a_profile, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(
	        who_has_much_that_is_not_sampled_leaves_one, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(
	        a_process_that_is_not_found_yet_has_no_periodic_snapshot, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(what_leaves_none_is_counted_once, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(
	        processes_of_other_users_leave_so_many_profiles, open_scene, close_scene),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
