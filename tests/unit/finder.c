/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the daemon looks at after notices: they are the kernel's, the time is the test's. */
#include "sampler/cmd/daemon/finder.h"
#include "pprof/text/clock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/stranger.h"

static const uint64_t ms_ns = CLOCK_NS_PER_S / 1000;

static struct {
	char library[32];
	int epoll_fd;
	struct finder *finder;
	struct stranger opener;
	uint64_t now_ns;
	unsigned int looks; /* at the opener, after notices */
	unsigned int all_looks, sweeps, passed, others;
	bool met_opener;  /* by a sweep */
	uint64_t burn_ns; /* CPU time of a look at the opener's processes */
} scene;

/* Opens the library whenever it is told to, and answers. */
static void open_when_told(int fd, void *argument)
{
	char byte;

	while (read(fd, &byte, 1) == 1) {
		close(open(argument, O_RDONLY | O_CLOEXEC));
		if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
			return;
	}
}

static void opener_opens(void)
{
	char byte = 0;

	assert_int_equal(send(scene.opener.fd, &byte, 1, MSG_NOSIGNAL), 1);
	assert_int_equal(read(scene.opener.fd, &byte, 1), 1);
}

/* It never offers anything. */
static bool look(void *context, pid_t pid, bool noticed)
{
	(void)context;
	scene.all_looks++;
	if (noticed)
		scene.looks += pid == scene.opener.pid;
	else if (pid == scene.opener.pid)
		scene.met_opener = true;
	else
		scene.others++;
	for (const uint64_t until_ns = clock_thread_cpu_ns() + scene.burn_ns;
	     pid == scene.opener.pid && clock_thread_cpu_ns() < until_ns;)
		;
	return false;
}

/* The opener is somebody's, all others somebody else's. */
static uint64_t account(void *context, pid_t pid)
{
	(void)context;
	return pid == scene.opener.pid ? 1 : 2;
}

static void pass(void *context, pid_t pid)
{
	(void)context;
	assert_int_equal(pid, scene.opener.pid);
	scene.passed++;
}

static void ignore_opened(void *context, pid_t pid)
{
	(void)context;
	(void)pid;
}

static void count_swept(void *context)
{
	(void)context;
	scene.sweeps++;
}

static int open_scene_with(uint64_t budget_ns, uint64_t burst_ns)
{
	memset(&scene, 0, sizeof(scene));
	strcpy(scene.library, "/tmp/heaptap-finder-XXXXXX");
	int fd = mkstemp(scene.library);
	scene.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	const struct finder_setup setup = {
	    .library = scene.library,
	    .epoll_fd = scene.epoll_fd,
	    .sweep_ns = UINT64_C(3600) * CLOCK_NS_PER_S,
	    .look = look,
	    .opened = ignore_opened,
	    .swept = count_swept,
	    .account = account,
	    .passed = pass,
	    .budget_ns = budget_ns,
	    .burst_ns = burst_ns,
	};
	close(fd);
	scene.finder = finder_new(&setup);
	scene.opener = stranger_start(open_when_told, scene.library);
	scene.now_ns = CLOCK_NS_PER_S;
	return fd < 0 || scene.epoll_fd < 0 || !scene.finder;
}

static int open_scene(void **state)
{
	(void)state;
	return open_scene_with(3600 * (uint64_t)CLOCK_NS_PER_S, 3600 * (uint64_t)CLOCK_NS_PER_S);
}

/* A budget that the first look spends. */
static int open_hurried(void **state)
{
	(void)state;
	return open_scene_with(1, 3600 * (uint64_t)CLOCK_NS_PER_S);
}

static int open_poor(void **state)
{
	(void)state;
	return open_scene_with(3600 * (uint64_t)CLOCK_NS_PER_S, ms_ns);
}

static int close_scene(void **state)
{
	(void)state;
	stranger_end(&scene.opener);
	finder_free(scene.finder);
	close(scene.epoll_fd);
	unlink(scene.library);
	return 0;
}

static void skip_without_notices(void)
{
	if (finder_fd(scene.finder) >= 0)
		return;
	print_message("no notices: %s\n", strerror(-finder_error(scene.finder)));
	skip();
}

static uint64_t tend_after(uint64_t passed_ns)
{
	scene.now_ns += passed_ns;
	return finder_run(scene.finder, scene.now_ns);
}

static bool notices_wake(void)
{
	struct epoll_event event;

	return epoll_wait(scene.epoll_fd, &event, 1, 0) == 1;
}

static void one_notice_makes_a_look(void **state)
{
	(void)state;
	skip_without_notices();
	assert_false(notices_wake());
	opener_opens();
	assert_true(notices_wake());
	assert_true(tend_after(0) <= 2 * ms_ns);
	assert_int_equal(scene.looks, 0);
	(void)tend_after(2 * ms_ns);
	assert_int_equal(scene.looks, 1);
}

static void a_loop_of_opens_does_not_make_looks(void **state)
{
	(void)state;
	skip_without_notices();
	for (int i = 0; i < 120; i++) {
		opener_opens();
		(void)tend_after(2 * ms_ns);
	}
	/* after 2, 6, 14, 30, 62 and 126 ms */
	assert_in_range(scene.looks, 4, 6);
}

static void another_program_later_is_looked_at_soon(void **state)
{
	(void)state;
	skip_without_notices();
	opener_opens();
	for (int i = 0; i < 150; i++)
		(void)tend_after(2 * ms_ns);
	opener_opens();
	(void)tend_after(2 * ms_ns);
	const unsigned int looks = scene.looks;
	(void)tend_after(2 * ms_ns);
	assert_int_equal(scene.looks, looks + 1);
}

static void notices_do_not_keep_the_daemon_awake(void **state)
{
	(void)state;
	skip_without_notices();
	opener_opens();
	(void)tend_after(0);
	opener_opens();
	assert_false(notices_wake());
	assert_true(tend_after(ms_ns) <= ms_ns);
	assert_false(notices_wake());
	(void)tend_after(ms_ns);
	assert_false(notices_wake());
	/* none came for two milliseconds: the next one wakes us */
	(void)tend_after(2 * ms_ns);
	assert_false(notices_wake());
	opener_opens();
	assert_true(notices_wake());
}

enum { CALLS_MOST = 1 << 16 }; /* more than there are processes */

/* However many processes there are, and however long each look takes: other work is done in between. */
static void a_sweep_is_made_of_parts(void **state)
{
	(void)state;
	unsigned int calls = 0;
	while (!scene.sweeps && calls < CALLS_MOST) {
		const unsigned int before = scene.all_looks;
		const uint64_t wait_ns = tend_after(0);

		assert_in_range(scene.all_looks - before, 0, 1);
		assert_int_equal(wait_ns == 0, !scene.sweeps);
		calls++;
	}
	assert_true(scene.met_opener);
	assert_in_range(calls, scene.all_looks, scene.all_looks + 1);
	/* It was one sweep, and the next is due when it was. */
	(void)tend_after(ms_ns);
	assert_int_equal(scene.sweeps, 1);
	finder_hurry(scene.finder);
	for (calls = 0; scene.sweeps < 2 && calls < CALLS_MOST; calls++)
		(void)tend_after(0);
	assert_int_equal(scene.sweeps, 2);
}

static void young_processes_do_not_hold_up_the_sweep(void **state)
{
	(void)state;
	skip_without_notices();
	unsigned int calls = 0;
	opener_opens();
	for (; !scene.sweeps && calls < CALLS_MOST; calls++)
		(void)tend_after(2 * ms_ns);
	assert_int_equal(scene.sweeps, 1);
	assert_true(scene.met_opener);
	/* one process at each call: the opener, the others, and a last one that finds none */
	assert_int_equal(calls, scene.others + 2);
	assert_true(scene.looks > 0);
}

/* Whose looks take too long is passed by, until time has paid for it; no other is. */
static void each_account_pays_for_its_looks(void **state)
{
	(void)state;
	scene.burn_ns = 5 * ms_ns;
	(void)tend_after(0);
	assert_int_equal(scene.sweeps, 1);
	assert_true(scene.met_opener);
	const unsigned int others = scene.others;
	scene.met_opener = false;
	finder_hurry(scene.finder);
	(void)tend_after(ms_ns);
	assert_int_equal(scene.sweeps, 2);
	assert_false(scene.met_opener);
	assert_int_equal(scene.passed, 1);
	assert_true(scene.others > others); /* the machine's processes come and go */
	finder_hurry(scene.finder);
	(void)tend_after(3600 * (uint64_t)CLOCK_NS_PER_S);
	assert_true(scene.met_opener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(one_notice_makes_a_look, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(a_loop_of_opens_does_not_make_looks, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(another_program_later_is_looked_at_soon, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(notices_do_not_keep_the_daemon_awake, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(a_sweep_is_made_of_parts, open_hurried, close_scene),
	    cmocka_unit_test_setup_teardown(
	        young_processes_do_not_hold_up_the_sweep, open_hurried, close_scene),
	    cmocka_unit_test_setup_teardown(each_account_pays_for_its_looks, open_poor, close_scene),
	};

	return cmocka_run_group_tests_name("finder", tests, NULL, NULL);
}
