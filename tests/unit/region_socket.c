/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/region_socket.h"
#include "proto/region_pool.h"
#include "sampler/intake/region_socket.h"
#include "tests/unit/descriptors.h"

static const uint64_t cookie = 0x0123456789abcdef;
static char path[64];

static struct region_socket *open_listener(void)
{
	int error;

	snprintf(path, sizeof(path), "/proc/%d/fd/7", (int)getpid());
	struct region_socket *listener = region_socket_new(path, cookie, &error);
	assert_non_null(listener);
	return listener;
}

/* Connects, and says `word` if it is not 0. */
static int visit(uint64_t word)
{
	struct sockaddr_un address;
	socklen_t bytes = region_socket_address(path, cookie, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&address, bytes), 0);
	if (word)
		assert_int_equal(send(fd, &word, sizeof(word), MSG_NOSIGNAL), sizeof(word));
	return fd;
}

static bool is_turned_away(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

static void the_name_has_a_secret_part_but_not_the_cookie(void **state)
{
	struct sockaddr_un address;
	socklen_t bytes = region_socket_address("/proc/1/fd/7", cookie, &address);
	size_t length = bytes - offsetof(struct sockaddr_un, sun_path) - 1;

	assert_int_equal(address.sun_path[0], 0);
	assert_int_equal(length, strlen("heaptap/proc/1/fd/7-012345"));
	assert_memory_equal(address.sun_path + 1, "heaptap/proc/1/fd/7-012345", length);
}

/* For a program in another network namespace, where the abstract name leads nowhere. */
static void the_file_leads_there_too_and_is_removed(void **state)
{
	static struct region region;
	struct sockaddr_un address;
	struct region_socket *listener = open_listener();
	const socklen_t bytes = region_socket_file(path, cookie, &address);
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "/tmp/.heaptap-proc-%d-fd-7-012345", (int)getpid());
	assert_string_equal(address.sun_path, wanted);
	assert_true(region_socket_fd(listener, 0) >= 0 && region_socket_fd(listener, 1) >= 0);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, bytes), 0);
	assert_int_equal(send(fd, &cookie, sizeof(cookie), MSG_NOSIGNAL), sizeof(cookie));
	region_socket_knock(listener);
	const int visitor = region_socket_next(listener);
	assert_true(visitor >= 0);
	region = (struct region){.fd = dup(fd), .buffers_fd = dup(fd)};
	assert_true(region_socket_give(listener, visitor, &region));
	assert_int_equal(region.taken_by, getpid());
	region_close(&region);
	close(fd);
	region_socket_free(listener);
	assert_int_equal(access(wanted, F_OK), -1);
}

static void a_name_that_is_taken_is_an_error(void **state)
{
	struct region_socket *listener = open_listener();
	int error = 0;

	assert_null(region_socket_new(path, cookie, &error));
	assert_int_equal(error, -EADDRINUSE);
	region_socket_free(listener);
}

static void a_process_holds_so_many_regions_and_no_more(void **state)
{
	static struct region regions[64];
	struct region_socket *listener = open_listener();
	int null[2];

	assert_int_equal(pipe(null), 0);
	for (size_t i = 0; i < 64; i++) {
		int fd = visit(cookie);

		region_socket_knock(listener);
		int visitor = region_socket_next(listener);
		assert_true(visitor >= 0);
		regions[i] = (struct region){.fd = dup(null[0]), .buffers_fd = dup(null[0])};
		assert_true(region_socket_give(listener, visitor, &regions[i]));
		close(fd);
	}
	int refused = visit(cookie);
	region_socket_knock(listener);
	assert_int_equal(region_socket_next(listener), -1);
	assert_true(is_turned_away(refused));
	assert_int_equal(region_socket_refused(listener), 1);
	region_close(&regions[5]);
	int again = visit(cookie);
	region_socket_knock(listener);
	int visitor = region_socket_next(listener);
	assert_true(visitor >= 0);
	assert_false(region_socket_give(listener, visitor, NULL)); /* no region could be made */
	assert_true(is_turned_away(again));
	assert_int_equal(region_socket_refused(listener), 2);
	for (size_t i = 0; i < 64; i++)
		if (i != 5)
			region_close(&regions[i]);
	close(refused);
	close(again);
	close(null[0]);
	close(null[1]);
	region_socket_free(listener);
}

/* Hundreds who say nothing, or the wrong thing, are in front of one who is entitled. */
static void strangers_do_not_keep_others_waiting(void **state)
{
	enum { STRANGERS = 200 };
	struct region_socket *listener = open_listener();
	int fds[STRANGERS];

	for (int i = 0; i < STRANGERS; i++)
		fds[i] = visit(i % 2 ? 0 : 42);
	int fd = visit(cookie);
	region_socket_knock(listener);
	int visitor = region_socket_next(listener);
	assert_true(visitor >= 0);
	assert_false(region_socket_give(listener, visitor, NULL));
	close(fd);
	assert_int_equal(region_socket_next(listener), -1);
	assert_int_equal(region_socket_strangers(listener), STRANGERS / 2);
	int silent = 0;
	for (int i = 0; i < STRANGERS; i++) {
		silent += !is_turned_away(fds[i]);
		close(fds[i]);
	}
	assert_in_range(silent, 0, 64);
	assert_int_equal(region_socket_crowded_out(listener), STRANGERS / 2 - silent);
	region_socket_free(listener);
}

/* Programs that start at once connect, and each is interrupted before it sends the cookie. */
static void many_who_speak_late_are_heard(void **state)
{
	enum { PROGRAMS = 30 };
	struct region_socket *listener = open_listener();
	int fds[PROGRAMS], visitor, heard = 0;

	for (int i = 0; i < PROGRAMS; i++)
		fds[i] = visit(0);
	region_socket_knock(listener);
	assert_int_equal(region_socket_next(listener), -1);
	for (int i = 0; i < PROGRAMS; i++)
		assert_int_equal(send(fds[i], &cookie, sizeof(cookie), 0), sizeof(cookie));
	for (; (visitor = region_socket_next(listener)) >= 0; heard++)
		assert_false(region_socket_give(listener, visitor, NULL));
	assert_int_equal(heard, PROGRAMS);
	for (int i = 0; i < PROGRAMS; i++)
		close(fds[i]);
	region_socket_free(listener);
}

static void who_speaks_late_is_heard(void **state)
{
	struct region_socket *listener = open_listener();
	int fd = visit(0);

	region_socket_knock(listener);
	assert_int_equal(region_socket_next(listener), -1);
	assert_int_equal(send(fd, &cookie, sizeof(cookie), 0), sizeof(cookie));
	int visitor = region_socket_next(listener);
	assert_true(visitor >= 0);
	assert_false(region_socket_give(listener, visitor, NULL));
	close(fd);
	region_socket_free(listener);
}

/* Once, however often it is tried; and is let in when there is a descriptor again, without another knock. */
static void who_cannot_be_accepted_is_counted(void **state)
{
	struct region_socket *listener = open_listener();
	int fd = visit(cookie);
	struct rlimit before = descriptors_take_away();

	for (int i = 0; i < 3; i++) {
		region_socket_knock(listener);
		assert_int_equal(region_socket_next(listener), -1);
	}
	descriptors_give_back(before);
	assert_int_equal(region_socket_strangers(listener), 1);
	int visitor = region_socket_next(listener);
	assert_true(visitor >= 0);
	assert_false(region_socket_give(listener, visitor, NULL));
	close(fd);
	/* The next shortage is another one. */
	fd = visit(cookie);
	before = descriptors_take_away();
	region_socket_knock(listener);
	assert_int_equal(region_socket_next(listener), -1);
	descriptors_give_back(before);
	assert_int_equal(region_socket_strangers(listener), 2);
	close(fd);
	region_socket_free(listener);
}

/* ---- the target's end, with a listener that takes nobody in until it is told to, and never answers */

static int asked_timeout_ms = -1; /* of the last poll */

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	const struct timespec none = {0};

	asked_timeout_ms = timeout_ms;
	return ppoll(fds, count, &none, NULL);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

struct late {
	int listener, accepted;
	_Atomic int64_t asked_ms, accepted_ms;
};

static void *let_in_late(void *argument)
{
	struct late *late = argument;

	while (!late->asked_ms || now_ms() < late->asked_ms + REGION_SOCKET_WAIT_MS / 4)
		usleep(1000);
	late->accepted_ms = now_ms();
	late->accepted = accept(late->listener, NULL, NULL);
	return NULL;
}

/* Of the target: its end of patience is fixed when it connects. */
static struct late *asking;
int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
	if (asking)
		asking->asked_ms = now_ms();
	return (int)syscall(SYS_connect, fd, address, bytes);
}

/* A backlog of one place, which is taken: the wait for it shortens the wait for the answer. */
static void the_target_waits_once(void **state)
{
	struct sockaddr_un address;
	pthread_t thread;

	if (geteuid() != 0)
		skip(); /* it asks nobody but root */
	snprintf(path, sizeof(path), "/proc/%d/fd/8", (int)getpid());
	socklen_t bytes = region_socket_address(path, cookie, &address);
	struct late late = {.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), .accepted = -1};
	assert_int_equal(bind(late.listener, (const struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(late.listener, 0), 0);
	asked_timeout_ms = -1;
	for (int tries = 0; tries < 50 && asked_timeout_ms < 0; tries++) {
		late.asked_ms = 0; /* again if the thread came too late */
		int first = visit(0);
		assert_int_equal(pthread_create(&thread, NULL, let_in_late, &late), 0);
		asking = &late;
		assert_int_equal(region_socket_ask(path, cookie).fd, -1);
		asking = NULL;
		pthread_join(thread, NULL);
		close(late.accepted);
		close(first);
		int rest; /* ours, if it was let in */
		while (fcntl(late.listener, F_SETFL, O_NONBLOCK) == 0 &&
		    (rest = accept(late.listener, NULL, NULL)) >= 0)
			close(rest);
		fcntl(late.listener, F_SETFL, 0);
	}
	/* the target's clock is as coarse as the kernel's tick */
	struct timespec tick;
	assert_int_equal(clock_getres(CLOCK_MONOTONIC_COARSE, &tick), 0);
	assert_in_range(asked_timeout_ms, 0,
	    REGION_SOCKET_WAIT_MS - (late.accepted_ms - late.asked_ms) + tick.tv_nsec / 1000000 + 1);
	close(late.listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_name_has_a_secret_part_but_not_the_cookie),
	    cmocka_unit_test(the_file_leads_there_too_and_is_removed),
	    cmocka_unit_test(a_name_that_is_taken_is_an_error),
	    cmocka_unit_test(a_process_holds_so_many_regions_and_no_more),
	    cmocka_unit_test(strangers_do_not_keep_others_waiting),
	    cmocka_unit_test(who_speaks_late_is_heard),
	    cmocka_unit_test(many_who_speak_late_are_heard),
	    cmocka_unit_test(who_cannot_be_accepted_is_counted),
	    cmocka_unit_test(the_target_waits_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
