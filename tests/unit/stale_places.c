/* SPDX-License-Identifier: Apache-2.0 */
/* Places that a process began to claim: of one that has ended they are given back, of any other not. */
#include "sampler/books/stale_places.h"

#include "preload/block.h"
#include "preload/claim.h"
#include "preload/sample_clock.h"
#include "preload/slot.h"
#include "preload/tables.h"
#include "preload/thread.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/process_scene.h"
#include "tests/unit/stranger.h"

enum { ENOUGH = 8, MANY = 6 }; /* MANY: searches of /proc for one run have a second of real time */

static uint64_t now_ns;

static void look(struct scene *s, int times)
{
	for (int i = 0; i < times; i++) {
		now_ns += UINT64_C(1000000000);
		stale_places_tend(s->run, now_ns);
	}
}

static enum place_state state_of(const struct scene *s, uint32_t number)
{
	return atomic_load(&region_place(s->region, number)->state);
}

/* As far as a child comes before it is killed: it has a segment. */
static void begin_claim(struct scene *s, uint32_t number, uint32_t told, uint32_t segment)
{
	region_place(s->region, number)->pid = told;
	fixture_own(s->region, segment, number);
	atomic_store(&region_place(s->region, number)->state, PLACE_CLAIMED);
}

static void is_given_back_when_nobody_is_there(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);

	begin_claim(s, 1, (uint32_t)stranger.pid, 0);
	look(s, ENOUGH);
	assert_int_equal(state_of(s, 1), PLACE_CLAIMED);
	assert_int_equal(region_segment_owner(s->region, 0), 1);
	stranger_end(&stranger);
	look(s, 2); /* it might be just about to */
	assert_int_equal(state_of(s, 1), PLACE_CLAIMED);
	look(s, 1);
	assert_int_equal(state_of(s, 1), PLACE_FREE);
	assert_int_equal(region_segment_owner(s->region, 0), -1);
	assert_int_equal(region_place(s->region, 1)->generation, 1);
}

/* Behind one whose process lives, one that says nothing of itself, and those of processes that are known. */
static void each_is_looked_at(void **state)
{
	struct scene *s = *state;
	struct stranger lives = stranger_start(NULL, NULL), ended = stranger_start(NULL, NULL);
	const uint32_t gone = (uint32_t)ended.pid;

	stranger_end(&ended);
	assert_non_null(claim(s, 0, lives.pid, 0));
	begin_claim(s, 1, (uint32_t)lives.pid, 0);
	region_place(s->region, 2)->generation = 1; /* free again */
	begin_claim(s, 3, 0, 0);
	region_place(s->region, 4)->state = PLACE_READY;
	for (uint32_t i = 5; i <= 8; i++)
		begin_claim(s, i, gone, 1);
	look(s, 4 * ENOUGH);
	assert_int_equal(state_of(s, 0), PLACE_READY);
	assert_int_equal(state_of(s, 1), PLACE_CLAIMED);
	assert_int_equal(region_segment_owner(s->region, 0), 3);
	assert_int_equal(state_of(s, 3), PLACE_CLAIMED);
	assert_int_equal(state_of(s, 4), PLACE_READY);
	for (uint32_t i = 5; i <= 8; i++)
		assert_int_equal(state_of(s, i), PLACE_FREE);
	assert_int_equal(region_segment_owner(s->region, 1), -1);
	stranger_end(&lives);
}

static void be_first_of_a_namespace(int fd, void *unused)
{
	char byte;

	(void)unused;
	pid_t pid = unshare(CLONE_NEWPID) == 0 ? fork() : -1;
	if (pid != 0) {
		/* another program's */
		(void)!write(fd, &pid, sizeof(pid));
		execl("/bin/cat", "cat", (char *)NULL);
		_exit(1);
	}
	(void)!read(fd, &byte, 1);
}

/* Its number is that of somebody else here. */
static void who_counts_apart_is_there(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(be_first_of_a_namespace, NULL);
	pid_t pid;

	assert_int_equal(read(stranger.fd, &pid, sizeof(pid)), sizeof(pid));
	if (pid < 0) {
		stranger_end(&stranger);
		print_message("no pid namespace is available here\n");
		skip();
	}
	begin_claim(s, 1, 1, 0);
	look(s, ENOUGH);
	assert_int_equal(state_of(s, 1), PLACE_CLAIMED);
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pidfd >= 0);
	stranger_end(&stranger);
	assert_int_equal(poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, STRANGER_DEADLINE_MS), 1);
	close(pidfd);
	look(s, ENOUGH);
	assert_int_equal(state_of(s, 1), PLACE_FREE);
}

/* What a target writes there is its own loss. */
static void a_number_may_be_anything(void **state)
{
	struct scene *s = *state;
	const uint32_t told[] = {0, (uint32_t)getpid(), UINT32_MAX, 1u << 31};
	const uint32_t count = sizeof(told) / sizeof(told[0]);

	for (uint32_t i = 0; i < count; i++)
		begin_claim(s, i + 1, told[i], i != 0);
	look(s, (int)count * ENOUGH);
	/* the third has no segment any more, and says no number: nobody else can be it */
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(state_of(s, i + 1), i == 2 ? PLACE_FREE : PLACE_CLAIMED);
	for (uint32_t i = 1; i <= MANY; i++)
		begin_claim(s, i, INT32_MAX, 0);
	look(s, MANY * ENOUGH);
	for (uint32_t i = 1; i <= MANY; i++)
		assert_int_equal(state_of(s, i), PLACE_FREE);
}

/* Killed before it could say who it is, and before it had a segment. Whoever has the region and is not known
 * may be the one, and stand still. */
static void who_did_not_come_to_say_his_number(void **state)
{
	struct scene *s = *state;
	struct stranger first = stranger_start(NULL, NULL), other = stranger_start(NULL, NULL);

	assert_non_null(claim(s, 0, first.pid, 0));
	atomic_store(&region_place(s->region, 1)->state, PLACE_CLAIMED);
	begin_claim(s, 2, 0, 1); /* that it has a segment is a lie, or worse: it stays */
	look(s, 2 * ENOUGH);
	assert_int_equal(state_of(s, 1), PLACE_CLAIMED);
	stranger_end(&other);
	look(s, 2 * ENOUGH);
	assert_int_equal(state_of(s, 1), PLACE_FREE);
	assert_int_equal(region_place(s->region, 1)->generation, 1);
	assert_int_equal(state_of(s, 2), PLACE_CLAIMED);
	assert_int_equal(state_of(s, 0), PLACE_READY);
	stranger_end(&first);
}

static void an_earlier_sampler_was_killed_at_it(void **state)
{
	struct scene *s = *state;

	begin_claim(s, 1, INT32_MAX, 0);
	begin_claim(s, 2, INT32_MAX, 1);
	atomic_store(&region_place(s->region, 2)->state, PLACE_DEAD);
	stale_places_adopt(s->run);
	assert_int_equal(state_of(s, 1), PLACE_CLAIMED);
	assert_int_equal(state_of(s, 2), PLACE_FREE);
	assert_int_equal(region_segment_owner(s->region, 1), -1);
}

/* The library's claim, by a child that dies at the first block that it inherits: which it cannot write. */
static void a_child_dies_while_it_claims(void **state)
{
	struct scene *s = *state;
	int status;
	const struct claim_setup with = {
	    .place = {.base = s->region->base,
	        .offsets = s->region->offsets,
	        .segments = s->region->segments,
	        .start_segments = s->region->segments,
	        .large_buffers = s->region->large_buffers,
	        .key = s->region->key},
	    .pid = (uint32_t)getpid(),
	    .wiped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	};
	struct live_entry entry = {.sample = {.size_bytes = 64, .period_bytes = 64}};

	assert_int_equal(madvise(with.wiped, 4096, MADV_WIPEONFORK), 0);
	thread_open((uint32_t)getpid(), true);
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_ASK);
	assert_true(tables_open(&(struct tables_wish){.period_bytes = 64, .segments = s->region->segments}));
	claim_open(&with);
	block_insert((const void *)160, &entry);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL); /* cmocka's own */
		mprotect(region_segments(s->region), s->region->segments * sizeof(struct region_segment),
		    PROT_NONE);
		_exit(claim_ready());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	assert_int_equal(state_of(s, 1), PLACE_CLAIMED);
	assert_int_equal(region_segment_owner(s->region, 1), 1);
	look(s, ENOUGH);
	assert_int_equal(state_of(s, 1), PLACE_FREE);
	assert_int_equal(region_segment_owner(s->region, 1), -1);
	assert_int_equal(region_segment_owner(s->region, 0), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(is_given_back_when_nobody_is_there),
	    TEST(each_is_looked_at),
	    TEST(who_counts_apart_is_there),
	    TEST(a_number_may_be_anything),
	    TEST(who_did_not_come_to_say_his_number),
	    TEST(an_earlier_sampler_was_killed_at_it),
	    TEST(a_child_dies_while_it_claims),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
