/* SPDX-License-Identifier: Apache-2.0 */
/* What the user reads of one process that has ended. */
#include "sampler/books/program_run.h"
#include "sampler/write/heap_snapshot.h"
#include "sampler/write/summary_list.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

struct scene {
	struct program_run *run;
	struct process process;
	struct heap_snapshot snapshot;
	struct heap_view_row live, peak;
	struct summary_row row; /* made last */
};

/* A view of one row. */
static void hold(
    struct heap_view *view, struct heap_view_row *row, uint64_t samples, double bytes, double objects)
{
	row->inuse = (struct tally){.samples = samples,
	    .bytes_q8 = (uint64_t)(bytes * (1 << WEIGHT_BYTES_SHIFT)),
	    .objects_q16 = (uint64_t)(objects * (1 << WEIGHT_OBJECTS_SHIFT))};
	view->rows = row;
	view->count = samples > 0;
	view->inuse = (struct heap_estimate){.samples = samples, .bytes = bytes, .objects = objects};
}

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct region *region = malloc(sizeof(*region));

	*state = s;
	fixture_open(region, 1024);
	s->run = program_run_new(region, 1);
	s->process.run = s->run;
	s->process.target.pid = 4711;
	s->process.target.end = TARGET_EXITED;
	strcpy(s->process.target.title, "serve");
	s->snapshot.process = &s->process;
	s->snapshot.period_bytes = 65536;
	hold(&s->snapshot.view, &s->live, 24, 1.5 * (1 << 20), 30);
	s->snapshot.view.allocated.samples = 100;
	strcpy(s->snapshot.path, "/tmp/serve.4711.exit.pb.gz");
	return 0;
}

static int close_scene(void **state)
{
	struct scene *s = *state;

	summary_row_fini(&s->row);
	program_run_free(s->run);
	free(s);
	return 0;
}

static const char *print(struct scene *s, int error)
{
	summary_row_fini(&s->row);
	summary_list_make_row(&s->row, &s->snapshot, "exited with status 0", error);
	return s->row.block;
}

/* The errors are those that heaptap report computes from the profile: sqrt(1.5 MiB * 51.2 KiB * 0.816). */
static void all_is_well(void **state)
{
	struct scene *s = *state;

	assert_string_equal(print(s, 0),
	    "serve (pid 4711) exited with status 0\n"
	    "  at end  1.5 MiB +- 253.3 KiB in 30 +- 5 objects\n"
	    "  samples 100 taken, 0 without a stack\n");
	assert_string_equal(summary_row_path(&s->row), "/tmp/serve.4711.exit.pb.gz");
	assert_false(s->row.command);
}

static void every_allocation_recorded(void **state)
{
	struct scene *s = *state;

	s->snapshot.period_bytes = 1;
	assert_non_null(strstr(print(s, 0), "\n  at end  1.5 MiB in 30 objects\n"));
	hold(&s->snapshot.view, &s->live, 0, 0, 0);
	assert_non_null(strstr(print(s, 0), "\n  at end  nothing in use\n"));
	s->snapshot.view.allocated.samples = 0;
	assert_non_null(strstr(print(s, 0), "\n  nothing was allocated\n"));
	s->run->origin.attached_pid = 4711; /* it may have allocated by an address that it knew */
	assert_non_null(strstr(print(s, 0), "\n  no allocation was sampled\n"));
}

/* "0 B +- 0 B" is no answer: a sample is taken of B bytes with probability 1 - exp(-B / period). */
static void nothing_has_an_upper_bound(void **state)
{
	struct scene *s = *state;
	struct region_place *place = region_place(s->run->region, 0);

	hold(&s->snapshot.view, &s->live, 0, 0, 0);
	assert_non_null(
	    strstr(print(s, 0), "\n  at end  nothing sampled in use (less than about 191.7 KiB, 95 %)\n"));
	s->snapshot.view.allocated.samples = 0;
	assert_non_null(strstr(
	    print(s, 0), "\n  no allocation was sampled (less than about 191.7 KiB was allocated, 95 %)\n"));
	/* Not if samples are missing for another reason than chance. */
	s->snapshot.view.allocated.samples = 100;
	atomic_store(&place->lost[REGION_LOSS_TABLE_FULL].samples, 1);
	assert_non_null(strstr(print(s, 0), "\n  at end  nothing sampled in use\n"));
	atomic_store(&place->lost[REGION_LOSS_TABLE_FULL].samples, 0);
	atomic_store(&place->paused_ns, 1);
	assert_non_null(strstr(print(s, 0), "\n  at end  nothing sampled in use\n"));
}

/* Its file is the one to open if little is left at the end. */
static void the_peak(void **state)
{
	struct scene *s = *state;

	s->snapshot.peak_path = "/tmp/serve.4711.peak.pb.gz";
	assert_null(strstr(print(s, 0), "  peak ")); /* none was ever */
	hold(&s->snapshot.peak, &s->peak, 50, 3.0 * (1 << 20), 60);
	assert_non_null(
	    strstr(print(s, 0), "\n  peak    3.0 MiB +- 358.2 KiB in 60 +- 7 objects\n  at end  1.5"));
	assert_string_equal(summary_row_path(&s->row), s->snapshot.path);
	hold(&s->snapshot.peak, &s->peak, 500, 15.1 * (1 << 20), 300);
	print(s, 0);
	assert_string_equal(summary_row_path(&s->row), s->snapshot.peak_path);
}

static void every_loss_by_its_cause(void **state)
{
	struct scene *s = *state;
	struct region_place *place = region_place(s->run->region, 0);
	char expected[256];

	s->snapshot.view.lost_alloc.samples = 12;
	s->process.counters.outcome[UNWIND_COMPLETE] = 70;
	s->process.counters.outcome[UNWIND_TRUNCATED] = 13;
	s->process.counters.outcome[UNWIND_NO_CFI] = 5;
	s->process.counters.no_room = 2;
	s->process.counters.inherited_no_room = 1;
	s->snapshot.view.lost_inherited = 4;
	s->process.counters.before_restart = 6;
	s->snapshot.dumps_missing = 2;
	atomic_store(&place->lost[REGION_LOSS_NO_BUFFER].samples, 9);
	snprintf(expected, sizeof(expected),
	    "  samples 100 taken, 18 without a stack; inherited without a stack: 4; sampled before restart: "
	    "6; %s: 9; not dumped by the kernel: 2; %s: 13; %s: 5; no memory for: 3\n",
	    region_loss_name(REGION_LOSS_NO_BUFFER), unwind_outcome_name(UNWIND_TRUNCATED),
	    unwind_outcome_name(UNWIND_NO_CFI));
	assert_non_null(strstr(print(s, 0), expected));
	s->snapshot.rings_were_full = true;
	assert_non_null(strstr(print(s, 0), "; no room in the rings: 2;"));
	/* All of them, as high as a hostile target makes them: one line, cut short at worst. */
	for (uint32_t i = 0; i < REGION_LOSS_COUNT; i++)
		atomic_store(&place->lost[i].samples, UINT64_MAX);
	for (uint32_t i = 0; i < UNWIND_OUTCOMES; i++)
		s->process.counters.outcome[i] = UINT64_MAX;
	s->snapshot.view.lost_alloc.samples = s->snapshot.view.allocated.samples = UINT64_MAX;
	s->process.counters.before_restart = s->snapshot.view.lost_inherited = 0;
	assert_non_null(strstr(print(s, 0), "  samples 18446744073709551615 taken"));
	assert_int_equal(s->row.block[strlen(s->row.block) - 1], '\n');
}

static void children_without_a_place_are_told_of_by_the_image(void **state)
{
	struct scene *s = *state;

	atomic_store(&region_header(s->run->region)->places_exhausted, 3);
	assert_non_null(strstr(print(s, 0), "\n  not profiled: 3 forked children without a free place\n"));
	atomic_store(&region_header(s->run->region)->not_cut_off, 2);
	assert_non_null(
	    strstr(print(s, 0), "\n  not profiled since they changed their user id: 2 forked children that"));
	atomic_store(&region_header(s->run->region)->not_afforded, 4);
	assert_non_null(strstr(
	    print(s, 0), "\n  not profiled since they set themselves a limit of memory: 4 processes, whose"));
	s->process.place = 1; /* a child's own summary does not tell of it once more */
	assert_null(strstr(print(s, 0), "not profiled"));
}

/* Then there is no bound: nothing sampled says nothing. */
static void what_the_hook_cannot_see(void **state)
{
	struct scene *s = *state;

	strcpy(s->snapshot.unseen.facts.allocator, "_rjem_malloc");
	strcpy(s->snapshot.unseen.facts.allocator_file, "serve");
	unseen_describe(&s->snapshot.unseen.texts, &s->snapshot.unseen.facts);
	hold(&s->snapshot.view, &s->live, 0, 0, 0);
	s->snapshot.view.allocated.samples = 0;
	assert_non_null(strstr(print(s, 0), "\n  no allocation was sampled\n"));
	assert_non_null(strstr(
	    s->row.block, "\n  not seen: what is allocated by the allocator inside serve (_rjem_malloc);"));
	assert_true(s->row.hidden);
	s->snapshot.unseen.facts = (struct unseen_facts){.stripped = true};
	unseen_describe(&s->snapshot.unseen.texts, &s->snapshot.unseen.facts);
	assert_non_null(strstr(print(s, 0),
	    "\n  no allocation was sampled (it is stripped: an allocator inside may be hidden)\n"));
	/* All that the kernel knows of is too little to hide anything. */
	s->snapshot.unseen.facts.measured = true;
	assert_non_null(strstr(print(s, 0), "sampled (less than about 191.7 KiB was allocated, 95 %)\n"));
}

static void a_profile_that_was_not_written_is_not_shown(void **state)
{
	struct scene *s = *state;

	print(s, -ENOSPC);
	assert_null(summary_row_path(&s->row));
}

/* The title is the target's word. */
static void a_title_adds_no_lines(void **state)
{
	struct scene *s = *state;

	strcpy(s->process.target.title, "a\nheaptap: b\x1b[2J\xff");
	const char *block = print(s, 0);
	assert_ptr_equal(strstr(block, "a?heaptap: b?[2J? (pid 4711) exited"), block);
	assert_string_equal(s->row.title, "a?heaptap: b?[2J?");
}

static void which_row_is_commands(void **state)
{
	struct scene *s = *state;

	s->process.target.command = true;
	print(s, 0);
	assert_true(s->row.command);
	s->process.target.end = TARGET_EXEC; /* of its last program, which is another */
	print(s, 0);
	assert_false(s->row.command);
	strcpy(s->process.target.unprofiled, "executed /bin/sudo, which is not profiled");
	print(s, 0);
	assert_true(s->row.command);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(all_is_well),
	    TEST(every_allocation_recorded),
	    TEST(nothing_has_an_upper_bound),
	    TEST(the_peak),
	    TEST(every_loss_by_its_cause),
	    TEST(children_without_a_place_are_told_of_by_the_image),
	    TEST(what_the_hook_cannot_see),
	    TEST(a_profile_that_was_not_written_is_not_shown),
	    TEST(which_row_is_commands),
	    TEST(a_title_adds_no_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
