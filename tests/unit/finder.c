/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the daemon looks at after notices: they are the kernel's, the time is the test's. */
#include "sampler/daemon/finder.h"
#include "sampler/linux/clock.h"

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
	if (noticed)
		scene.looks += pid == scene.opener.pid;
	return false;
}

static void ignore_opened(void *context, pid_t pid)
{
	(void)context;
	(void)pid;
}

static void ignore_swept(void *context)
{
	(void)context;
}

static int open_scene(void **state)
{
	(void)state;
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
	    .swept = ignore_swept,
	};
	close(fd);
	scene.finder = finder_new(&setup);
	scene.opener = stranger_start(open_when_told, scene.library);
	scene.now_ns = CLOCK_NS_PER_S;
	return fd < 0 || scene.epoll_fd < 0 || !scene.finder;
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
	return finder_tend(scene.finder, scene.now_ns);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(one_notice_makes_a_look, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(a_loop_of_opens_does_not_make_looks, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(another_program_later_is_looked_at_soon, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(notices_do_not_keep_the_daemon_awake, open_scene, close_scene),
	};
	return cmocka_run_group_tests_name("finder", tests, NULL, NULL);
}
