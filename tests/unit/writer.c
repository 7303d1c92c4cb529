/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's queue with real children: they write, fail, are killed, wait for each
 * other and cannot be forked. */
#include "sampler/snapshot/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ITEMS = 256, SECOND_NS = 1000000000 };

/* What the children note, in memory that they share with us. */
struct notes {
	_Atomic uint32_t attempts, running, running_most;
	int detail[ITEMS]; /* of each attempt */
	int number[ITEMS]; /* of the item that it was for */
	pid_t pid[ITEMS];
	int nice[ITEMS];
	uint32_t before[ITEMS]; /* items that the same child has written before this one */
	char name[16];
	struct rlimit core, cpu;
	bool nothing_blocked;
};

struct item {
	struct writer_item item;
	struct bench *bench;
	int number;
	int result;     /* of write */
	int dies_below; /* detail: up to this, the child is killed */
	bool waits;
	bool short_of_memory; /* unless it is the first that its child writes */
};

/* One writer, and what it said. */
struct bench {
	struct writer *writer;
	struct notes *notes;
	int started[2]; /* a byte comes out of it for each child that waits */
	int gate[2];    /* a byte in it lets one of them go on */
	uint32_t done, discarded;
	int done_number[ITEMS], done_error[ITEMS], done_detail[ITEMS];
	struct item *item[ITEMS];
};

static int write_item(const struct writer_item *of, void **shared)
{
	static uint32_t before; /* of this process */
	const struct item *item = (const struct item *)of;
	struct notes *notes = item->bench->notes;
	uint32_t attempt = atomic_fetch_add(&notes->attempts, 1) % ITEMS;
	uint32_t running = atomic_fetch_add(&notes->running, 1) + 1;
	char byte;
	if (running > atomic_load(&notes->running_most))
		atomic_store(&notes->running_most, running);
	notes->detail[attempt] = of->detail;
	notes->number[attempt] = item->number;
	notes->pid[attempt] = getpid();
	notes->nice[attempt] = getpriority(PRIO_PROCESS, 0);
	notes->before[attempt] = before;
	if (before++ ? *shared != &before : *shared != NULL)
		return -EBADF;
	*shared = &before;
	if ((int)of->detail < item->dies_below)
		raise(SIGKILL);
	if (notes->before[attempt] == 0)
		close(item->bench->gate[1]); /* should the test end, so do we */
	if (item->waits &&
	    (write(item->bench->started[1], "", 1) != 1 || read(item->bench->gate[0], &byte, 1) != 1))
		return -EPIPE;
	atomic_fetch_sub(&notes->running, 1);
	return item->short_of_memory && notes->before[attempt] ? -ENOMEM : item->result;
}

static int write_and_look_around(const struct writer_item *of, void **shared)
{
	(void)shared;
	struct notes *notes = ((const struct item *)of)->bench->notes;
	sigset_t blocked;
	raise(SIGUSR1);
	raise(SIGUSR2);
	raise(SIGXFSZ);
	raise(SIGPIPE);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	notes->nothing_blocked = sigismember(&blocked, SIGUSR1) == 0 && sigismember(&blocked, SIGTERM) == 0;
	prctl(PR_GET_NAME, notes->name);
	getrlimit(RLIMIT_CORE, &notes->core);
	getrlimit(RLIMIT_CPU, &notes->cpu);
	return 0;
}

static void discard_item(struct writer_item *of)
{
	struct item *item = (struct item *)of;
	item->bench->discarded++;
	item->bench->item[item->number] = NULL;
	free(item);
}

static void done(void *context, const struct writer_item *of, int error)
{
	struct bench *bench = context;
	const struct item *item = (const struct item *)of;
	assert_true(bench->done < ITEMS);
	assert_ptr_equal(bench->item[item->number], item); /* not discarded yet */
	bench->done_number[bench->done] = item->number;
	bench->done_error[bench->done] = error;
	bench->done_detail[bench->done++] = of->detail;
}

static int open_bench(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	bench->notes =
	    mmap(NULL, sizeof(*bench->notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bench->writer = writer_new(done, bench);
	*state = bench;
	return bench->notes == MAP_FAILED || pipe2(bench->gate, O_CLOEXEC) != 0 ||
	    pipe2(bench->started, O_CLOEXEC) != 0 || !bench->writer;
}

static int close_bench(void **state)
{
	struct bench *bench = *state;
	writer_free(bench->writer);
	close(bench->gate[0]);
	close(bench->gate[1]);
	close(bench->started[0]);
	close(bench->started[1]);
	while (waitpid(-1, NULL, 0) > 0)
		;
	munmap(bench->notes, sizeof(*bench->notes));
	free(bench);
	return 0;
}

static struct item *make(struct bench *bench, int number)
{
	struct item *item = calloc(1, sizeof(*item));
	assert_non_null(item);
	item->item = (struct writer_item){.write = write_item, .discard = discard_item};
	item->bench = bench;
	item->number = number;
	bench->item[number] = item;
	return item;
}

static void submit(struct bench *bench, struct item *item)
{
	writer_submit(bench->writer, &item->item);
}

/* Waits for a child, which the writer is then told of. */
static void reap_one(struct bench *bench)
{
	int status;
	pid_t pid = waitpid(-1, &status, 0);
	assert_true(pid > 0);
	writer_reap(bench->writer, pid, status);
}

static void await_start(struct bench *bench)
{
	char byte;
	assert_int_equal(read(bench->started[0], &byte, 1), 1);
}

static void open_gate(struct bench *bench)
{
	assert_int_equal(write(bench->gate[1], "", 1), 1);
}

static void a_child_writes_and_its_end_is_told(void **state)
{
	struct bench *bench = *state;
	submit(bench, make(bench, 0));
	assert_int_equal(bench->done, 0);
	reap_one(bench);
	assert_int_equal(bench->done, 1);
	assert_int_equal(bench->done_error[0], 0);
	assert_int_equal(bench->discarded, 1);
	assert_int_equal(bench->notes->attempts, 1);
	assert_int_not_equal(bench->notes->pid[0], getpid());
}

static void its_error_is_told(void **state)
{
	static const int errors[] = {-ENOSPC, -EIO, -EDQUOT, -128};
	struct bench *bench = *state;
	for (int i = 0; i < 4; i++) {
		struct item *item = make(bench, i);
		item->result = errors[i];
		submit(bench, item);
		reap_one(bench);
		assert_int_equal(bench->done, i + 1);
		assert_int_equal(bench->done_error[i], errors[i]);
	}
	assert_int_equal(bench->notes->attempts, 4); /* an error is no reason to try again */
}

static void a_killed_child_is_followed_by_one_that_looks_at_less(void **state)
{
	struct bench *bench = *state;
	struct item *item = make(bench, 0);
	item->dies_below = 2;
	submit(bench, item);
	for (int i = 0; i < 3; i++)
		reap_one(bench);
	assert_int_equal(bench->done, 1);
	assert_int_equal(bench->done_error[0], 0);
	assert_int_equal(bench->done_detail[0], 2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(bench->notes->detail[i], i);
	/* Killed to the last: somebody is told of it. */
	item = make(bench, 1);
	item->dies_below = 3;
	item->item.detail = 1;
	submit(bench, item);
	for (int i = 0; i < 2; i++)
		reap_one(bench);
	assert_int_equal(bench->done, 2);
	assert_int_equal(bench->done_error[1], -EFAULT);
	assert_int_equal(bench->notes->attempts, 5);
	assert_int_equal(bench->discarded, 2);
}

/* Reaps until nothing is left to do. A child that has told all its results may still be there then. */
static void reap_all(struct bench *bench, uint32_t done)
{
	int status;
	pid_t pid;
	while (bench->done < done)
		reap_one(bench);
	while ((pid = waitpid(-1, &status, 0)) > 0)
		writer_reap(bench->writer, pid, status);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(bench->done, done);
}

/* As many children as there may be are busy, with the first items, until a gate is opened for each. */
static void occupy(struct bench *bench)
{
	for (int i = 0; i < WRITER_CHILDREN; i++) {
		struct item *item = make(bench, i);
		item->waits = true;
		submit(bench, item);
	}
	for (int i = 0; i < WRITER_CHILDREN; i++)
		await_start(bench);
}

static void release_occupied(struct bench *bench)
{
	for (int i = 0; i < WRITER_CHILDREN; i++)
		open_gate(bench);
}

/* Which attempt of an item: 0 the first. */
static uint32_t attempt_at(const struct bench *bench, int number, int nth)
{
	for (uint32_t i = 0; i < bench->notes->attempts; i++)
		if (bench->notes->number[i] == number && nth-- == 0)
			return i;
	fail_msg("item %d was not tried so often", number);
	return 0;
}

static int place_of(const struct bench *bench, int number)
{
	for (uint32_t i = 0; i < bench->done; i++)
		if (bench->done_number[i] == number)
			return (int)i;
	fail_msg("item %d is not done", number);
	return -1;
}

static void no_more_than_two_at_a_time_and_what_waits_is_shared(void **state)
{
	struct bench *bench = *state;
	assert_true(writer_can_start(bench->writer));
	occupy(bench);
	assert_false(writer_can_start(bench->writer));
	for (int i = WRITER_CHILDREN; i < 8; i++)
		submit(bench, make(bench, i));
	assert_int_equal(bench->notes->attempts, WRITER_CHILDREN);
	release_occupied(bench);
	reap_all(bench, 8);
	assert_true(writer_can_start(bench->writer));
	assert_int_equal(bench->notes->running_most, WRITER_CHILDREN);
	for (int i = 0; i < 8; i++)
		assert_int_equal(bench->done_error[i], 0);
	/* The first child that was free took half of what waited, the oldest, one after the other. */
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t at = attempt_at(bench, WRITER_CHILDREN + (int)i, 0);
		assert_int_equal(bench->notes->before[at], i);
		assert_int_equal(
		    bench->notes->pid[at], bench->notes->pid[attempt_at(bench, WRITER_CHILDREN, 0)]);
	}
	assert_true(place_of(bench, WRITER_CHILDREN) < place_of(bench, WRITER_CHILDREN + 1));
	assert_int_not_equal(bench->notes->pid[attempt_at(bench, WRITER_CHILDREN + 3, 0)],
	    bench->notes->pid[attempt_at(bench, WRITER_CHILDREN, 0)]);
}

static void a_batch_is_limited(void **state)
{
	struct bench *bench = *state;
	occupy(bench);
	for (int i = WRITER_CHILDREN; i < 202; i++)
		submit(bench, make(bench, i));
	release_occupied(bench);
	reap_all(bench, 202);
	uint32_t most = 0;
	for (uint32_t i = 0; i < bench->notes->attempts; i++)
		most = bench->notes->before[i] > most ? bench->notes->before[i] : most;
	assert_int_equal(most, WRITER_BATCH - 1);
	assert_int_equal(bench->notes->attempts, 202);
	for (int i = 0; i < 202; i++)
		assert_int_equal(bench->done_error[i], 0);
}

/* What each item becomes is told while its child goes on with the next. */
static void a_result_does_not_wait_for_the_batch(void **state)
{
	struct bench *bench = *state;
	occupy(bench);
	for (int i = WRITER_CHILDREN; i < WRITER_CHILDREN + 3; i++) {
		struct item *item = make(bench, i);
		item->waits = i == WRITER_CHILDREN + 1; /* the second of the first batch */
		item->result = -i;
		submit(bench, item);
	}
	release_occupied(bench);
	for (int i = 0; i < WRITER_CHILDREN; i++)
		reap_one(bench);
	await_start(bench);
	writer_tend(bench->writer, 1);
	assert_int_equal(bench->done_error[place_of(bench, WRITER_CHILDREN)], -WRITER_CHILDREN);
	open_gate(bench);
	reap_all(bench, WRITER_CHILDREN + 3);
	assert_int_equal(bench->done_error[place_of(bench, WRITER_CHILDREN + 1)], -WRITER_CHILDREN - 1);
}

static void a_child_killed_in_a_batch_keeps_what_it_told(void **state)
{
	struct bench *bench = *state;
	occupy(bench);
	for (int i = WRITER_CHILDREN; i < WRITER_CHILDREN + 12; i++) {
		struct item *item = make(bench, i);
		item->dies_below = i == WRITER_CHILDREN + 2 ? 2 : 0; /* the third of six */
		submit(bench, item);
	}
	release_occupied(bench);
	reap_all(bench, WRITER_CHILDREN + 12);
	int bad = WRITER_CHILDREN + 2;
	for (int i = WRITER_CHILDREN; i < WRITER_CHILDREN + 12; i++) {
		int place = place_of(bench, i);
		assert_int_equal(bench->done_error[place], 0);
		assert_int_equal(bench->done_detail[place], i == bad ? 2 : 0); /* nobody else has less */
	}
	/* Nothing was written twice but the one that kills, and that alone. */
	assert_int_equal(bench->notes->attempts, WRITER_CHILDREN + 12 + 2);
	for (int nth = 0; nth < 3; nth++) {
		uint32_t at = attempt_at(bench, bad, nth);
		assert_int_equal(bench->notes->detail[at], nth);
		assert_int_equal(bench->notes->before[at], nth == 0 ? 2 : 0);
		for (uint32_t i = 0; i < bench->notes->attempts && nth > 0; i++)
			assert_true(i == at || bench->notes->pid[i] != bench->notes->pid[at]);
	}
}

static void too_little_memory_in_a_batch_is_tried_again_alone(void **state)
{
	struct bench *bench = *state;
	occupy(bench);
	for (int i = WRITER_CHILDREN; i < WRITER_CHILDREN + 8; i++) {
		struct item *item = make(bench, i);
		item->short_of_memory = i == WRITER_CHILDREN + 1;
		submit(bench, item);
	}
	release_occupied(bench);
	reap_all(bench, WRITER_CHILDREN + 8);
	for (uint32_t i = 0; i < bench->done; i++) {
		assert_int_equal(bench->done_error[i], 0);
		assert_int_equal(bench->done_detail[i], 0);
	}
	assert_int_equal(bench->notes->before[attempt_at(bench, WRITER_CHILDREN + 1, 0)], 1);
	assert_int_equal(bench->notes->before[attempt_at(bench, WRITER_CHILDREN + 1, 1)], 0);
	/* On its own it is an error like any other. */
	struct item *item = make(bench, 20);
	item->result = -ENOMEM;
	submit(bench, item);
	reap_all(bench, WRITER_CHILDREN + 9);
	assert_int_equal(bench->done_error[place_of(bench, 20)], -ENOMEM);
}

static void who_is_waited_for_does_not_wait_for_a_batch(void **state)
{
	struct bench *bench = *state;
	occupy(bench); /* all children are busy until we let them go on */
	submit(bench, make(bench, 2));
	struct item *item = make(bench, 3);
	item->item.urgent = true;
	submit(bench, item);
	reap_one(bench);
	assert_int_equal(bench->done, 1);
	assert_int_equal(bench->done_number[0], 3);
	release_occupied(bench);
	reap_all(bench, 4);
}

static void nobody_yields_when_all_is_waited_for(void **state)
{
	struct bench *bench = *state;
	int ours = getpriority(PRIO_PROCESS, 0);
	writer_set_hurry(bench->writer, true);
	submit(bench, make(bench, 0));
	reap_one(bench);
	writer_set_hurry(bench->writer, false);
	submit(bench, make(bench, 1));
	reap_one(bench);
	assert_int_equal(bench->notes->nice[0], ours);
	assert_int_not_equal(bench->notes->nice[1], ours);
}

/* It still is at the front of the queue, and nobody overtakes it while another child runs. */
static void a_retry_keeps_its_turn(void **state)
{
	struct bench *bench = *state;
	struct item *item = make(bench, 0);
	item->dies_below = 1;
	submit(bench, item);
	for (int i = 1; i < 4; i++) {
		item = make(bench, i);
		item->waits = true;
		submit(bench, item);
	}
	reap_one(bench); /* the killed one: the other waits */
	reap_one(bench); /* the second attempt, and not item 2, which would wait for ever */
	assert_int_equal(bench->done, 1);
	assert_int_equal(bench->done_number[0], 0);
	assert_int_equal(bench->done_detail[0], 1);
	for (int i = 1; i < 4; i++) {
		open_gate(bench);
		reap_one(bench);
	}
	assert_int_equal(bench->done, 4);
}

static void only_who_is_waited_for_has_our_priority(void **state)
{
	struct bench *bench = *state;
	int ours = getpriority(PRIO_PROCESS, 0);
	struct item *item = make(bench, 0);
	item->item.urgent = true;
	submit(bench, item);
	reap_one(bench);
	submit(bench, make(bench, 1));
	reap_one(bench);
	assert_int_equal(bench->notes->nice[0], ours);
	assert_int_equal(bench->notes->nice[1], ours + 5 > 19 ? 19 : ours + 5);
}

static void a_child_is_deaf_to_our_signals_and_limited(void **state)
{
	struct bench *bench = *state;
	struct item *item = make(bench, 0);
	sigset_t ours, before;
	item->item.write = write_and_look_around;
	sigemptyset(&ours);
	sigaddset(&ours, SIGUSR1);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &before);
	submit(bench, item);
	sigprocmask(SIG_SETMASK, &before, NULL);
	reap_one(bench);
	assert_int_equal(bench->done_error[0], 0);
	assert_int_equal(bench->done_detail[0], 0); /* at the first attempt */
	assert_true(bench->notes->nothing_blocked);
	assert_string_equal(bench->notes->name, "heaptap-writer");
	assert_int_equal(bench->notes->core.rlim_cur, 0);
	assert_in_range(bench->notes->cpu.rlim_cur, 1, 600);
}

static void an_end_that_is_not_ours_changes_nothing(void **state)
{
	struct bench *bench = *state;
	writer_reap(bench->writer, getpid(), 0);
	struct item *item = make(bench, 0);
	item->waits = true;
	submit(bench, item);
	writer_reap(bench->writer, getpid(), 0);
	assert_int_equal(bench->done, 0);
	open_gate(bench);
	reap_one(bench);
	assert_int_equal(bench->done, 1);
}

static void what_waits_at_the_end_is_discarded(void **state)
{
	struct bench *bench = *state;
	for (int i = 0; i < 4; i++) {
		struct item *item = make(bench, i);
		item->waits = true;
		submit(bench, item);
	}
	writer_free(bench->writer);
	bench->writer = NULL;
	assert_int_equal(bench->discarded, 4);
	assert_int_equal(bench->done, 0);
}

/* ---- forks that the kernel refuses */

/* An assertion in a forked child would go on with the tests there. */
#define expect(condition)                                                               \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

/* The limit of processes does not count for root: so it takes a process of somebody who has no other. */
static void set_processes(rlim_t count)
{
	struct rlimit limit;
	expect(getrlimit(RLIMIT_NPROC, &limit) == 0);
	limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
	expect(setrlimit(RLIMIT_NPROC, &limit) == 0);
}

static void tried_again_for_ten_seconds(struct bench *bench)
{
	uint64_t now_ns = 77 * (uint64_t)SECOND_NS;
	set_processes(0);
	submit(bench, make(bench, 0));
	submit(bench, make(bench, 1));
	writer_tend(bench->writer, now_ns);
	writer_tend(bench->writer, now_ns + 9 * (uint64_t)SECOND_NS);
	expect(bench->done == 0);
	set_processes(RLIM_INFINITY);
	writer_tend(bench->writer, now_ns + 9 * (uint64_t)SECOND_NS);
	reap_one(bench);
	reap_one(bench);
	expect(bench->done == 2);
	expect(bench->done_error[0] == 0);
	expect(bench->done_error[1] == 0);
	/* The time begins anew, and this time it runs out. */
	now_ns += 60 * (uint64_t)SECOND_NS;
	set_processes(0);
	submit(bench, make(bench, 2));
	writer_tend(bench->writer, now_ns);
	writer_tend(bench->writer, now_ns + 9 * (uint64_t)SECOND_NS);
	expect(bench->done == 2);
	writer_tend(bench->writer, now_ns + 10 * (uint64_t)SECOND_NS);
	expect(bench->done == 3);
	expect(bench->done_error[2] == -EAGAIN);
	expect(bench->discarded == 3);
	/* An hour later it is refused once more, for a moment. */
	now_ns += 3600 * (uint64_t)SECOND_NS;
	submit(bench, make(bench, 3));
	writer_tend(bench->writer, now_ns);
	expect(bench->done == 3);
	set_processes(RLIM_INFINITY);
	writer_tend(bench->writer, now_ns + SECOND_NS);
	reap_one(bench);
	expect(bench->done == 4);
	expect(bench->done_error[3] == 0);
}

static void a_refused_fork_is_tried_again_and_given_up(void **state)
{
	enum { NOBODYS_UID = 54321 };
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && setresuid(NOBODYS_UID, NOBODYS_UID, NOBODYS_UID) != 0)
			_exit(2);
		tried_again_for_ten_seconds(*state);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)
	const struct CMUnitTest tests[] = {
	    TEST(a_child_writes_and_its_end_is_told),
	    TEST(its_error_is_told),
	    TEST(a_killed_child_is_followed_by_one_that_looks_at_less),
	    TEST(no_more_than_two_at_a_time_and_what_waits_is_shared),
	    TEST(a_batch_is_limited),
	    TEST(a_result_does_not_wait_for_the_batch),
	    TEST(a_child_killed_in_a_batch_keeps_what_it_told),
	    TEST(too_little_memory_in_a_batch_is_tried_again_alone),
	    TEST(who_is_waited_for_does_not_wait_for_a_batch),
	    TEST(nobody_yields_when_all_is_waited_for),
	    TEST(a_retry_keeps_its_turn),
	    TEST(only_who_is_waited_for_has_our_priority),
	    TEST(a_child_is_deaf_to_our_signals_and_limited),
	    TEST(an_end_that_is_not_ours_changes_nothing),
	    TEST(what_waits_at_the_end_is_discarded),
	    TEST(a_refused_fork_is_tried_again_and_given_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
