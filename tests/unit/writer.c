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

enum { ITEMS = 8, SECOND_NS = 1000000000 };

/* What the children note, in memory that they share with us. */
struct notes {
	_Atomic uint32_t attempts, running, running_most;
	int detail[ITEMS]; /* of each attempt */
	int number[ITEMS]; /* of the item that it was for */
	pid_t pid[ITEMS];
	int nice[ITEMS];
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
	bool waits, discarded;
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

static int write_item(const struct writer_item *of)
{
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
	if ((int)of->detail < item->dies_below)
		raise(SIGKILL);
	close(item->bench->gate[1]); /* should the test end, so do we */
	if (item->waits &&
	    (write(item->bench->started[1], "", 1) != 1 || read(item->bench->gate[0], &byte, 1) != 1))
		return -EPIPE;
	atomic_fetch_sub(&notes->running, 1);
	return item->result;
}

static int write_and_look_around(const struct writer_item *of)
{
	struct notes *notes = ((const struct item *)of)->bench->notes;
	sigset_t blocked;
	raise(SIGUSR1);
	raise(SIGUSR2);
	raise(SIGXFSZ);
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
	/* An exit status holds seven bits of an error (the eighth is a shell's for signals): the last is told
	 * as another, but never as success. */
	static const int errors[] = {-ENOSPC, -EIO, -EDQUOT, -128};
	struct bench *bench = *state;
	for (int i = 0; i < 4; i++) {
		struct item *item = make(bench, i);
		item->result = errors[i];
		submit(bench, item);
		reap_one(bench);
		assert_int_equal(bench->done, i + 1);
		assert_int_equal(bench->done_error[i], i < 3 ? errors[i] : -1);
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

static void no_more_than_two_at_a_time_and_the_oldest_first(void **state)
{
	struct bench *bench = *state;
	assert_true(writer_can_start(bench->writer));
	for (int i = 0; i < 5; i++) {
		struct item *item = make(bench, i);
		item->waits = true;
		submit(bench, item);
		assert_int_equal(writer_can_start(bench->writer), i + 1 < WRITER_CHILDREN);
	}
	for (int i = 0; i < WRITER_CHILDREN; i++)
		await_start(bench);
	for (int i = 0; i < 5; i++) {
		open_gate(bench);
		reap_one(bench);
		if (i + WRITER_CHILDREN < 5)
			await_start(bench);
		assert_int_equal(bench->done, i + 1);
		assert_int_equal(bench->done_error[i], 0);
		assert_int_equal(writer_can_start(bench->writer), 5 - (i + 1) < WRITER_CHILDREN);
		/* Each that ends makes room for the oldest: it may overtake its neighbour only. */
		assert_in_range(bench->done_number[i], 0, i + WRITER_CHILDREN - 1);
	}
	assert_int_equal(bench->notes->running_most, WRITER_CHILDREN);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
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
	    TEST(no_more_than_two_at_a_time_and_the_oldest_first),
	    TEST(a_retry_keeps_its_turn),
	    TEST(only_who_is_waited_for_has_our_priority),
	    TEST(a_child_is_deaf_to_our_signals_and_limited),
	    TEST(an_end_that_is_not_ours_changes_nothing),
	    TEST(what_waits_at_the_end_is_discarded),
	    TEST(a_refused_fork_is_tried_again_and_given_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
