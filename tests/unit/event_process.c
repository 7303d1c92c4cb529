/* SPDX-License-Identifier: Apache-2.0 */
/* Processes whose events are sampled: when one has ended, and when there is no telling by a descriptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/books/event_process.h"
#include "sampler/books/event_registry.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void end_without_descriptors(void **state)
{
	struct memory_bound memory = {0};
	struct event_processes subjects = {.modules = modules_new(4), .memory = &memory};
	struct rlimit before, none;
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	struct event_process *s = event_processes_add(&subjects, child, NULL, 0);
	assert_non_null(s);
	assert_false(target_has_ended(&s->target));
	int fds = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(fds);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)fds;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool alive = !target_has_ended(&s->target);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	bool ended = target_has_ended(&s->target);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_true(alive);
	assert_true(ended);
	assert_true(target_has_ended(&s->target));
	event_processes_fini(&subjects);
	modules_free(subjects.modules);
}

/* A thread's end may be its process' end, and is asked about until the next look at all of them. */
static void a_thread_has_ended_and_its_process_lives(void **state)
{
	const struct launch launch = {.pid = 0};
	struct memory_bound memory = {0};
	struct event_registry r = {
	    .setup = {.launch = &launch}, .subjects = {.modules = modules_new(4), .memory = &memory}};
	struct event_process *s = event_processes_add(&r.subjects, getppid(), NULL, 0);

	assert_non_null(s);
	s->exits = true;
	event_registry_sweep(&r, false);
	assert_true(s->exits);
	event_registry_sweep(&r, true);
	assert_false(s->exits);
	assert_false(s->target.closed);
	event_processes_fini(&r.subjects);
	modules_free(r.subjects.modules);
}

/* Enters `count` samples, each by a stack that never came before; returns how many were refused. */
static unsigned int enter(struct event_process *s, struct memory_bound *memory, unsigned int count)
{
	unsigned int refused = 0;

	for (unsigned int i = 0; i < count; i++) {
		const struct unwind_frame frame = {.pc = s->target.start_ns++, .kind = MAP_KIND_ANON};
		struct event_row row = {.samples = 1};

		event_process_look_for_room(s, memory);
		row.stack = stacks_intern(s->target.stacks, &frame, 1, STACK_NONE, s->target.maps);
		refused += row.stack == UINT32_MAX || !event_book_add(s->books[0], &row);
		event_process_weigh(s, memory);
	}
	return refused;
}

static void stacks_and_books_have_a_bound(void **state)
{
	enum { BOUND_BYTES = 4 << 20, MANY = 200000 };
	struct memory_bound memory = {.max_bytes = BOUND_BYTES};
	struct event_processes subjects = {.modules = modules_new(4), .memory = &memory};
	struct event_process *hog = event_processes_add(&subjects, getpid(), NULL, 1),
	                     *other = event_processes_add(&subjects, getppid(), NULL, 1);

	hog->books[0] = event_book_new();
	other->books[0] = event_book_new();
	assert_true(enter(hog, &memory, MANY) > MANY / 2);
	assert_true(memory.held_bytes < BOUND_BYTES);
	assert_int_equal(enter(other, &memory, 100), 0);
	assert_int_equal(memory.held_bytes, hog->share.held_bytes + other->share.held_bytes);
	/* What is known already is still counted. */
	uint64_t samples = event_book_total(hog->books[0]).samples;
	hog->target.start_ns = 1;
	assert_int_equal(enter(hog, &memory, 10), 0);
	assert_int_equal(event_book_total(hog->books[0]).samples, samples + 10);
	event_processes_remove(&subjects, hog);
	assert_int_equal(memory.held_bytes, other->share.held_bytes);
	event_processes_fini(&subjects);
	assert_int_equal(memory.held_bytes, 0);
	modules_free(subjects.modules);
}

/* Its user is known to nobody: it is its parent's, or of an account that is no user's. */
static void the_account_of_one_that_was_reaped(void **state)
{
	struct memory_bound memory = {0};
	struct event_processes subjects = {.modules = modules_new(4), .memory = &memory};
	const pid_t gone = fork();

	(void)state;
	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	struct event_process *unknown = event_processes_add(&subjects, gone, NULL, 1),
	                     *child = event_processes_add(&subjects, getpid(), unknown, 1);
	assert_int_equal(unknown->share.account, 0);
	assert_int_equal(child->share.account, target_account_of_user(getuid()));
	assert_int_equal(event_processes_add(&subjects, gone, child, 1)->share.account, child->share.account);
	event_processes_fini(&subjects);
	modules_free(subjects.modules);
}

/* The name of a process that has ended when it is looked at, with these two maps. */
static void expect_name(const char *wanted, const char *low, const char *high, uint64_t code_address)
{
	struct memory_bound memory = {0};
	struct event_processes subjects = {.modules = modules_new(4), .memory = &memory};
	const struct map_range ranges[] = {{.start = 0x1000, .len = 0x1000, .prot = PROT_EXEC, .path = low},
	    {.start = 0x8000, .len = 0x1000, .prot = PROT_EXEC, .path = high}};
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	struct event_process *s = event_processes_add(&subjects, child, NULL, 1);
	assert_non_null(s);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(maps_add(s->target.maps, &ranges[i]), 0);
	s->target.code_address = code_address;
	event_process_look(s);
	assert_string_equal(s->target.name, wanted);
	event_processes_fini(&subjects);
	modules_free(subjects.modules);
}

static void the_name_of_one_that_has_ended(void **state)
{
	expect_name("/lib/libc.so.6", "/srv/my.software/app", "/lib/libc.so.6", 0x8000);
	expect_name("/srv/my.software/app", "/lib/libc.so.6", "/srv/my.software/app", 0x8000);
	/* Its start was not seen. */
	expect_name("/srv/my.software/app", "/lib/libc.so.6", "/srv/my.software/app", 0);
	expect_name("/srv/my.software/app", "/srv/my.software/app", "/lib/libc.so.6", UINT64_MAX);
	expect_name("", "/srv/my.software/plugin.so", "/lib/libc.so.6", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(end_without_descriptors),
	    cmocka_unit_test(a_thread_has_ended_and_its_process_lives),
	    cmocka_unit_test(stacks_and_books_have_a_bound),
	    cmocka_unit_test(the_account_of_one_that_was_reaped),
	    cmocka_unit_test(the_name_of_one_that_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
