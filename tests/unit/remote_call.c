/* SPDX-License-Identifier: Apache-2.0 */
/* What is pure in attaching: which calls end at a stop, and the vector state of a signal frame. */
#include "sampler/inject/remote_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

/* Those that Linux resumes, or that can be made again, are never a reason to look for another thread. */
static void only_calls_with_a_timeout_end(void **state)
{
	const uint64_t none[6] = {0}, endless[6] = {3, 0, 1, UINT32_MAX, 0, 0},
	               timed[6] = {3, 0, 1, 100, 0, 0};

	assert_false(remote_call_ends_call(SYS_poll, timed));
	assert_false(remote_call_ends_call(SYS_read, none));
	assert_false(remote_call_ends_call(SYS_futex, timed));
	assert_false(remote_call_ends_call(SYS_epoll_wait, endless));
	assert_true(remote_call_ends_call(SYS_epoll_wait, timed));
	assert_true(remote_call_ends_call(SYS_epoll_pwait, timed));
	assert_true(remote_call_ends_call(SYS_epoll_wait, none)); /* returns at once */
	assert_false(remote_call_ends_call(SYS_semtimedop, none));
	assert_true(remote_call_ends_call(SYS_semtimedop, timed));
	assert_false(remote_call_ends_call(SYS_rt_sigtimedwait, none));
	assert_true(remote_call_ends_call(SYS_rt_sigtimedwait, (const uint64_t[6]){1, 0, 0x1000, 8, 0, 0}));
	assert_false(remote_call_ends_call(SYS_io_uring_enter, none));
	assert_true(remote_call_ends_call(SYS_io_uring_enter, (const uint64_t[6]){3, 1, 1, 1, 0, 0}));
}

/* Of these a part may be done. */
static void long_transfers_end(void **state)
{
	const uint64_t none[6] = {0}, whole[6] = {3, 0, MSG_WAITALL, MSG_WAITALL, 0, 0};

	assert_true(remote_call_ends_call(SYS_write, none));
	assert_true(remote_call_ends_call(SYS_sendmsg, none));
	assert_false(remote_call_ends_call(SYS_recvfrom, none));
	assert_true(remote_call_ends_call(SYS_recvfrom, whole));
	assert_true(remote_call_ends_call(SYS_recvmsg, whole));
}

static void sockets_are_asked_for_their_limits(void **state)
{
	const uint64_t arguments[6] = {7, 0, 0, 0, 0, 0};

	assert_int_equal(remote_call_socket(SYS_recvfrom, arguments), 7);
	assert_int_equal(remote_call_socket(SYS_accept4, arguments), 7);
	assert_int_equal(remote_call_socket(SYS_poll, arguments), -1);
}

enum { LEGACY = 512, DESCRIPTION = 464 };

static void put(unsigned char *area, size_t at, uint64_t value)
{
	memcpy(area + at, &value, sizeof(value));
}

static uint32_t word(const unsigned char *frame, size_t at)
{
	uint32_t value;

	memcpy(&value, frame + at, sizeof(value));
	return value;
}

static void a_frame_describes_its_state(void **state)
{
	unsigned char area[4096], frame[sizeof(area) + 4];

	memset(area, 0x5a, sizeof(area));
	put(area, DESCRIPTION, 3); /* x87 and SSE are enabled, */
	put(area, LEGACY, 3);      /* and in use */
	size_t bytes = stopped_thread_frame_vector(area, sizeof(area), frame);
	assert_int_equal(bytes, LEGACY + 64 + 4);
	assert_int_equal(word(frame, DESCRIPTION), 0x46505853);
	assert_int_equal(word(frame, DESCRIPTION + 4), bytes);
	assert_int_equal(word(frame, DESCRIPTION + 8), 3);
	assert_int_equal(word(frame, DESCRIPTION + 16), bytes - 4);
	assert_int_equal(word(frame, bytes - 4), 0x46505845);
	assert_memory_equal(frame, area, DESCRIPTION);
}

static void state_that_would_be_lost_is_refused(void **state)
{
	unsigned char area[4096] = {0}, frame[sizeof(area) + 4];

	put(area, DESCRIPTION, 3 | UINT64_C(1) << 18);
	put(area, LEGACY, 3 | UINT64_C(1) << 18); /* AMX tiles are in use */
	assert_int_equal(stopped_thread_frame_vector(area, sizeof(area), frame), 0);
	put(area, LEGACY, 3);
	assert_int_not_equal(stopped_thread_frame_vector(area, sizeof(area), frame), 0);
	assert_int_equal(stopped_thread_frame_vector(area, 100, frame), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_calls_with_a_timeout_end),
	    cmocka_unit_test(long_transfers_end),
	    cmocka_unit_test(sockets_are_asked_for_their_limits),
	    cmocka_unit_test(a_frame_describes_its_state),
	    cmocka_unit_test(state_that_would_be_lost_is_refused),
	};

	return cmocka_run_group_tests_name("remote_call", tests, NULL, NULL);
}
