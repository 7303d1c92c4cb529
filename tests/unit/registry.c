/* SPDX-License-Identifier: Apache-2.0 */
/* Who is being profiled, from the claim to the last look. */
#include "sampler/books/registry.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampler/intake/region_takeover.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/region_fixture.h"
#include "tests/unit/registry_scene.h"

/* Only kernels from 6.15 on tell the status of a process that somebody else has reaped. */
static bool is_end_of_stranger(enum target_end end)
{
	return end == TARGET_EXITED || end == TARGET_GONE;
}

static void a_program_from_its_claim_to_its_end(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	assert_true(registry_empty(&s->registry));
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	const struct process *process = process_life_find(&s->registry, shell.pid);
	assert_int_equal(s->registry.lives.arrivals, 1);
	assert_string_equal(process->target.title, "sh");
	assert_true(process->target.pidfd >= 0);
	assert_int_equal(process->target.end, TARGET_ALIVE);
	assert_int_equal(tell(&shell, "a=abcdefgh; b=$a$a; c=$b$b; echo 1\n"), 1);
	LOOK_UNTIL(s, process_samples(process) > 0 && process->counters.taken == process_samples(process));
	assert_int_equal(heap_total(process->heap).samples, process_samples(process));
	assert_int_equal(process->counters.taken, process->counters.copied);
	assert_int_equal(s->closed_count, 0);
	pid_t pid = shell.pid;
	stranger_end(&shell);
	LOOK_UNTIL(s, s->closed_count);
	assert_int_equal(s->closed[0].pid, pid);
	assert_true(is_end_of_stranger(s->closed[0].end));
	assert_int_equal(s->closed[0].taken, s->closed[0].counted);
	assert_null(process_life_find(&s->registry, pid));
	LOOK_UNTIL(s, registry_empty(&s->registry));
	assert_int_equal(s->closed_count, 1);
	assert_int_equal(s->registry.unprofiled.incomplete, 0);
}

/* Its books are closed by the first look after the end. */
static void the_last_samples_before_the_end_are_read(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	drain_all(&s->registry);
	const struct process *process = process_life_find(&s->registry, shell.pid);
	uint64_t taken = process->counters.taken;
	assert_int_equal(tell(&shell, "a=abcdefgh; b=$a$a; c=$b$b; echo 1\n"), 1);
	assert_true(process_samples(process) > taken);
	stranger_end(&shell);
	registry_look_ended(&s->registry);
	assert_int_equal(s->closed_count, 1);
	assert_true(s->closed[0].taken > taken);
	assert_int_equal(s->closed[0].taken, s->closed[0].counted);
}

static struct stranger *at_the_first_poll;

/* Of the sampler: the moment at which it asks whether a process has ended. */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};
	struct stranger *shell = at_the_first_poll;

	at_the_first_poll = NULL;
	if (shell) {
		assert_int_equal(tell(shell, "a=abcdefgh; b=$a$a; c=$b$b; echo 1\n"), 1);
		stranger_end(shell);
	}
	return ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL);
}

/* It samples and ends while the sampler looks who has ended. */
static void samples_and_an_end_during_the_look(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	drain_all(&s->registry);
	uint64_t taken = process_life_find(&s->registry, shell.pid)->counters.taken;
	at_the_first_poll = &shell;
	registry_look_ended(&s->registry);
	assert_int_equal(s->closed_count, 1);
	assert_true(s->closed[0].taken > taken);
	assert_int_equal(s->closed[0].taken, s->closed[0].counted);
}

/* Its program run, its samples and its end are found in one drain, before anybody has looked at the
 * program run. */
static void a_process_that_has_ended_before_it_was_seen(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	assert_int_equal(tell(&shell, "a=abcdefgh; b=$a$a; c=$b$b; echo 1\n"), 1);
	stranger_end(&shell);
	assert_true(s->intake.find_runs(s->intake.context));
	drain_all(&s->registry);
	registry_look_ended(&s->registry);
	assert_int_equal(s->closed_count, 1);
	assert_true(s->closed[0].taken > 0);
	LOOK_UNTIL(s, registry_empty(&s->registry));
	assert_int_equal(s->closed_count, 1);
}

/* It lives, and its place is not given to others. */
static void a_process_that_is_met_when_no_descriptor_is_left(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	assert_int_equal(tell(&shell, "a=abcdefgh; b=$a$a; c=$b$b; echo 1\n"), 1);
	assert_true(s->intake.find_runs(s->intake.context));
	struct rlimit before = descriptors_take_away();
	for (int i = 0; i < 3; i++) {
		s->registry.looks.linger_ns = 0; /* the look is due */
		registry_look_runs(&s->registry);
		registry_look_ended(&s->registry);
	}
	descriptors_give_back(before);
	assert_int_equal(s->closed_count, 0);
	assert_int_equal(s->registry.lives.arrivals, 1);
	assert_null(process_life_find(&s->registry, shell.pid));
	registry_look_ended(&s->registry);
	const struct process *process = process_life_find(&s->registry, shell.pid);
	assert_non_null(process);
	assert_string_equal(process->target.title, "sh");
	assert_int_equal(tell(&shell, "d=$c$c; e=$d$d; echo 2\n"), 2);
	stranger_end(&shell);
	LOOK_UNTIL(s, s->closed_count);
	assert_true(is_end_of_stranger(s->closed[0].end));
	assert_int_equal(s->closed[0].taken, s->closed[0].counted);
}

static void a_forked_child_has_a_place_of_its_own(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	/* The child allocates, says so, and waits for the end of the socket. */
	pid_t child = (pid_t)tell(&shell, "exec 3<&0; (x=a$$; y=$x$x$x; sh -c 'echo $PPID'; read z <&3) &\n");
	LOOK_UNTIL(s, process_life_find(&s->registry, child) && process_life_find(&s->registry, shell.pid));
	const struct process *process = process_life_find(&s->registry, child);
	const struct process *parent = process_life_find(&s->registry, shell.pid);
	assert_ptr_equal(process->run, parent->run);
	assert_int_not_equal(process->place, 0);
	assert_int_equal(parent->place, 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	LOOK_UNTIL(s, closed_of(s, child));
	assert_null(closed_of(s, shell.pid));
	assert_ptr_equal(process_life_find(&s->registry, shell.pid), parent);
	pid_t pid = shell.pid;
	stranger_end(&shell);
	LOOK_UNTIL(s, closed_of(s, pid));
	LOOK_UNTIL(s, registry_empty(&s->registry));
}

/* The front reaps it, and knows how it ended. */
static void end_of_command(struct scene *s, bool told_late)
{
	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	if (!told_late)
		s->launch.pid = shell.pid;
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	if (told_late) {
		assert_false(s->registry.unprofiled.command_seen);
		s->launch.pid = shell.pid;
		newest(s)->life.declined = "a reason"; /* that came before, too */
		process_life_know_command(&s->registry);
		newest(s)->life.declined = NULL;
		assert_string_equal(s->registry.unprofiled.command_declined_text, "a reason");
	}
	assert_true(s->registry.unprofiled.command_seen);
	stranger_end(&shell);
	for (int i = 0; i < 20; i++) {
		look(s);
		registry_look_ended(&s->registry);
	}
	assert_int_equal(s->closed_count, 0);
	s->launch.ended = s->launch.status_known = true;
	s->launch.status = 7 << 8;
	registry_look_ended(&s->registry);
	assert_int_equal(s->closed_count, 1);
	assert_int_equal(s->closed[0].end, TARGET_EXITED);
	assert_int_equal(s->closed[0].status, 7 << 8);
}

static void the_commands_end_waits_for_its_status(void **state)
{
	end_of_command(*state, false);
}

static void a_command_that_is_told_of_after_it_was_found(void **state)
{
	end_of_command(*state, true);
}

static void an_image_stays_until_its_profiles_are_written(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	s->hold = true;
	struct stranger shell = start_shell(s);
	assert_int_equal(tell(&shell, "echo 1\n"), 1);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	stranger_end(&shell);
	LOOK_UNTIL(s, s->closed_count);
	for (uint64_t end_ns = clock_now_ns() + SECOND_NS; clock_now_ns() < end_ns;)
		look(s); /* longer than it lingers */
	assert_false(registry_empty(&s->registry));
	process_life_release(&s->registry, s->held[0]);
	/* Children may still ask for stacks that they inherited from it. */
	assert_ptr_equal(newest(s)->places.at[0], s->held[0]);
	LOOK_UNTIL(s, registry_empty(&s->registry));
}

static void a_claim_that_comes_to_nothing_is_given_up_and_counted(void **state)
{
	struct scene *s = *state;
	struct region_pool_page page;
	struct ticket ticket;
	char path[64], text[256];

	unprofiled_describe(&s->registry.unprofiled, s->registry.setup.pool, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(sscanf(region_pool_env(s->pool), "%63[^:]", path), 1);
	FILE *file = fopen(path, "r");
	assert_int_equal(fread(&page, sizeof(page), 1, file), 1);
	fclose(file);
	file = fopen(page.tickets_path, "r");
	setbuf(file, NULL);
	assert_int_equal(fread(&ticket, sizeof(ticket), 1, file), 1);
	fclose(file);
	look(s);
	assert_false(registry_empty(&s->registry));
	LOOK_UNTIL(s, registry_empty(&s->registry));
	assert_int_equal(s->registry.unprofiled.incomplete, 1);
	unprofiled_describe(&s->registry.unprofiled, s->registry.setup.pool, text, sizeof(text));
	assert_string_equal(text, "not profiled: 1 program that did not finish attaching");
	assert_int_equal(s->registry.lives.arrivals, 0);
}

/* The look takes so long that the limit for claims is over when it comes to what was claimed during it. */
static void come_to_it_late(struct scene *s)
{
	books_each_run(run, &s->intake.books) if (!program_run_is_ready(run))
	{
		run->claimed_ns -= 10 * SECOND_NS;
		stranger_end(&s->late);
		s->meanwhile = NULL;
	}
}

/* A sample is read meanwhile, and it might be of a program run that is not known to be ready. */
static void find_it_ready(struct scene *s)
{
	assert_true(s->intake.find_runs(s->intake.context));
	stranger_end(&s->late);
	s->meanwhile = NULL;
}

static void start_another(struct scene *s)
{
	s->late = start_shell(s);
	assert_int_equal(tell(&s->late, "a=abcdefgh; b=$a$a; c=$b$b; echo 1\n"), 1);
	s->meanwhile = s->then;
}

static void start_another_in_the_look(struct scene *s, void (*then)(struct scene *s))
{
	REQUIRE_LIBRARY();
	struct stranger first = start_shell(s), second = start_shell(s);
	assert_int_equal(tell(&first, "echo 1\n"), 1);
	assert_int_equal(tell(&second, "echo 1\n"), 1);
	s->meanwhile = start_another;
	s->then = then;
	s->registry.looks.linger_ns = 0; /* the look is due */
	registry_look_runs(&s->registry);
	assert_null(s->meanwhile);
	LOOK_UNTIL(s, s->closed_count);
	assert_int_equal(s->registry.unprofiled.incomplete, 0);
	assert_true(s->closed[0].taken > 0);
	stranger_end(&first);
	stranger_end(&second);
	LOOK_UNTIL(s, registry_empty(&s->registry));
	assert_int_equal(s->closed_count, 3);
}

static void a_program_that_is_looked_at_late_is_profiled(void **state)
{
	start_another_in_the_look(*state, come_to_it_late);
}

static void a_program_that_is_found_ready_in_the_look_is_profiled(void **state)
{
	start_another_in_the_look(*state, find_it_ready);
}

static void a_changed_period_reaches_who_is_there_and_who_comes(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger first = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, first.pid));
	registry_set_period(&s->registry, 12345);
	struct stranger second = start_shell(s);
	LOOK_UNTIL(s, process_life_find(&s->registry, second.pid));
	books_each_run(run, &s->intake.books)
	    assert_int_equal(region_header(run->region)->period_bytes, 12345);
	stranger_end(&first);
	stranger_end(&second);
}

/* As of a child that was killed while it claimed its place. */
static void a_claim_that_nobody_ends_is_given_back(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct stranger shell = start_shell(s);
	tell(&shell, "echo 1\n");
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	struct region_place *place = region_place(process_life_find(&s->registry, shell.pid)->run->region, 1);
	place->pid = INT32_MAX;
	atomic_store(&place->state, PLACE_CLAIMED);
	LOOK_UNTIL(s, atomic_load(&place->state) == PLACE_FREE);
	assert_non_null(process_life_find(&s->registry, shell.pid));
	pid_t pid = shell.pid;
	stranger_end(&shell);
	LOOK_UNTIL(s, closed_of(s, pid));
}

/* Two samplers read one region: when the second gives back the place of a child that has ended, another child
 * may have it. */
static void the_place_of_the_next_child_stays(void **state)
{
	struct scene *s = *state;
	struct region *region = calloc(1, sizeof(*region));

	fixture_open(region, 2048);
	struct program_run *run = program_run_new(region, 1);
	struct books books = {0};
	run->books = &books;
	run->life.state = RUN_READY;
	struct region_place *place = region_place(region, 1);
	place->pid = INT32_MAX;
	atomic_store(&place->state, PLACE_READY);
	struct process *process = program_run_meet(run, 1, s->modules);
	assert_non_null(process);
	region_release_place_of(region, 1, process->generation); /* by the other one */
	assert_int_equal(atomic_load(&place->state), PLACE_FREE);
	atomic_store(&place->state, PLACE_READY);
	fixture_own(region, 0, 1);
	fixture_live(region, 3, &(const struct fixture_block){.seq = 5, .size_bytes = 77});
	process_life_release(&s->registry, process);
	struct slot_copy slot;
	assert_true(region_read_slot(region, 3, &slot));
	assert_int_equal(slot.sample.size_bytes, 77);
	assert_int_equal(region_segment_owner(region, 0), 1);
	assert_int_equal(atomic_load(&place->state), PLACE_READY);
	assert_null(run->places.at[1]);
	program_run_free(run);
	books_fini(&books);
}

/* A second sampler, after the first has let go of it. */
static void books_are_taken_over(void **state)
{
	struct scene *s = *state;

	REQUIRE_LIBRARY();
	struct region *region = malloc(sizeof(*region)), none;
	struct stranger shell = start_shell(s);
	assert_int_equal(tell(&shell, "a=abcdefgh; b=$a$a; c=$b$b; echo 1\n"), 1);
	LOOK_UNTIL(s, process_life_find(&s->registry, shell.pid));
	uint64_t counted = process_samples(process_life_find(&s->registry, shell.pid));
	registry_fini(&s->registry);
	int error = region_takeover_open(shell.pid, region);
	if (error == -EPERM) {
		free(region);
		stranger_end(&shell);
		print_message("only root takes a region over\n");
		skip();
	}
	assert_int_equal(error, 0);
	/* It was killed while it gave a place back. */
	const struct region_place *other = region_place(region, 3);
	atomic_store(&region_place(region, 3)->state, PLACE_DEAD);
	assert_int_equal(arrivals_adopt(&s->registry, region), 0);
	assert_int_equal(atomic_load(&other->state), PLACE_FREE);
	const struct process *process = process_life_find(&s->registry, shell.pid);
	assert_non_null(process);
	assert_true(process_samples(process) >= counted);
	LOOK_UNTIL(s, heap_total(process->heap).samples == process_samples(process));
	pid_t pid = shell.pid;
	stranger_end(&shell);
	LOOK_UNTIL(s, closed_of(s, pid));
	LOOK_UNTIL(s, registry_empty(&s->registry));
	error = region_takeover_open(pid, &none); /* gone, or not reaped yet */
	assert_true(error == -ESRCH || error == -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_program_from_its_claim_to_its_end),
	    TEST(the_last_samples_before_the_end_are_read),
	    TEST(samples_and_an_end_during_the_look),
	    TEST(a_process_that_has_ended_before_it_was_seen),
	    TEST(a_process_that_is_met_when_no_descriptor_is_left),
	    TEST(a_forked_child_has_a_place_of_its_own),
	    TEST(the_commands_end_waits_for_its_status),
	    TEST(a_command_that_is_told_of_after_it_was_found),
	    TEST(an_image_stays_until_its_profiles_are_written),
	    TEST(a_claim_that_comes_to_nothing_is_given_up_and_counted),
	    TEST(a_program_that_is_looked_at_late_is_profiled),
	    TEST(a_program_that_is_found_ready_in_the_look_is_profiled),
	    TEST(a_changed_period_reaches_who_is_there_and_who_comes),
	    TEST(a_claim_that_nobody_ends_is_given_back),
	    TEST(the_place_of_the_next_child_stays),
	    TEST(books_are_taken_over),
	};

	return cmocka_run_group_tests(tests, find_library, NULL);
}
