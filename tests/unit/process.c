/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a place in a region is: real processes that map it, that do not, that have ended; numbers that lie;
 * what they had mapped by their own word. Their books: process_books.c; memory: process_memory.c.
 */
#include "sampler/books/process.h"
#include "sampler/books/executed.h"
#include "sampler/books/program_run.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "pprof/text/clock.h"
#include "sampler/inject/preload_library.h"
#include "sampler/linux/thread_facts.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/process_scene.h"
#include "tests/unit/stranger.h"

static void forget_region(int fd, void *argument)
{
	const struct region *region = argument;
	char byte = (char)munmap(region->base, region->offsets.end);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static struct stranger stranger_without_region(const struct scene *s)
{
	char byte;
	struct stranger stranger = stranger_start(forget_region, (void *)(uintptr_t)s->region);

	assert_int_equal(read(stranger.fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	return stranger;
}

static void nobody_there(void **state)
{
	struct scene *s = *state;

	assert_null(program_run_meet(s->run, 0, s->store));
	atomic_store(&region_place(s->region, 0)->state, PLACE_CLAIMED);
	assert_null(program_run_meet(s->run, 0, s->store));
	atomic_store(&region_place(s->region, 0)->state, PLACE_DEAD);
	assert_null(program_run_meet(s->run, 0, s->store));
	assert_null(program_run_meet(s->run, REGION_PLACES, s->store));
	assert_null(program_run_meet(s->run, UINT32_MAX, s->store));
	s->run->life.state = RUN_CLAIMED;
	assert_null(claim(s, 0, getpid(), 0));
	assert_int_equal(s->run->places.live, 0);
}

static void who_maps_the_region_is_known(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	struct process *process = claim(s, 0, stranger.pid, 0);

	assert_non_null(process);
	assert_int_equal(process->target.pid, stranger.pid);
	assert_true(process->target.pidfd >= 0);
	assert_true(process_is_there(process));
	assert_string_equal(process->target.name, s->exe);
	assert_string_equal(process->target.title, "process");
	const struct map *map = maps_find(process->target.maps, (uintptr_t)some_code);
	assert_non_null(map);
	assert_string_equal(map_path(map), s->exe);
	assert_ptr_equal(program_run_meet(s->run, 0, s->store), process);
	assert_int_equal(s->run->places.live, 1);
	stranger_end(&stranger);
	assert_false(process_is_there(process));
}

/* Nobody knows whether it lives, until there is a descriptor to look with. */
static void without_descriptors_it_is_unsure(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	struct rlimit before = descriptors_take_away();
	struct process *process = claim(s, 0, stranger.pid, 0);
	bool unsure = process && process->unsure, found = process && program_run_look_again(process);

	descriptors_give_back(before);
	assert_non_null(process);
	assert_true(unsure && !found && process->unsure);
	assert_int_equal(process->target.pidfd, -1);
	assert_true(program_run_look_again(process));
	assert_false(process->unsure);
	assert_true(process->target.pidfd >= 0);
	assert_string_equal(process->target.name, s->exe);
	assert_non_null(maps_find(process->target.maps, (uintptr_t)some_code));
	assert_false(program_run_look_again(process));
	stranger_end(&stranger);
}

static void without_descriptors_nothing_is_known_to_be_executed(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	struct process *process = claim(s, 0, stranger.pid, 0);

	executed_begin(process);
	assert_true(process->executed.known);
	ino_t ino = process->executed.ino;
	assert_int_not_equal(ino, 0);
	process->executed.ino = 0; /* as it is by PR_SET_MM_EXE_FILE */
	struct rlimit before = descriptors_take_away();
	executed_look(process, 1);
	bool there = process_is_there(process);
	descriptors_give_back(before);
	assert_true(there);
	assert_string_equal(process->target.unprofiled, "");
	executed_look(process, 1);
	assert_string_equal(process->target.unprofiled, ""); /* it still has our region mapped */
	assert_int_equal(process->executed.ino, ino);
	stranger_end(&stranger);
}

static void execute(int fd, void *argument)
{
	char *arguments[] = {argument, "30", NULL};
	char *environment[] = {"HEAPTAP=1", "LD_PRELOAD=" PRELOAD_LIBRARY_NAME, NULL};
	char byte = 1;

	if (write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1)
		execve(arguments[0], arguments, environment);
}

/* The kernel exchanges the file and the memory first: for some microseconds there is no environment. */
static void a_program_has_no_environment_while_it_is_executed(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < 200; i++) {
		char byte;
		struct stranger stranger = stranger_start(execute, "/bin/sleep");

		assert_int_equal(read(stranger.fd, &byte, 1), 1);
		struct process *process = claim_again(s, stranger.pid);
		executed_begin(process);
		assert_true(process->executed.known);
		assert_int_equal(write(stranger.fd, &byte, 1), 1);
		const uint64_t deadline_ns = clock_now_ns() + STRANGER_DEADLINE_MS * 1000000ull;
		while (!process->target.unprofiled[0] && clock_now_ns() < deadline_ns)
			executed_look(process, 1);
		assert_int_equal(kill(stranger.pid, SIGKILL), 0);
		stranger_end(&stranger);
		const char *why = strstr(process->target.unprofiled, EXECUTED_UNSEEN);
		assert_non_null(why);
		assert_string_equal(why + strlen(EXECUTED_UNSEEN), "it has not loaded " PRELOAD_LIBRARY_NAME);
	}
}

/* What a target writes there must not make us wait for somebody else's end, ours least of all. */
static void a_number_is_a_targets_word(void **state)
{
	struct scene *s = *state;
	struct region another; /* which the other does map */

	fixture_open(&another, 1);
	struct stranger other = stranger_without_region(s), ended = stranger_start(NULL, NULL);
	pid_t was = ended.pid, child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	stranger_end(&ended);
	const pid_t words[] = {getpid(), child, 1, other.pid, was, 0, -1, INT32_MAX};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct process *process = claim_again(s, words[i]);

		assert_int_equal(process->target.pidfd, -1);
		assert_false(process_is_there(process));
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	stranger_end(&other);
	region_close(&another);
}

static void count_from_one(int fd, void *unused)
{
	char byte;

	(void)unused;
	pid_t pid = unshare(CLONE_NEWPID) == 0 ? fork() : -1;
	if (pid != 0 && (pid < 0 || write(fd, &pid, sizeof(pid)) != (ssize_t)sizeof(pid)))
		_exit(write(fd, &pid, sizeof(pid)) < 0);
	(void)!read(fd, &byte, 1); /* both: the end of the socket ends them */
}

/* What the stranger says of the process in its namespace. */
static pid_t pid_or_skip(struct stranger *stranger)
{
	pid_t pid;

	assert_int_equal(read(stranger->fd, &pid, sizeof(pid)), sizeof(pid));
	if (pid >= 0)
		return pid;
	stranger_end(stranger);
	print_message("no pid namespace is available here\n");
	skip();
	return -1;
}

/* In a namespace of its own it has another number there than here. */
static void a_process_with_a_number_of_its_own_is_searched_for(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(count_from_one, NULL);
	pid_t inner = pid_or_skip(&stranger);
	const struct process *process = claim(s, 0, 1, 0);

	assert_non_null(process);
	assert_int_equal(process->target.pid, inner);
	assert_true(process->target.pidfd >= 0);
	stranger_end(&stranger);
}

/* The first process of a namespace forks another for each byte, tells its number there, and ends the last. */
static void fork_in_a_namespace(int fd, void *unused)
{
	char byte;

	(void)unused;
	pid_t pid = unshare(CLONE_NEWPID) == 0 ? fork() : -1;
	if (pid > 0)
		_exit(waitpid(pid, NULL, 0) < 0);
	do {
		if (pid == 0 && (pid = fork()) == 0)
			pause(); /* it ends with its namespace, if not before */
		if (write(fd, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
			_exit(1);
		if (read(fd, &byte, 1) != 1)
			return;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = 0;
	} while (true);
}

static void a_child_with_a_number_that_nobody_has_here_is_searched_for(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(fork_in_a_namespace, NULL);
	pid_t inner = pid_or_skip(&stranger);

	while (kill(inner, 0) == 0 || errno != ESRCH) {
		assert_int_equal(write(stranger.fd, "", 1), 1);
		assert_int_equal(read(stranger.fd, &inner, sizeof(inner)), sizeof(inner));
	}
	const struct process *first = claim(s, 0, 1, 0), *child = claim(s, 1, inner, 1);
	assert_true(first->target.pidfd >= 0);
	assert_true(child->target.pidfd >= 0);
	const struct thread_facts facts = thread_facts_read(child->target.pid);
	assert_int_equal(facts.inner, inner);
	assert_int_equal(facts.parent, first->target.pid);
	stranger_end(&stranger);
}

/* After many searches one may have to wait: until then it is not taken for ended. */
static void who_could_not_be_searched_for_has_not_ended(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(fork_in_a_namespace, NULL);
	pid_t inner = pid_or_skip(&stranger);

	while (kill(inner, 0) == 0 || errno != ESRCH) {
		assert_int_equal(write(stranger.fd, "", 1), 1);
		assert_int_equal(read(stranger.fd, &inner, sizeof(inner)), sizeof(inner));
	}
	assert_true(claim(s, 0, 1, 0)->target.pidfd >= 0);
	s->run->searches.work = (struct throttle){.left = -1, .filled_ns = UINT64_MAX};
	struct process *child = claim(s, 1, inner, 1);
	assert_int_equal(child->target.pidfd, -1);
	assert_true(child->unsure);
	assert_false(program_run_look_again(child));
	s->run->searches.work = (struct throttle){.left = 1, .filled_ns = clock_now_ns()};
	assert_true(program_run_look_again(child));
	assert_true(child->target.pidfd >= 0);
	assert_true(s->run->searches.work.left <= 0);
	stranger_end(&stranger);
}

/* A clone that the library did not hear of: it says its parent's number. */
static void a_clone_is_searched_for_among_the_children(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(count_from_one, NULL);
	pid_t inner = pid_or_skip(&stranger);

	assert_int_equal(claim(s, 0, stranger.pid, 0)->target.pid, stranger.pid);
	const struct process *process = claim(s, 1, stranger.pid, 1);
	assert_int_equal(process->target.pid, inner);
	assert_true(process->target.pidfd >= 0);
	stranger_end(&stranger);
}

/* One that has ended before it was looked for does not get its parent's number. */
static void of_a_clone_that_has_ended_no_number_is_known(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);

	assert_int_equal(claim(s, 0, stranger.pid, 0)->target.pid, stranger.pid);
	assert_int_equal(claim(s, 1, stranger.pid, 1)->target.pid, 0);
	stranger_end(&stranger);
	/* nor if the parent has ended too */
	assert_int_equal(claim(s, 2, stranger.pid, 1)->target.pid, 0);
}

/* A child in a pid namespace of its own, which has ended, says a number that another process has here. */
static void the_number_of_an_older_process_is_none_of_ours(void **state)
{
	struct scene *s = *state;

	if (getpid() == 1)
		skip();
	assert_int_equal(claim(s, 0, getpid(), 0)->target.pid, getpid());
	assert_int_equal(claim(s, 1, 1, 1)->target.pid, 0);
}

/* ---- what was mapped, by the program run's word */

static unsigned char *put_module(unsigned char *at, uint64_t start, uint64_t pages, const char *path)
{
	struct region_module module = {.start = start,
	    .end = start + pages * REGION_PAGE_BYTES,
	    .file_offset = 4096,
	    .path_bytes = (uint32_t)strlen(path) + 1};

	module.total_bytes = (uint32_t)((sizeof(module) + module.path_bytes + 7) & ~(size_t)7);
	memcpy(at, &module, sizeof(module));
	memcpy(at + sizeof(module), path, module.path_bytes);
	return at + module.total_bytes;
}

static void of_a_process_that_is_gone_its_own_word_is_all_there_is(void **state)
{
	struct scene *s = *state;
	unsigned char *at = s->region->base + s->region->offsets.modules;

	at = put_module(at, 0x400000, 16, "/opt/server/bin/serve");
	put_module(at, 0x7f0000000000, 4, "/opt/server/lib/gone.so");
	const struct process *process = claim(s, 0, 0, 0);
	assert_string_equal(process->target.name, "/opt/server/bin/serve");
	assert_string_equal(process->target.title, "serve");
	assert_int_equal(maps_count(process->target.maps), 2);
	const struct map *map = maps_find(process->target.maps, 0x7f0000003fff);
	assert_non_null(map);
	assert_string_equal(map_path(map), "/opt/server/lib/gone.so");
	assert_int_equal(map->pgoff, 4096);
	assert_null(maps_find(process->target.maps, 0x7f0000004000));
}

static void what_makes_no_sense_there_ends_it(void **state)
{
	static const struct {
		size_t offset;
		uint32_t word;
	} lies[] = {{offsetof(struct region_module, total_bytes), 0},
	    {offsetof(struct region_module, total_bytes), UINT32_MAX},
	    {offsetof(struct region_module, total_bytes), REGION_MODULES_BYTES},
	    {offsetof(struct region_module, total_bytes), sizeof(struct region_module)},
	    {offsetof(struct region_module, path_bytes), 0},
	    {offsetof(struct region_module, path_bytes), UINT32_MAX},
	    {offsetof(struct region_module, path_bytes), REGION_PATH_BYTES + 1},
	    {offsetof(struct region_module, end), 0x10}};
	struct scene *s = *state;
	unsigned char *at = s->region->base + s->region->offsets.modules;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		unsigned char *second = put_module(at, 0x400000, 16, "/first"),
		              *third = put_module(second, 0x800000, 16, "/second");

		put_module(third, 0xc00000, 16, "/third");
		memcpy(second + lies[i].offset, &lies[i].word, sizeof(lies[i].word));
		assert_int_equal(maps_count(claim_again(s, 0)->target.maps), 1);
	}
	/* All of it at random, and of nothing but modules. */
	uint64_t random = 88172645463325252u;
	for (size_t n = 0; n < 50; n++) {
		for (size_t i = 0; i < REGION_MODULES_BYTES; i += 8) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			uint64_t word = n % 2 ? random : random & 0x0000007f0000007f;
			memcpy(at + i, &word, 8);
		}
		const struct process *process = claim_again(s, 0);
		assert_true(memchr(process->target.name, '\0', sizeof(process->target.name)) != NULL);
		assert_true(memchr(process->target.title, '\0', sizeof(process->target.title)) != NULL);
	}
}

/* ---- parents and children */

static void a_child_that_is_gone_has_its_parents_maps_and_name(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	const struct process *parent = claim(s, 0, stranger.pid, 0), *child = claim(s, 3, 0, 1);

	assert_int_equal(child->target.pidfd, -1);
	assert_string_equal(child->target.name, parent->target.name);
	assert_int_equal(maps_count(child->target.maps), maps_count(parent->target.maps));
	stranger_end(&stranger);
}

static void a_parent_that_cannot_be(void **state)
{
	struct scene *s = *state;
	const uint32_t words[] = {4, 9, REGION_PLACES, REGION_PLACES + 1, UINT32_MAX};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct process *process = claim(s, 3, 0, words[i]);

		assert_non_null(process);
		assert_int_equal(maps_count(process->target.maps), 0);
		process_inherit(process);
		program_run_free_process(process);
	}
}

static void maps_are_read_again_when_they_are_old(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	struct process *process = claim(s, 0, stranger.pid, 0);
	uint64_t read_ns = process->target.reading.read_ns;

	assert_int_not_equal(read_ns, 0);
	const struct maps *before = process->target.maps;
	target_read_maps(&process->target, read_ns + 99, 100);
	assert_int_equal(process->target.reading.read_ns, read_ns);
	assert_ptr_equal(process->target.maps, before);
	maps_clear(process->target.maps);
	target_read_maps(&process->target, read_ns + 100, 100);
	assert_int_equal(process->target.reading.read_ns, read_ns + 100);
	assert_non_null(maps_find(process->target.maps, (uintptr_t)some_code));
	stranger_end(&stranger);
	/* Ended: what is known stays. */
	target_read_maps(&process->target, read_ns + 1000, 100);
	assert_non_null(maps_find(process->target.maps, (uintptr_t)some_code));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(nobody_there),
	    TEST(who_maps_the_region_is_known),
	    TEST(without_descriptors_it_is_unsure),
	    TEST(without_descriptors_nothing_is_known_to_be_executed),
	    TEST(a_program_has_no_environment_while_it_is_executed),
	    TEST(a_number_is_a_targets_word),
	    TEST(a_process_with_a_number_of_its_own_is_searched_for),
	    TEST(a_child_with_a_number_that_nobody_has_here_is_searched_for),
	    TEST(who_could_not_be_searched_for_has_not_ended),
	    TEST(a_clone_is_searched_for_among_the_children),
	    TEST(of_a_clone_that_has_ended_no_number_is_known),
	    TEST(the_number_of_an_older_process_is_none_of_ours),
	    TEST(of_a_process_that_is_gone_its_own_word_is_all_there_is),
	    TEST(what_makes_no_sense_there_ends_it),
	    TEST(a_child_that_is_gone_has_its_parents_maps_and_name),
	    TEST(a_parent_that_cannot_be),
	    TEST(maps_are_read_again_when_they_are_old),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
