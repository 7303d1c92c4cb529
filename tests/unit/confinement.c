/* SPDX-License-Identifier: Apache-2.0 */
/* What is left to a confined process, and when it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/linux/confinement.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE_MS = 30000, CPU_SECONDS = 30 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true; /* then calls are not filtered */
#else
static const bool sanitized = false;
#endif

/* Says on `out` that it is confined, and waits for `in`. */
static __attribute__((noreturn)) void wait_confined(int out, int in)
{
	char byte = 'c';

	if (confinement_enter(out, in, CPU_SECONDS) != 0 || write(out, &byte, 1) != 1)
		_exit(1);
	_exit(read(in, &byte, 1) == 0 ? 0 : 2);
}

static bool comes(int fd)
{
	struct pollfd waiting = {.fd = fd, .events = POLLIN};

	return poll(&waiting, 1, DEADLINE_MS) == 1;
}

/* A sampler that is killed leaves no reader behind, whatever that is busy with. */
static void it_ends_with_its_parent(void **state)
{
	int out[2], in[2], status;
	char byte;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	pid_t parent = fork();
	if (parent == 0) {
		if (fork() == 0)
			wait_confined(out[1], in[0]);
		close(out[1]);
		for (;;)
			pause();
	}
	assert_true(parent > 0);
	close(out[1]);
	assert_true(comes(out[0]));
	assert_int_equal(read(out[0], &byte, 1), 1);
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	/* The child alone has the other end now. */
	assert_true(comes(out[0]));
	assert_int_equal(read(out[0], &byte, 1), 0);
	close(in[1]); /* else this would have ended it */
	close(in[0]);
	close(out[0]);
}

enum {
	HAS_OTHER_DESCRIPTOR = 1 << 0,
	HAS_SHARED_MEMORY = 1 << 1,
	MAY_OPEN = 1 << 2,
	MAY_MAP_CODE = 1 << 3,
	MAY_FORK = 1 << 4,
	NOT_CONFINED = 1 << 5,
};

static unsigned char calls_that_work(size_t page_bytes)
{
	unsigned char found = 0;
	pid_t pid;

	if (open("/", O_PATH | O_CLOEXEC) >= 0)
		found |= MAY_OPEN;
	if (mmap(NULL, page_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		found |= MAY_MAP_CODE;
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		found |= MAY_FORK;
	return found;
}

/* Writes to `out` what it still may, and waits for the end of `in`. */
static __attribute__((noreturn)) void try_everything(int out, int in, int other, char *shared)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char found = 0;

	if (confinement_enter(out, in, CPU_SECONDS) != 0)
		found |= NOT_CONFINED;
	if (dup(other) >= 0)
		found |= HAS_OTHER_DESCRIPTOR;
	/* A preloaded library that has it mapped can go on, and nobody else notices. */
	if (*shared != 0)
		found |= HAS_SHARED_MEMORY;
	*shared = 'c';
	if (!sanitized)
		found |= calls_that_work(page_bytes);
	if (write(out, &found, 1) != 1)
		_exit(1);
	_exit(read(in, &found, 1) == 0 ? 0 : 2);
}

/* Of a confined process; a user namespace may have no number for nobody. */
static uid_t user_expected(void)
{
	const uid_t nobody = 65534;
	int status = 1;
	pid_t child;

	if (geteuid() != 0)
		return geteuid();
	child = fork();
	if (child == 0)
		_exit(setresuid(nobody, nobody, nobody) == 0 ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0 ? nobody : 0;
}

static void assert_status_has(const char *status, const char *line)
{
	if (!strstr(status, line))
		fail_msg("not in its /proc/PID/status: %s", line);
}

static void nothing_else_is_left(void **state)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *shared = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int out[2], in[2], other[2], status;
	char path[64], text[8192] = "", user[64];
	unsigned char found = 0xff;

	assert_ptr_not_equal(shared, MAP_FAILED);
	*shared = 'p';
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(other, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0)
		try_everything(out[1], in[0], other[0], shared);
	assert_true(child > 0);
	assert_true(comes(out[0]));
	assert_int_equal(read(out[0], &found, 1), 1);
	assert_int_equal(found, 0);
	assert_int_equal(*shared, 'p');

	snprintf(path, sizeof(path), "/proc/%d/status", (int)child);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	const uid_t uid = user_expected();
	snprintf(user, sizeof(user), "\nUid:\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
	assert_status_has(text, user);
	assert_status_has(text, "\nCapPrm:\t0000000000000000\n");
	assert_status_has(text, "\nCapEff:\t0000000000000000\n");
	assert_status_has(text, "\nNoNewPrivs:\t1\n");

	close(in[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(in[0]);
	close(out[0]);
	close(out[1]);
	close(other[0]);
	close(other[1]);
	munmap(shared, page_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_ends_with_its_parent),
	    cmocka_unit_test(nothing_else_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
