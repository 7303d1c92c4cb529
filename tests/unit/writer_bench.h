/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the writer: items that note what was done to them, in real children, and gates at which they
 * wait. */
#ifndef TESTS_UNIT_WRITER_BENCH_H
#define TESTS_UNIT_WRITER_BENCH_H

#include "sampler/write/writer.h"

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

static __attribute__((unused)) int write_item(const struct writer_item *of, void **shared)
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

static __attribute__((unused)) int write_and_look_around(const struct writer_item *of, void **shared)
{
	(void)shared;
	struct notes *notes = ((const struct item *)of)->bench->notes;
	sigset_t blocked;
	raise(SIGUSR1);
	raise(SIGUSR2);
	raise(SIGINT);
	raise(SIGHUP);
	raise(SIGQUIT);
	raise(SIGTERM);
	raise(SIGXFSZ);
	raise(SIGPIPE);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	notes->nothing_blocked = sigismember(&blocked, SIGUSR1) == 0 && sigismember(&blocked, SIGTERM) == 0;
	prctl(PR_GET_NAME, notes->name);
	getrlimit(RLIMIT_CORE, &notes->core);
	getrlimit(RLIMIT_CPU, &notes->cpu);
	return 0;
}

static __attribute__((unused)) void discard_item(struct writer_item *of)
{
	struct item *item = (struct item *)of;

	item->bench->discarded++;
	item->bench->item[item->number] = NULL;
	free(item);
}

static __attribute__((unused)) void done(void *context, const struct writer_item *of, int error)
{
	struct bench *bench = context;
	const struct item *item = (const struct item *)of;

	assert_true(bench->done < ITEMS);
	assert_ptr_equal(bench->item[item->number], item); /* not discarded yet */
	bench->done_number[bench->done] = item->number;
	bench->done_error[bench->done] = error;
	bench->done_detail[bench->done++] = of->detail;
}

static __attribute__((unused)) int open_bench(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	bench->notes =
	    mmap(NULL, sizeof(*bench->notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bench->writer = writer_new(done, bench);
	*state = bench;
	return bench->notes == MAP_FAILED || pipe2(bench->gate, O_CLOEXEC) != 0 ||
	    pipe2(bench->started, O_CLOEXEC) != 0 || !bench->writer;
}

static __attribute__((unused)) int close_bench(void **state)
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

static __attribute__((unused)) struct item *make(struct bench *bench, int number)
{
	struct item *item = calloc(1, sizeof(*item));

	assert_non_null(item);
	item->item = (struct writer_item){.write = write_item, .discard = discard_item};
	item->bench = bench;
	item->number = number;
	bench->item[number] = item;
	return item;
}

static __attribute__((unused)) void submit(struct bench *bench, struct item *item)
{
	writer_submit(bench->writer, &item->item);
}

/* Waits for a child, which the writer is then told of. */
static __attribute__((unused)) void reap_one(struct bench *bench)
{
	int status;
	pid_t pid = waitpid(-1, &status, 0);

	assert_true(pid > 0);
	writer_reap(bench->writer, pid, status);
}

static __attribute__((unused)) void await_start(struct bench *bench)
{
	char byte;

	assert_int_equal(read(bench->started[0], &byte, 1), 1);
}

static __attribute__((unused)) void open_gate(struct bench *bench)
{
	assert_int_equal(write(bench->gate[1], "", 1), 1);
}

/* Reaps until nothing is left to do. A child that has told all its results may still be there then. */
static __attribute__((unused)) void reap_all(struct bench *bench, uint32_t done)
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
static __attribute__((unused)) void occupy(struct bench *bench)
{
	for (int i = 0; i < WRITER_CHILDREN; i++) {
		struct item *item = make(bench, i);

		item->waits = true;
		submit(bench, item);
	}
	for (int i = 0; i < WRITER_CHILDREN; i++)
		await_start(bench);
}

static __attribute__((unused)) void release_occupied(struct bench *bench)
{
	for (int i = 0; i < WRITER_CHILDREN; i++)
		open_gate(bench);
}

/* Which attempt of an item: 0 the first. */
static __attribute__((unused)) uint32_t attempt_at(const struct bench *bench, int number, int nth)
{
	for (uint32_t i = 0; i < bench->notes->attempts; i++)
		if (bench->notes->number[i] == number && nth-- == 0)
			return i;
	fail_msg("item %d was not tried so often", number);
	return 0;
}

static __attribute__((unused)) int place_of(const struct bench *bench, int number)
{
	for (uint32_t i = 0; i < bench->done; i++)
		if (bench->done_number[i] == number)
			return (int)i;
	fail_msg("item %d is not done", number);
	return -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)

#endif
