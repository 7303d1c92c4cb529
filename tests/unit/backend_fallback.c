/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps from uprobe to breakpoint to copy: by what a region's numbers say, and with real breakpoints on
 * real processes where the kernel permits them. The clock is the test's.
 */
#include "sampler/books/backend_fallback.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include <cmocka.h>

#include "sampler/books/program_run.h"
#include "sampler/linux/thread_facts.h"
#include "tests/unit/region_fixture.h"
#include "tests/unit/stranger.h"

#define LOOK_NS (UINT64_C(500) * 1000000)

enum { SILENT = 8, BREAKPOINTS = 4 };

static void never_called(void)
{
	__asm__ volatile("");
}

/* One program run with one process, whose stacks are to come by an event. */
struct scene {
	struct backend_fallback fallback;
	struct probe probe;
	struct books books;
	struct program_run *run;
	struct process process;
	uint64_t now_ns;
};

static void add_run(struct scene *s)
{
	struct region *region = malloc(sizeof(*region));

	fixture_open(region, 1024);
	s->run = program_run_new(region, 1);
	assert_non_null(s->run);
	assert_int_equal(books_add_run(&s->books, s->run), 0);
	s->run->life.state = RUN_SETTLED;
	s->run->life.trigger_address = (uintptr_t)never_called;
	s->process = (struct process){.run = s->run, .target.pidfd = -1};
	s->run->places.at[0] = &s->process;
	s->run->places.end = 1;
	s->run->places.live = 1;
}

static void remove_run(struct scene *s)
{
	books_remove_run(s->run);
	program_run_free(s->run);
}

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	*state = s;
	add_run(s);
	s->probe.backend = BACKEND_UPROBE;
	s->fallback = (struct backend_fallback){.probe = &s->probe, .verbosity = -1, .may_yield = true};
	s->now_ns = 1000 * LOOK_NS;
	return 0;
}

static int close_scene(void **state)
{
	struct scene *s = *state;

	remove_run(s);
	books_fini(&s->books);
	if (s->process.target.pidfd >= 0)
		close(s->process.target.pidfd);
	if (s->probe.rings)
		probe_close(&s->probe);
	free(s);
	return 0;
}

static void begin(struct scene *s)
{
	backend_fallback_begin(&s->fallback, s->run, &s->process);
}

static void trigger(struct scene *s, uint64_t samples)
{
	atomic_fetch_add(&region_place(s->run->region, 0)->triggered, samples);
}

static void arrive(struct scene *s, uint64_t stacks)
{
	s->process.counters.taken += stacks;
	s->process.counters.dumps += stacks;
}

/* The next look; ring_lost as it was, or not. */
static bool look(struct scene *s, uint64_t ring_lost)
{
	s->now_ns += LOOK_NS;
	return backend_fallback_tend(&s->fallback, &s->books, ring_lost, s->now_ns);
}

static enum region_mode mode_of(const struct scene *s)
{
	return (enum region_mode)region_header(s->run->region)->mode;
}

static void sixteen_samples_without_a_stack_are_too_many(void **state)
{
	struct scene *s = *state;

	begin(s);
	assert_int_equal(s->run->capture.backend, BACKEND_UPROBE);
	assert_int_equal(backend_fallback_mode(&s->fallback), REGION_MODE_TRIGGER);
	trigger(s, SILENT);
	look(s, 0);
	assert_int_equal(s->run->capture.backend, BACKEND_UPROBE);
	trigger(s, SILENT - 1);
	look(s, 0);
	assert_int_equal(s->run->capture.backend, BACKEND_UPROBE);
	trigger(s, 1); /* in however many looks */
	look(s, 0);
	/* Its process cannot be found, so there is nothing to put a breakpoint on. */
	assert_int_equal(s->run->capture.backend, BACKEND_COPY);
	assert_int_equal(mode_of(s), REGION_MODE_COPY);
	assert_int_equal(s->fallback.to_copy, 1);
	assert_int_equal(s->fallback.causes[BACKEND_FALLBACK_SILENT], 1);
	/* What lies in the rings came by the uprobe still. */
	assert_int_equal(s->run->capture.event_backend, BACKEND_UPROBE);
	trigger(s, 100);
	look(s, 0);
	look(s, 0);
	assert_int_equal(s->fallback.to_copy, 1); /* there is no further down */
}

static void one_stack_is_enough_to_stay(void **state)
{
	struct scene *s = *state;

	begin(s);
	for (int i = 0; i < 20; i++) {
		trigger(s, 1000);
		arrive(s, i % 2); /* every other look */
		look(s, 0);
	}
	/* What was due up to the last that came is forgiven. */
	look(s, 0);
	trigger(s, SILENT);
	look(s, 0);
	assert_int_equal(s->run->capture.backend, BACKEND_UPROBE);
}

/* Those that the hook copied or walked itself say nothing of the event. */
static void other_stacks_do_not_count(void **state)
{
	struct scene *s = *state;

	begin(s);
	for (int i = 0; i < 2; i++) {
		trigger(s, SILENT);
		s->process.counters.taken += 12;
		s->process.counters.copied += 5;
		s->process.counters.walked += 7;
		look(s, 0);
	}
	assert_int_equal(s->run->capture.backend, BACKEND_COPY);
}

static void full_rings_explain_it(void **state)
{
	struct scene *s = *state;

	begin(s);
	for (uint64_t i = 1; i < 20; i++) {
		trigger(s, 1000);
		look(s, i / 2); /* the kernel has lost some, at every other look */
	}
	assert_int_equal(s->run->capture.backend, BACKEND_UPROBE);
	for (int i = 0; i < 2; i++) { /* and none since */
		trigger(s, SILENT);
		look(s, 9);
	}
	assert_int_equal(s->run->capture.backend, BACKEND_COPY);
}

static void a_number_that_goes_back_proves_nothing(void **state)
{
	struct scene *s = *state;

	begin(s);
	for (int i = 0; i < 20; i++) {
		atomic_store(&region_place(s->run->region, 0)->triggered, i % 2 ? 0 : UINT64_MAX / 2 - 1);
		look(s, 0);
	}
	assert_int_equal(s->run->capture.backend, BACKEND_UPROBE);
}

static void looks_have_their_time(void **state)
{
	struct scene *s = *state;

	begin(s);
	look(s, 0);
	for (int i = 0; i < 20; i++) {
		trigger(s, SILENT);
		backend_fallback_tend(&s->fallback, &s->books, 0, s->now_ns + LOOK_NS - 1);
	}
	assert_int_equal(s->run->capture.backend, BACKEND_UPROBE);
}

static void who_has_not_settled_or_has_ended_is_left_alone(void **state)
{
	struct scene *s = *state;

	begin(s);
	s->run->life.state = RUN_READY;
	for (int i = 0; i < 4; i++, look(s, 0))
		trigger(s, SILENT);
	s->run->life.state = RUN_SETTLED;
	s->process.target.closed = true;
	for (int i = 0; i < 4; i++, look(s, 0))
		trigger(s, SILENT);
	assert_int_equal(s->run->capture.backend, BACKEND_UPROBE);
}

/* Programs that map another file than the uprobe is on: the second says that the third will be no better. */
static void two_images_without_uprobe_hits_end_the_uprobe_for_all_to_come(void **state)
{
	struct scene *s = *state;
	bool changed = false;
	char text[256];

	backend_fallback_describe(&s->fallback, text, sizeof(text));
	assert_string_equal(text, "");
	for (int n = 0; n < 2; n++) {
		assert_false(changed);
		assert_int_equal(backend_fallback_mode(&s->fallback), REGION_MODE_TRIGGER);
		if (n > 0) {
			remove_run(s);
			add_run(s);
		}
		begin(s);
		for (int i = 0; i < 2; i++) {
			trigger(s, SILENT);
			changed = look(s, 0);
		}
	}
	assert_true(changed);
	assert_int_equal(backend_fallback_mode(&s->fallback), REGION_MODE_COPY);
	remove_run(s);
	add_run(s);
	begin(s);
	assert_int_equal(s->run->capture.backend, BACKEND_COPY);
	backend_fallback_describe(&s->fallback, text, sizeof(text));
	assert_string_equal(text,
	    "backend changed: 0 programs to breakpoint, 2 to copy (breakpoint refused 0, no stacks came 2, "
	    "too "
	    "many context switches 0)");
}

/* ---- real breakpoints */

static bool perf_there(struct scene *s)
{
	memset(&s->probe, 0, sizeof(s->probe));
	if (probe_open(&s->probe, BACKEND_BREAKPOINT, "", 4096, 1 << 19) == 0)
		return true;
	print_message("no breakpoints here: %s\n", s->probe.reason);
	return false;
}

/* A process of the program run that lives. */
static struct stranger live(struct scene *s, void (*body)(int, void *), void *argument)
{
	struct stranger stranger = stranger_start(body, argument);

	s->process.target.pid = stranger.pid;
	s->process.target.pidfd = dup(stranger.pidfd);
	return stranger;
}

static void a_breakpoint_is_put_on_a_process_and_taken_off(void **state)
{
	struct scene *s = *state;

	if (!perf_there(s))
		skip();
	struct stranger stranger = live(s, NULL, NULL);
	begin(s);
	assert_int_equal(s->run->capture.backend, BACKEND_BREAKPOINT);
	assert_int_equal(s->run->capture.event_backend, BACKEND_BREAKPOINT);
	assert_int_equal(mode_of(s), REGION_MODE_TRIGGER);
	assert_int_equal(s->run->capture.fd_count, rings_count(s->probe.rings));
	/* And nothing comes of it. */
	for (int i = 0; i < 2; i++) {
		trigger(s, SILENT);
		look(s, 0);
	}
	assert_int_equal(s->run->capture.backend, BACKEND_COPY);
	assert_int_equal(s->run->capture.fd_count, 0);
	assert_int_equal(mode_of(s), REGION_MODE_COPY);
	assert_int_equal(s->fallback.runs_without_uprobe_hits, 0); /* it was no uprobe */
	stranger_end(&stranger);
}

static void a_silent_uprobe_is_followed_by_a_breakpoint(void **state)
{
	struct scene *s = *state;

	if (!perf_there(s))
		skip();
	s->probe.backend = BACKEND_UPROBE;
	struct stranger stranger = live(s, NULL, NULL);
	begin(s);
	assert_int_equal(s->run->capture.backend, BACKEND_UPROBE);
	for (int i = 0; i < 2; i++) {
		trigger(s, SILENT);
		look(s, 0);
	}
	assert_int_equal(s->run->capture.backend, BACKEND_BREAKPOINT);
	assert_int_equal(s->fallback.to_breakpoint, 1);
	assert_int_equal(s->fallback.to_copy, 0);
	/* It has its own time to prove itself. */
	trigger(s, SILENT);
	look(s, 0);
	assert_int_equal(s->run->capture.backend, BACKEND_BREAKPOINT);
	trigger(s, SILENT);
	look(s, 0);
	assert_int_equal(s->run->capture.backend, BACKEND_COPY);
	stranger_end(&stranger);
}

/* A debugger has all the debug registers. */
static void a_refused_breakpoint_means_copies(void **state)
{
	struct scene *s = *state;
	int fds[BREAKPOINTS];

	if (!perf_there(s))
		skip();
	struct stranger stranger = live(s, NULL, NULL);
	for (int i = 0; i < BREAKPOINTS; i++) {
		struct perf_event_attr attr = {.size = sizeof(attr),
		    .type = PERF_TYPE_BREAKPOINT,
		    .bp_type = HW_BREAKPOINT_X,
		    .bp_addr = (uintptr_t)never_called + 4096 * (uint64_t)(i + 1),
		    .bp_len = sizeof(long),
		    .exclude_kernel = 1};

		fds[i] = (int)syscall(SYS_perf_event_open, &attr, stranger.pid, -1, -1, 0);
	}
	begin(s);
	assert_int_equal(s->run->capture.backend, BACKEND_COPY);
	assert_int_equal(s->run->capture.fd_count, 0);
	assert_int_equal(mode_of(s), REGION_MODE_COPY);
	assert_int_equal(s->fallback.causes[BACKEND_FALLBACK_REFUSED], 1);
	for (int i = 0; i < BREAKPOINTS; i++)
		close(fds[i]);
	stranger_end(&stranger);
}

/* Its end is nobody's failure. */
static void a_process_that_has_ended_is_not_a_refusal(void **state)
{
	struct scene *s = *state;

	if (!perf_there(s))
		skip();
	struct stranger stranger = live(s, NULL, NULL);
	stranger_end(&stranger);
	begin(s);
	assert_int_equal(s->run->capture.fd_count, 0);
	assert_int_equal(s->fallback.causes[BACKEND_FALLBACK_REFUSED], 0);
	assert_int_equal(s->fallback.to_copy, 0);
}

static void forget_region(int fd, void *argument)
{
	const struct region *region = argument;
	char byte = (char)munmap(region->base, region->offsets.end);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* It executes another program, which must not keep our breakpoint to its end. */
static void a_process_that_has_moved_on_gets_none(void **state)
{
	struct scene *s = *state;
	char byte;

	if (!perf_there(s))
		skip();
	struct stranger stranger = live(s, forget_region, s->run->region);
	assert_int_equal(read(stranger.fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	begin(s);
	assert_int_equal(s->run->capture.fd_count, 0);
	assert_int_equal(s->run->capture.backend, BACKEND_COPY);
	assert_int_equal(s->fallback.causes[BACKEND_FALLBACK_REFUSED], 0);
	stranger_end(&stranger);
}

/* Goes to sleep for every packet. */
static void echo(int fd, void *unused)
{
	char byte;

	(void)unused;
	while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1)
		;
}

static void switch_often(const struct stranger *stranger, uint64_t times)
{
	uint64_t before, after = 0;
	char byte = 0;

	assert_int_equal(thread_facts_switches(stranger->pid, &before), 0);
	while (after < before + times) {
		for (int i = 0; i < 100; i++) {
			assert_int_equal(write(stranger->fd, &byte, 1), 1);
			assert_int_equal(read(stranger->fd, &byte, 1), 1);
		}
		assert_int_equal(thread_facts_switches(stranger->pid, &after), 0);
	}
}

/* However long it takes here: the test says that it was a second. */
static void many_context_switches_are_too_dear(void **state)
{
	struct scene *s = *state;

	if (!perf_there(s))
		skip();
	struct stranger stranger = live(s, echo, NULL);
	begin(s);
	for (int n = 0; n < 3; n++)
		look(s, 0);
	s->fallback.may_yield = false; /* it was asked for */
	switch_often(&stranger, THREAD_FACTS_SWITCHES_PER_SECOND_MAX + 2000);
	look(s, 0), look(s, 0);
	assert_int_equal(s->run->capture.backend, BACKEND_BREAKPOINT);
	s->fallback.may_yield = true;
	for (int n = 0; n < 30; n++) /* the same in ten seconds and more */
		look(s, 0);
	assert_int_equal(s->run->capture.backend, BACKEND_BREAKPOINT);
	switch_often(&stranger, THREAD_FACTS_SWITCHES_PER_SECOND_MAX + 2000);
	look(s, 0), look(s, 0);
	assert_int_equal(s->run->capture.backend, BACKEND_COPY);
	assert_int_equal(s->fallback.causes[BACKEND_FALLBACK_SWITCHES], 1);
	stranger_end(&stranger);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(sixteen_samples_without_a_stack_are_too_many),
	    TEST(one_stack_is_enough_to_stay),
	    TEST(other_stacks_do_not_count),
	    TEST(full_rings_explain_it),
	    TEST(a_number_that_goes_back_proves_nothing),
	    TEST(looks_have_their_time),
	    TEST(who_has_not_settled_or_has_ended_is_left_alone),
	    TEST(two_images_without_uprobe_hits_end_the_uprobe_for_all_to_come),
	    TEST(a_breakpoint_is_put_on_a_process_and_taken_off),
	    TEST(a_silent_uprobe_is_followed_by_a_breakpoint),
	    TEST(a_refused_breakpoint_means_copies),
	    TEST(a_process_that_has_ended_is_not_a_refusal),
	    TEST(a_process_that_has_moved_on_gets_none),
	    TEST(many_context_switches_are_too_dear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
