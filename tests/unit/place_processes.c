/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook's books where processes fork: who gets which place, what children inherit, and children that
 * change their user id.
 */
#include "preload/claim.h"
#include "preload/sample.h"
#include "preload/slot.h"
#include "proto/buffer.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cmocka.h>

#include "tests/unit/place_blocks.h"

static void child_inherits(void **unused)
{
	for (uint64_t i = 1; i <= 500; i++)
		insert(i * 160);
	for (int child = 0; child < 3; child++) {
		pid_t pid = fork();

		if (pid == 0) {
			for (uint64_t i = 1; i <= 100; i++)
				if (!claim_ready() || !drop(i * 160))
					_exit(1);
			insert(1600000);
			_exit(place_index() == (uint32_t)child + 1 ? 0 : 2);
		}
		int status;
		waitpid(pid, &status, 0);
		assert_int_equal(0, status);
		uint32_t torn = 0;
		assert_int_equal(500, count_live(0, &torn, NULL));
		assert_int_equal(401, count_live((uint32_t)child + 1, &torn, NULL));
		assert_int_equal(0, torn);
		const struct region_place *books = region_place(&run_region, (uint32_t)child + 1);
		assert_int_equal(500, books->inherited);
		assert_int_equal(1, books->allocated.samples);
		assert_int_equal(401, books->live.samples);
		assert_int_equal(books->start_ns, books->peak_ns);
		assert_int_equal(1, books->parent);
		assert_int_equal((uint32_t)pid, books->pid);
	}
	for (uint32_t i = 1; i <= 3; i++)
		region_release_place(&run_region, i);
	uint32_t torn = 0;
	assert_int_equal(0, count_live(1, &torn, NULL));
	assert_int_equal(500, count_live(0, &torn, NULL));
}

/* 0: a forked process got place `index`, and its books are right at each step; else which step it was. */
static int inherits_in_place(uint32_t index)
{
	uint32_t torn = 0;

	if (!claim_ready() || place_index() != index)
		return 1;
	const struct region_place *books = region_place(&run_region, index);
	if (books->live.samples != 501 || books->inherited != 501 || count_live(index, &torn, NULL) != 501)
		return 2;
	for (uint64_t i = 1; i <= 100; i++)
		if (!drop(i * 160))
			return 3;
	insert(1600000);
	if (books->live.samples != 402 || count_live(index, &torn, NULL) != 402)
		return 4;
	return 0;
}

/* ---- without a wiped page */

/* What a child says of itself, and then its child: a status. */
static int fork_two(pid_t (*fork_by)(void), bool (*is_right)(uint32_t number))
{
	int status;

	for (uint32_t number = 1; number <= 2; number++) {
		pid_t pid = fork_by();

		if (pid == 0 && is_right(number))
			continue;
		if (pid <= 0 || waitpid(pid, &status, 0) != pid)
			_exit(1);
		if (number == 1)
			return status;
		_exit(status != 0);
	}
	_exit(0);
}

static bool freed_early;

/* Another library's, which was registered before ours: it frees a block that its parent has too, and
 * allocates one. */
static void before_ours(void)
{
	freed_early = claim_ready() && drop(160);
	insert(1600000);
}

static bool handler_was_in_place(uint32_t number)
{
	const bool right =
	    freed_early && claim_ready() && place_index() == number && !drop(160) && drop(1600000);

	insert(160);
	return right;
}

static void a_handler_at_fork_has_the_childs_place(void **unused)
{
	uint32_t torn = 0;

	for (uint64_t i = 1; i <= 500; i++)
		insert(i * 160);
	assert_int_equal(pthread_atfork(NULL, NULL, before_ours), 0);
	assert_int_equal(pthread_atfork(claim_forking, NULL, claim_forked), 0);
	assert_int_equal(fork_two(fork, handler_was_in_place), 0);
	for (uint32_t i = 0; i <= 2; i++) {
		assert_int_equal(count_live(i, &torn, NULL), 500);
		assert_int_equal(region_place(&run_region, i)->live.samples, 500);
		assert_int_equal(region_place(&run_region, i)->allocated.samples, i ? 2 : 500);
	}
	assert_int_equal(region_header(&run_region)->places_claimed, 2);
	assert_int_equal(region_place(&run_region, 3)->state, PLACE_FREE);
}

pid_t _Fork(void) __attribute__((weak)); /* glibc 2.34 */

static bool frees_in_place(uint32_t number)
{
	return claim_ready() && place_index() == number && drop(number * 160);
}

static void a_fork_that_calls_no_handler_is_noticed(void **unused)
{
	uint32_t torn = 0;

	if (!_Fork)
		_exit(0);
	insert(160);
	insert(320);
	sample_thread.tid = thread_tid(); /* it has allocated */
	assert_int_equal(fork_two(_Fork, frees_in_place), 0);
	assert_int_equal(count_live(0, &torn, NULL), 2);
	assert_int_equal(count_live(1, &torn, NULL), 1);
	assert_int_equal(count_live(2, &torn, NULL), 0);
}

/* By a thread made past the C library: nobody goes on with the claim in the child. */
static void a_child_of_who_was_claiming_a_place(void **unused)
{
	int status;

	atomic_store(claim_word, CLAIM_CLAIMING);
	pid_t pid = fork();
	if (pid == 0) {
		claim_forked();
		_exit(!claim_ready() || place_index() != 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- places that were somebody else's */

/* What `body` returns in a child of a child that has ended at once, when the sampler has given that one's
 * place away. There are 500 blocks of the program run's own process, and one of its child's. */
static int in_grandchild(int (*body)(void))
{
	int go[2], done[2], status;

	assert_true(pipe(go) == 0 && pipe(done) == 0);
	for (uint64_t i = 1; i <= 500; i++)
		insert(i * 160);
	pid_t pid = fork();
	if (pid == 0) {
		if (!claim_ready() || place_index() != 1)
			_exit(1);
		insert(501 * 160);
		if (fork() != 0)
			_exit(0);
		char result;
		close(go[1]);
		(void)!read(go[0], &result, 1); /* until the sampler closes it */
		result = (char)body();
		_exit(write(done[1], &result, 1) != 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	region_release_place(&run_region, 1);
	close(go[1]);
	close(done[1]);
	char result = -1;
	assert_int_equal(read(done[0], &result, 1), 1);
	return result;
}

static int inherits_in_place_1(void)
{
	return inherits_in_place(1);
}

/* The numbers of inherited slots are still those of that place. */
static void a_grandchild_gets_its_dead_parents_place(void **unused)
{
	assert_int_equal(in_grandchild(inherits_in_place_1), 0);
	assert_int_equal(region_place(&run_region, 1)->parent, 2);
	assert_int_equal(region_place(&run_region, 1)->parent_generation, 0);
	assert_int_equal(region_place(&run_region, 1)->generation, 1);
	uint32_t torn = 0;
	assert_int_equal(count_live(0, &torn, NULL), 500);
	assert_int_equal(region_place(&run_region, 0)->live.samples, 500);
	assert_int_equal(torn, 0);
}

/* As claim() has them when the first blocks are to be inherited. */
static void begin_to_claim(void)
{
	place_disown(place_tag());
	atomic_store(claim_word, CLAIM_CLAIMING);
	slot_reset();
	if (!place_take())
		_exit(9);
	place_begin();
	slot_grow();
}

static int frees_during_the_claim(void)
{
	begin_to_claim();
	const struct region_place *books = region_place(&run_region, 1);
	if (place_index() != 1)
		return 1;
	/* one that its parent had inherited, and one that its parent has sampled */
	if (!drop(160) || !drop(501 * 160))
		return 2;
	if (books->next_seq != 0 || (int64_t)books->live.samples != 0)
		return 3;
	for (uint32_t i = 0; i < run_region.segments * (uint32_t)REGION_SEGMENT_SLOTS; i++)
		if (region_segment_owner(&run_region, i / REGION_SEGMENT_SLOTS) == 1 &&
		    slot_word_state(slot_at(i)->word) != SLOT_FREE)
			return 4;
	return slot_take() == REGION_NO_SLOT ? 5 : 0;
}

/* A handler of signals frees blocks while the child claims: their slots are its dead parent's, though the
 * place is its own now. */
static void a_grandchild_frees_while_it_claims(void **unused)
{
	assert_int_equal(in_grandchild(frees_during_the_claim), 0);
}

/* The same, before it has said anything of itself. */
static void who_stood_still_when_it_had_taken_a_place_is_closed(void **unused)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (!place_take() || place_index() != 1)
			_exit(9);
		region_release_place(&run_region, 1);
		pid_t other = fork();
		if (other == 0) {
			begin_to_claim();
			_exit(place_index() != 1);
		}
		if (waitpid(other, &status, 0) != other || status != 0)
			_exit(1);
		place_begin();
		_exit(place_ready() || place_tag() != PLACE_NONE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(region_header(&run_region)->places_exhausted, 1);
	assert_int_equal(region_place(&run_region, 1)->state, PLACE_CLAIMED);
}

/* For so long that the sampler has given its place away, and another child claims it now. */
static void who_stood_still_while_it_claimed_is_closed(void **unused)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		begin_to_claim();
		region_release_place(&run_region, 1);
		const bool not_free = place_ready();
		pid_t other = fork();
		if (other == 0) {
			begin_to_claim();
			_exit(place_index() != 1);
		}
		if (waitpid(other, &status, 0) != other || status != 0)
			_exit(1);
		_exit(not_free || place_ready() || place_tag() != PLACE_NONE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(region_header(&run_region)->places_exhausted, 2);
	assert_int_equal(region_place(&run_region, 1)->state, PLACE_CLAIMED);
}

/* Whoever offers a region forks while another of its threads takes a place: that thread's segment, and its
 * mark that it is taking one, are not the child's. */
static void a_child_of_who_was_taking_a_place(void **unused)
{
	int status;

	region_header(&run_region)->taken = 1;
	slot_grow();
	atomic_store(claim_word, CLAIM_TAKING);
	pid_t pid = fork();
	if (pid == 0) {
		claim_forked();
		if (!claim_ready() || place_index() != 1)
			_exit(1);
		const uint32_t slot = slot_take();
		_exit(slot == REGION_NO_SLOT                                                  ? 2
		        : region_segment_owner(&run_region, slot / REGION_SEGMENT_SLOTS) != 1 ? 3
		                                                                              : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- children that change their user id */

/* Every mmap of this process is refused from now on. */
static void refuse_mmap(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(9);
}

static void no_data(void)
{
	if (setrlimit(RLIMIT_DATA, &(const struct rlimit){4096, 4096}) != 0)
		_exit(9);
}

/* As a server does that is not to be swapped out, and then becomes another user. */
static void lock_memory_to_come(void)
{
	if (setrlimit(RLIMIT_MEMLOCK, &(const struct rlimit){65536, 65536}) != 0 ||
	    mlockall(MCL_FUTURE) != 0 || (geteuid() == 0 && setuid(65534) != 0))
		_exit(9);
}

static int forked_child(void (*meet)(void), bool claims_first, bool cut_off)
{
	unsigned char *stacks = run_region.base + run_region.offsets.buffers + BUFFER_BITMAPS_BYTES;

	*stacks = 42; /* a secret */
	pid_t pid = fork();
	if (pid == 0) {
		if (claims_first && !claim_ready())
			_exit(1);
		meet();
		errno = EDOM;
		claim_user_changed();
		_exit(errno != EDOM                                  ? 2
		        : claim_ready() != cut_off                   ? 3
		        : (*stacks == 0) != cut_off                  ? 4
		        : (claim_state() == CLAIM_CLOSED) == cut_off ? 5
		                                                     : 0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(*stacks, 42);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void who_cannot_be_cut_off_takes_no_more_samples(void **unused)
{
	assert_int_equal(forked_child(refuse_mmap, false, false), 0);
	assert_int_equal(forked_child(refuse_mmap, true, false), 0);
	assert_int_equal(region_not_cut_off(&run_region), 2);
	for (uint32_t i = 1; i <= 2; i++)
		region_release_place(&run_region, i);
}

/* What a child finds where the region is; `open`: when it is forked, the process takes samples. */
static int forked_while_hooks_are_turned(bool open)
{
	const unsigned char *stacks = run_region.base + run_region.offsets.buffers + BUFFER_BITMAPS_BYTES;
	int status;

	if (!open)
		claim_detach();
	claim_turning(run_region.base, place_start_bytes());
	claim_forking();
	pid_t pid = fork();
	if (pid == 0) {
		claim_forked();
		_exit(*stacks != 0                                       ? 1
		        : (*run_region.base != 0) != open                ? 2
		        : open && !(claim_ready() && place_view.cut_off) ? 3
		                                                         : 0);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

static void a_child_that_is_forked_while_hooks_are_turned(void **unused)
{
	run_region.base[run_region.offsets.buffers + BUFFER_BITMAPS_BYTES] = 42;
	for (int open = 0; open < 2; open++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			claim_forked();
			_exit(open && !claim_ready() ? 8 : forked_while_hooks_are_turned(open));
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	for (uint32_t i = 1; i <= 2; i++)
		region_release_place(&run_region, i);
}

static void a_limit_of_data_or_of_locked_memory_is_not_in_the_way(void **unused)
{
	assert_int_equal(forked_child(no_data, false, true), 0);
	assert_int_equal(forked_child(no_data, true, true), 0);
	assert_int_equal(forked_child(lock_memory_to_come, false, true), 0);
	assert_int_equal(forked_child(lock_memory_to_come, true, true), 0);
	assert_int_equal(region_not_cut_off(&run_region), 0);
	for (uint32_t i = 1; i <= 4; i++)
		region_release_place(&run_region, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    ISOLATED(child_inherits),
	    ISOLATED(a_grandchild_gets_its_dead_parents_place),
	    ISOLATED(a_grandchild_frees_while_it_claims),
	    ISOLATED(who_stood_still_while_it_claimed_is_closed),
	    ISOLATED(who_stood_still_when_it_had_taken_a_place_is_closed),
	    UNWIPED(a_handler_at_fork_has_the_childs_place),
	    UNWIPED(a_fork_that_calls_no_handler_is_noticed),
	    UNWIPED(a_child_of_who_was_claiming_a_place),
	    OFFERED(a_child_of_who_was_taking_a_place),
	    ISOLATED(who_cannot_be_cut_off_takes_no_more_samples),
	    ISOLATED(a_child_that_is_forked_while_hooks_are_turned),
	    ISOLATED(a_limit_of_data_or_of_locked_memory_is_not_in_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
