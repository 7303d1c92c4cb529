/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that execute another program: which of them is profiled, and what is said of the others. */
#include "sampler/books/executed.h"
#include "sampler/books/registry.h"
#include "sampler/books/unprofiled.h"
#include "sampler/linux/thread_facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/registry_scene.h"

static void another_program_in_the_same_process(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	const struct program_run *before = process_life_find(&s->registry, shell.pid)->run;
	assert_int_equal(tell(&shell, "echo 5; exec cat\n"), 5);
	assert_int_equal(tell(&shell, "6\n"), 6); /* cat's answer: the first look finds both programs */
	LOOK_UNTIL(s, s->closed_count);
	assert_int_equal(s->closed[0].taken, s->closed[0].counted);
	assert_int_equal(s->closed[0].pid, shell.pid);
	assert_int_equal(s->closed[0].end, TARGET_EXEC);
	assert_string_equal(s->closed[0].title, "sh");
	const struct process *process = process_life_find(&s->registry, shell.pid);
	assert_non_null(process);
	assert_ptr_not_equal(process->run, before);
	assert_string_equal(process->target.title, "cat");
	assert_int_equal(s->registry.lives.arrivals, 2);
	stranger_end(&shell);
	LOOK_UNTIL(s, s->closed_count == 2 || registry_empty(&s->registry));
}

/* What it took after the last drain is read before its books are closed. */
static void a_program_that_is_never_seen_in_the_same_process(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	drain_all(&s->registry);
	const struct process *process = process_life_find(&s->registry, shell.pid);
	const uint64_t taken = process->counters.taken;
	assert_int_equal(tell(&shell, "a=abcdefgh; b=$a$a; c=$b$b; echo 5; unset LD_PRELOAD; exec cat\n"), 5);
	assert_int_equal(tell(&shell, "6\n"), 6);
	for (uint64_t end_ns = clock_now_ns() + DEADLINE_S * SECOND_NS; !s->closed_count;) {
		registry_look_runs(&s->registry);
		usleep(2000);
		assert_true(clock_now_ns() < end_ns);
	}
	assert_int_equal(s->closed[0].end, TARGET_EXEC);
	assert_true(s->closed[0].counted > taken);
	assert_int_equal(s->closed[0].taken, s->closed[0].counted);
	stranger_end(&shell);
	LOOK_UNTIL(s, registry_empty(&s->registry));
}

/* Both ends are found at once, and nobody has looked at the second program before. */
static void another_program_that_has_ended_too(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	assert_int_equal(tell(&shell, "echo 5; exec cat\n"), 5);
	assert_int_equal(tell(&shell, "6\n"), 6);
	stranger_end(&shell);
	registry_look_ended(&s->registry);
	assert_true(s->closed_count > 0);
	assert_string_equal(s->closed[0].title, "sh");
	assert_int_equal(s->closed[0].end, TARGET_EXEC);
	LOOK_UNTIL(s, s->closed_count == 2);
	assert_int_equal(s->closed[1].end, TARGET_UNSEEN);
}

/* Told by a record that was read during the look: it has not had the time yet to load the library. */
static void a_program_that_was_executed_after_the_look_began(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	struct process *process = (struct process *)(uintptr_t)process_life_find(&s->registry, shell.pid);
	executed_note(process, "other", clock_now_ns() + 3600 * SECOND_NS);
	assert_string_not_equal(process->target.unprofiled, "");
	s->registry.looks.linger_ns = 0; /* every look is due */
	registry_look_runs(&s->registry);
	assert_int_equal(s->closed_count, 0);
	process->executed.noted_ns = 0; /* long ago, however short the machine has been up */
	s->registry.looks.linger_ns = 0;
	registry_look_runs(&s->registry);
	assert_int_equal(s->closed_count, 1);
	assert_int_equal(s->closed[0].end, TARGET_EXEC);
	stranger_end(&shell);
}

/* At the first look it executes another program, of which only the kernel has told: that one is still being
 * loaded, or it has ended before it was. */
static void a_program_that_was_executed_before_the_first_look(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	for (int late = 0; late < 2; late++) {
		struct stranger shell = start_shell(s);

		assert_int_equal(tell(&shell, "echo 5; unset LD_PRELOAD; exec cat\n"), 5);
		assert_int_equal(tell(&shell, "6\n"), 6);
		registry_look_claims(&s->registry);
		size_t cursor = 0;
		struct process *process =
		    table_next(&s->intake.books.processes, (uint64_t)shell.pid, &cursor);
		assert_non_null(process);
		assert_int_equal(process->target.pidfd, -1);
		executed_note(process, "cat", clock_now_ns() + 3600 * SECOND_NS);
		registry_look_ended(&s->registry);
		assert_int_equal(s->closed_count, 0);
		if (late)
			process->executed.noted_ns = 0; /* long ago, however short the machine has been up */
		else
			stranger_end(&shell);
		registry_look_ended(&s->registry);
		assert_int_equal(s->closed_count, 1);
		assert_int_equal(s->closed[0].end, TARGET_EXEC);
		assert_int_equal(s->registry.unprofiled.executed, 1 + late);
		s->closed_count = 0;
		if (late)
			stranger_end(&shell);
	}
}

static void tell_of_the_exec(struct scene *s)
{
	executed_note(s->loading, "cat", clock_now_ns() + 3600 * SECOND_NS);
	s->meanwhile = NULL;
}

/* The kernel's record is read when it was noted already that nobody was found: it is being loaded still. */
static void a_program_that_is_told_of_after_the_end_was_noted(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	assert_int_equal(tell(&shell, "echo 5; unset LD_PRELOAD; exec cat\n"), 5);
	assert_int_equal(tell(&shell, "6\n"), 6);
	registry_look_claims(&s->registry);
	size_t cursor = 0;
	s->loading = table_next(&s->intake.books.processes, (uint64_t)shell.pid, &cursor);
	assert_non_null(s->loading);
	s->loading->target.unprofiled[0] = '\0'; /* as if it had not been looked at yet */
	struct stranger another = start_shell(s);
	assert_int_equal(tell(&another, "echo 1\n"), 1);
	s->meanwhile = tell_of_the_exec;
	registry_look_ended(&s->registry);
	assert_null(s->meanwhile);
	assert_int_equal(s->closed_count, 0);
	stranger_end(&shell);
	registry_look_ended(&s->registry);
	assert_int_equal(s->closed_count, 1);
	assert_int_equal(s->closed[0].end, TARGET_EXEC);
	stranger_end(&another);
}

/* No record tells of it: by the copy backend there are none. */
static void a_child_that_is_found_after_its_exec(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	assert_int_equal(tell(&shell, "(a=abcdefgh; b=$a$a; echo 5; unset LD_PRELOAD; exec cat)\n"), 5);
	assert_int_equal(tell(&shell, "6\n"), 6);
	LOOK_UNTIL(s, s->intake.books.processes.count == 2);
	struct process *process = s->intake.books.processes.entries[1].item;
	registry_look_ended(&s->registry);
	assert_string_equal(process->target.unprofiled,
	    "executed cat, which is not profiled: it has not loaded libheaptap.so");
	assert_int_equal(s->closed_count, 0);
	process->executed.noted_ns = 0; /* long ago, however short the machine has been up */
	registry_look_ended(&s->registry);
	assert_int_equal(s->closed_count, 1);
	assert_int_equal(s->closed[0].end, TARGET_EXEC);
	assert_int_equal(s->registry.unprofiled.executed, 1);
	stranger_end(&shell);
}

/* Where the program run's own process has another number than it says, the child's is somebody else's
 * here. */
static void a_child_in_a_pid_namespace_is_not_taken_for_another(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	region_place(newest(s)->region, 0)->pid = 1;
	assert_int_equal(tell(&shell, "(a=abcdefgh; b=$a$a; echo 5; unset LD_PRELOAD; exec cat)\n"), 5);
	assert_int_equal(tell(&shell, "6\n"), 6);
	LOOK_UNTIL(s, s->intake.books.processes.count == 2);
	registry_look_ended(&s->registry);
	assert_int_equal(s->closed_count, 1);
	assert_int_equal(s->closed[0].end, TARGET_UNSEEN);
	assert_int_equal(s->registry.unprofiled.executed, 0);
	stranger_end(&shell);
}

/* It is found when the program that it executed is known already. */
static void a_child_that_is_found_after_its_program(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	assert_int_equal(tell(&shell, "(a=abcdefgh; b=$a$a; echo 5; exec sh)\n"), 5);
	assert_int_equal(tell(&shell, "echo 6\n"), 6);
	registry_look_claims(&s->registry);
	assert_int_equal(
	    s->intake.books.processes.count, 2); /* both shells, and not what was before the second */
	s->registry.looks.linger_ns = s->registry.looks.executed_ns = clock_now_ns();
	registry_look_runs(&s->registry);
	assert_int_equal(s->intake.books.processes.count, 3);
	struct process *process = s->intake.books.processes.entries[2].item;
	assert_int_equal(process->place, 1);
	assert_int_equal(process->target.pidfd, -1);
	executed_note(process, "sh", clock_now_ns() + 3600 * SECOND_NS);
	registry_look_ended(&s->registry);
	assert_int_equal(s->closed_count, 1);
	assert_int_equal(s->closed[0].end, TARGET_EXEC);
	assert_int_equal(s->registry.unprofiled.executed, 0);
	stranger_end(&shell);
}

/* It was found to have an obstacle before it said so itself. Its parent is looked at again when all is over.
 */
static void a_child_that_declines_is_counted_once(void **state)
{
	struct scene *s = *state;
	struct program_run *declined = NULL;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	struct program_run *parent = newest(s);
	struct unfollowed *u = &parent->unfollowed;
	const pid_t child = (pid_t)tell(&shell, "(ulimit -v 200000; exec sleep 60) & echo $!\n");
	free(u->seen);
	u->seen = calloc(1, sizeof(*u->seen));
	u->seen_count = u->seen_capacity = 1;
	u->seen[0] = (struct unfollowed_child){.pid = child,
	    .ticks = thread_facts_birth(child).ticks,
	    .met_ns = clock_now_ns(),
	    .why = "its limit of address space",
	    .program = "sleep"};
	for (uint64_t end_ns = clock_now_ns() + DEADLINE_S * SECOND_NS; !s->registry.unprofiled.declined;) {
		registry_look_claims(&s->registry);
		usleep(2000);
		assert_true(clock_now_ns() < end_ns);
	}
	assert_int_equal(tell(&shell, "kill $!; wait; echo 7\n"), 7);
	books_each_run(run, &s->intake.books) if (run->life.declined) declined = run;
	assert_non_null(declined);
	registry_remove_run(&s->registry, declined);
	/* As if it had executed the program before it took a sample: its place is not looked at. */
	unprofiled_children_tend(parent, &s->registry.unprofiled, false, false, clock_now_ns());
	assert_int_equal(u->seen_count, 0);
	assert_int_equal(s->registry.unprofiled.declined, 1);
	assert_int_equal(s->registry.unprofiled.executed, 0);
	stranger_end(&shell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(another_program_in_the_same_process),
	    TEST(a_program_that_is_never_seen_in_the_same_process),
	    TEST(another_program_that_has_ended_too),
	    TEST(a_program_that_was_executed_after_the_look_began),
	    TEST(a_program_that_was_executed_before_the_first_look),
	    TEST(a_program_that_is_told_of_after_the_end_was_noted),
	    TEST(a_child_that_is_found_after_its_exec),
	    TEST(a_child_in_a_pid_namespace_is_not_taken_for_another),
	    TEST(a_child_that_is_found_after_its_program),
	    TEST(a_child_that_declines_is_counted_once),
	};

	return cmocka_run_group_tests(tests, find_library, NULL);
}
