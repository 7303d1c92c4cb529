/* SPDX-License-Identifier: Apache-2.0 */
/* The writer and its children: they write, fail, are killed, and cannot be forked. */
#include "tests/unit/writer_bench.h"

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
	/* What a terminal sends to all of its foreground; a shell's job in the background ignores some. */
	static const int keys[] = {SIGINT, SIGHUP, SIGQUIT};
	struct item *item = make(bench, 0);
	void (*handlers[3])(int);
	sigset_t ours, before;

	item->item.write = write_and_look_around;
	for (int i = 0; i < 3; i++)
		handlers[i] = signal(keys[i], SIG_DFL);
	sigemptyset(&ours);
	sigaddset(&ours, SIGUSR1);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &before);
	submit(bench, item);
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (int i = 0; i < 3; i++)
		signal(keys[i], handlers[i]);
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
	const struct CMUnitTest tests[] = {
	    TEST(a_child_writes_and_its_end_is_told),
	    TEST(its_error_is_told),
	    TEST(a_killed_child_is_followed_by_one_that_looks_at_less),
	    TEST(only_who_is_waited_for_has_our_priority),
	    TEST(a_child_is_deaf_to_our_signals_and_limited),
	    TEST(an_end_that_is_not_ours_changes_nothing),
	    TEST(what_waits_at_the_end_is_discarded),
	    TEST(a_refused_fork_is_tried_again_and_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
