/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process can be attached to, of processes whose memory is a file that does not answer. */
#include "sampler/inject/fitness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/fuse_server.h"
#include "tests/unit/stranger.h"
#include "tests/unit/workshop.h"

/* Then its server ends, and whoever waits for the file gets an error. */
enum { MUTE_MS = 20000, MUTE_NODE = 2, LOWEST_AT = 0x10000 };

/* A file system with one file, under any name, which can be opened and is never read. */
static void serve_mute(int fuse_fd, int until_fd)
{
	const struct fuse_attr attributes = {
	    .ino = MUTE_NODE, .mode = S_IFREG | 0644, .nlink = 1, .size = 4096};
	const struct fuse_entry_out entry = {.nodeid = MUTE_NODE, .attr = attributes, .attr_valid = 1000};
	const struct fuse_attr_out answer = {.attr = attributes, .attr_valid = 1000};
	const struct fuse_open_out opened = {0};
	static char text[1 << 16];
	const struct fuse_in_header *request = (const void *)text;
	struct pollfd fds[] = {{.fd = fuse_fd, .events = POLLIN}, {.fd = until_fd}};

	while (poll(fds, 2, MUTE_MS) > 0 && !fds[1].revents && read(fuse_fd, text, sizeof(text)) > 0) {
		if (request->opcode == FUSE_INIT)
			fuse_answer_init(fuse_fd, request);
		else if (request->opcode == FUSE_LOOKUP)
			fuse_answer(fuse_fd, request, 0, &entry, sizeof(entry));
		else if (request->opcode == FUSE_GETATTR)
			fuse_answer(fuse_fd, request, 0, &answer, sizeof(answer));
		else if (request->opcode == FUSE_OPEN)
			fuse_answer(fuse_fd, request, 0, &opened, sizeof(opened));
		else if (request->opcode != FUSE_READ && request->opcode != FUSE_FORGET &&
		    request->opcode != FUSE_BATCH_FORGET)
			fuse_answer(fuse_fd, request, -EIO, NULL, 0);
	}
}

static bool map_mute(const char *folder, int until_fd)
{
	char path[PATH_MAX];
	int fuse_fd = fuse_mount(folder);

	if (fuse_fd < 0)
		return false;
	if (fork() == 0) {
		serve_mute(fuse_fd, until_fd);
		_exit(0);
	}
	close(fuse_fd);
	snprintf(path, sizeof(path), "%s/file", folder);
	int fd = open(path, O_RDONLY);
	return fd >= 0 &&
	    mmap((void *)LOWEST_AT, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) ==
	    (void *)LOWEST_AT;
}

/* Where the program of others begins. */
static void hold_mute(int fd, void *argument)
{
	char byte = (char)!map_mute(argument, fd);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static void hold(int fd, void *argument)
{
	char byte;

	(void)argument;
	(void)!read(fd, &byte, 1);
}

/* The daemon asks from its loop, and `record -P` with its signals blocked. */
static void memory_that_does_not_answer_is_not_waited_for(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)state;
	(void)hold_mute;
	print_message("a program with a sanitizer is refused before its memory is read\n");
	skip();
#else
	struct fitness fitness;
	char byte;
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s", workshop_path(*state, "."));
	struct stranger target = stranger_start(hold_mute, folder), other = stranger_start(hold, NULL);
	assert_int_equal(read(target.fd, &byte, 1), 1);
	if (byte == 0) {
		assert_false(fitness_examine(&fitness, target.pid, false));
		assert_true(fitness.later);
		assert_non_null(strstr(fitness.cause, "does not answer"));
		/* Nor is any other of this user for a while, so that a thousand of them are no more harm. */
		assert_false(fitness_examine(&fitness, other.pid, false));
		assert_true(fitness.later);
		assert_non_null(strstr(fitness.cause, "did not answer just now"));
	}
	stranger_end(&other);
	stranger_end(&target);
	if (byte != 0) {
		print_message("no FUSE file system can be mounted here\n");
		skip();
	}
#endif
}

static void others_are_examined(void **state)
{
	struct fitness fitness;

	(void)state;
	struct stranger target = stranger_start(hold, NULL);
	const pid_t was = target.pid;
	(void)fitness_examine(
	    &fitness, target.pid, false); /* it may be fit, or not: it may have a sanitizer */
	assert_false(fitness.later);
	stranger_end(&target);
	assert_false(fitness_examine(&fitness, getpid(), false));
	assert_string_equal(fitness.cause, "is this heaptap");
	assert_false(fitness_examine(&fitness, 0x7ffffffe, false));
	assert_string_equal(fitness.cause, "does not exist");
	assert_false(fitness_examine(&fitness, was, false));
}

int main(void)
{
#if defined(__x86_64__)
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(others_are_examined),
	    cmocka_unit_test_setup_teardown(
	        memory_that_does_not_answer_is_not_waited_for, workshop_open, workshop_close),
	};
	return cmocka_run_group_tests_name("fitness", tests, NULL, NULL);
#else
	(void)others_are_examined;
	(void)memory_that_does_not_answer_is_not_waited_for;
	return 0;
#endif
}
