/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes by which a target gets the library: the holder, which is this program executed anew, and the
 * child that makes a folder. Those that say nothing, and those that do not end.
 */
#include "sampler/attach/folder.h"
#include "sampler/attach/holder.h"

#include "proto/region.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/unit/fuse_server.h"
#include "tests/unit/stranger.h"
#include "tests/unit/unkillable.h"
#include "tests/unit/workshop.h"

enum { HOLDER_SOCKET = 3 };

static int until[2]; /* the end of the second releases who cannot be killed */

/* ---- the holder: what it is given as a region says which one it is */

static int be_a_holder(int count, char *words[])
{
	const int number = 1;
	char byte;
	if (read(ATTACH_REGION_FD, &byte, 1) != 1) /* /dev/null */
		return holder_main(count, words);
	if (!unkillable_become(ATTACH_LIBRARY_FD) ||
	    write(HOLDER_SOCKET, &number, sizeof(number)) != (ssize_t)sizeof(number))
		return EXIT_FAILURE;
	for (;;)
		pause();
}

static int open_kind(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void a_holder_holds_until_it_is_ended(void **state)
{
	struct handed handed;
	char path[HANDED_PATH_BYTES];
	(void)state;
	int region_fd = open_kind("/dev/null"), library_fd = open_kind("/proc/self/exe");
	assert_int_equal(holder_start(&handed, getpid(), library_fd, region_fd, -1), 0);
	assert_int_equal(access(handed.library_path, R_OK), 0);
	snprintf(path, sizeof(path), "%s", handed.library_path);
	handed_end(&handed);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
	close(library_fd);
	close(region_fd);
}

static void a_holder_that_does_not_end_is_left(void **state)
{
	struct handed handed;
	(void)state;
	int region_fd = open_kind("/dev/zero");
	assert_int_equal(pipe2(until, O_CLOEXEC), 0);
	assert_int_equal(holder_start(&handed, getpid(), until[0], region_fd, -1), 0);
	pid_t child = handed.child;
	handed_end(&handed);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* killed, and still there */
	close(until[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(until[0]);
	close(region_fd);
}

/* ---- a target whose root never answers */

static void serve_mute(int fuse_fd)
{
	static char text[1 << 16];
	const struct fuse_in_header *request = (const void *)text;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fuse_fd, text, sizeof(text)) > 0)
		if (request->opcode == FUSE_INIT)
			fuse_answer_init(fuse_fd, request);
		else if (request->opcode == FUSE_ACCESS)
			fuse_answer(fuse_fd, request, -ENOSYS, NULL, 0);
	_exit(0);
}

static bool enter_mute_root(const char *folder)
{
	int fuse_fd = fuse_mount(folder);
	if (fuse_fd < 0)
		return false;
	if (fork() == 0)
		serve_mute(fuse_fd);
	close(fuse_fd);
	return chroot(folder) == 0;
}

static void be_a_mute_target(int fd, void *argument)
{
	char byte = (char)!enter_mute_root(argument);
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static int start_mute_target(struct stranger *target, const struct workshop *shop)
{
	char byte = 1;
	*target = stranger_start(be_a_mute_target, (void *)(uintptr_t)workshop_path(shop, "."));
	assert_int_equal(read(target->fd, &byte, 1), 1);
	if (byte == 0)
		return 0;
	stranger_end(target);
	print_message("no FUSE file system can be mounted here\n");
	return -ENOSYS;
}

/* With the target its file system ends, and so do those that wait for it. */
static void end_mute_target(struct stranger *target)
{
	stranger_end(target);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void a_root_that_never_answers_is_not_waited_for(void **state)
{
	const struct workshop *shop = *state;
	struct handed handed;
	struct stranger target;
	if (start_mute_target(&target, shop) != 0)
		skip();
	int region_fd = open_kind("/dev/null"), library_fd = open_kind("/proc/self/exe");
	assert_int_equal(holder_start(&handed, target.pid, library_fd, region_fd, -1), -ETIMEDOUT);
	assert_int_equal(folder_start(&handed, target.pid, library_fd, region_fd, -1), -ETIMEDOUT);
	end_mute_target(&target);
	close(library_fd);
	close(region_fd);
}

/* The other end of cancel_fd is closed: they would wait, and are told not to. */
static void who_is_canceled_does_not_wait(void **state)
{
	const struct workshop *shop = *state;
	struct handed handed;
	struct stranger target;
	int cancel[2];
	if (start_mute_target(&target, shop) != 0)
		skip();
	int region_fd = open_kind("/dev/null"), library_fd = open_kind("/proc/self/exe");
	assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
	close(cancel[1]);
	assert_int_equal(holder_start(&handed, target.pid, library_fd, region_fd, cancel[0]), -ECANCELED);
	assert_int_equal(folder_start(&handed, target.pid, library_fd, region_fd, cancel[0]), -ECANCELED);
	end_mute_target(&target);
	close(cancel[0]);
	close(library_fd);
	close(region_fd);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_holder_holds_until_it_is_ended),
	    cmocka_unit_test(a_holder_that_does_not_end_is_left),
	    cmocka_unit_test_setup_teardown(
	        a_root_that_never_answers_is_not_waited_for, workshop_open, workshop_close),
	    cmocka_unit_test_setup_teardown(who_is_canceled_does_not_wait, workshop_open, workshop_close),
	};
	if (argc > 1 && strcmp(argv[1], HOLDER_COMMAND) == 0)
		return be_a_holder(argc - 2, argv + 2);
	return cmocka_run_group_tests_name("holder", tests, NULL, NULL);
}
