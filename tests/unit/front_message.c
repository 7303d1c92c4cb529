/* SPDX-License-Identifier: Apache-2.0 */
/* What the front and the sampler tell each other, over real socket pairs, whole and cut. */
#include "sampler/cmd/record/front_message.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct pair {
	int ours, theirs;
};

static int open_pair(void **state)
{
	struct pair *pair = malloc(sizeof(*pair));
	int fds[2];

	*state = pair;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
		return -1;
	*pair = (struct pair){fds[0], fds[1]};
	return 0;
}

static int close_pair(void **state)
{
	struct pair *pair = *state;

	close(pair->ours);
	close(pair->theirs);
	free(pair);
	return 0;
}

static void messages_arrive_one_by_one(void **state)
{
	const struct pair *pair = *state;
	struct front_message message;

	assert_int_equal(
	    front_message_write(pair->theirs, FRONT_MESSAGE_READY, 0, 0, "/proc/1/fd/3:0123456789abcdef"), 0);
	assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_STARTED, 4711, 0, NULL), 0);
	assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_ENDED, 4711, -139, ""), 0);
	memset(&message, 0xff, sizeof(message));
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(message.kind, FRONT_MESSAGE_READY);
	assert_string_equal(message.text, "/proc/1/fd/3:0123456789abcdef");
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(message.kind, FRONT_MESSAGE_STARTED);
	assert_int_equal(message.pid, 4711);
	assert_string_equal(message.text, "");
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(message.kind, FRONT_MESSAGE_ENDED);
	assert_int_equal(message.status, -139);
	assert_int_equal(front_message_read(pair->ours, &message), -EAGAIN);
}

static void a_long_text_is_cut(void **state)
{
	const struct pair *pair = *state;
	struct front_message message;
	char text[3 * FRONT_MESSAGE_TEXT_BYTES];

	for (size_t bytes = FRONT_MESSAGE_TEXT_BYTES - 2; bytes < sizeof(text); bytes *= 1 + bytes % 2) {
		memset(text, 'x', sizeof(text));
		text[bytes++] = '\0';
		assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_FAILED, 0, 0, text), 0);
		assert_int_equal(front_message_read(pair->ours, &message), 0);
		size_t wanted = bytes <= FRONT_MESSAGE_TEXT_BYTES ? bytes - 1 : FRONT_MESSAGE_TEXT_BYTES - 1;
		assert_int_equal(strlen(message.text), wanted);
	}
}

static void the_other_side_is_gone(void **state)
{
	struct pair *pair = *state;
	struct front_message message;

	assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_DONE, 0, 0, NULL), 0);
	close(pair->theirs);
	pair->theirs = -1;
	/* What it said before still counts. */
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(message.kind, FRONT_MESSAGE_DONE);
	assert_int_equal(front_message_read(pair->ours, &message), -EPIPE);
	assert_int_equal(front_message_write(pair->ours, FRONT_MESSAGE_DONE, 0, 0, NULL), -EPIPE);
}

/* It ended without having read all that it was told: the kernel reports a reset, which is the same to us. */
static void the_other_side_died_with_messages_unread(void **state)
{
	struct pair *pair = *state;
	struct front_message message;

	assert_int_equal(front_message_write(pair->ours, FRONT_MESSAGE_DONE, 0, 0, NULL), 0);
	close(pair->theirs);
	pair->theirs = -1;
	int error = front_message_read(pair->ours, &message);
	assert_int_equal(error, -EPIPE);
}

static void a_packet_that_is_no_message(void **state)
{
	static const size_t sizes[] = {
	    1, 4, sizeof(struct front_message) - FRONT_MESSAGE_TEXT_BYTES, sizeof(struct front_message) - 1};
	const struct pair *pair = *state;
	struct front_message message = {.kind = FRONT_MESSAGE_READY};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(send(pair->theirs, &message, sizes[i], 0), sizes[i]);
		assert_int_equal(front_message_read(pair->ours, &message), -EPROTO);
	}
	/* The next one is read as it is. */
	assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_ATTACHED, 0, 0, NULL), 0);
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(message.kind, FRONT_MESSAGE_ATTACHED);
}

static void a_packet_that_is_too_long(void **state)
{
	const struct pair *pair = *state;
	struct {
		struct front_message message;
		char more[8];
	} packet = {.message.kind = FRONT_MESSAGE_READY};
	struct front_message message;

	assert_int_equal(send(pair->theirs, &packet, sizeof(packet), 0), sizeof(packet));
	assert_int_equal(front_message_read(pair->ours, &message), -EPROTO);
	assert_int_equal(front_message_read(pair->ours, &message), -EAGAIN);
}

static void a_text_without_an_end_gets_one(void **state)
{
	const struct pair *pair = *state;
	struct front_message message = {.kind = FRONT_MESSAGE_FAILED};

	memset(message.text, 'y', sizeof(message.text));
	assert_int_equal(send(pair->theirs, &message, sizeof(message), 0), sizeof(message));
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(strnlen(message.text, sizeof(message.text)), FRONT_MESSAGE_TEXT_BYTES - 1);
}

static void no_socket_at_all(void **state)
{
	struct front_message message;

	(void)state;
	assert_int_equal(front_message_read(-1, &message), -EBADF);
	assert_int_equal(front_message_write(-1, FRONT_MESSAGE_DONE, 0, 0, NULL), -EBADF);
}

static void interrupted(int number)
{
	(void)number;
}

/* A signal is no reason to lose a message. */
static void signals_do_not_cut_it(void **state)
{
	const struct pair *pair = *state;
	const struct sigaction action = {.sa_handler = interrupted}; /* without SA_RESTART */
	struct front_message message;

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(fcntl(pair->ours, F_SETFL, 0), 0); /* blocking now */
	pid_t reader = getpid(), pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 20; i++) { /* some find the reader waiting */
			kill(reader, SIGALRM);
			usleep(1000);
		}
		_exit(front_message_write(pair->theirs, FRONT_MESSAGE_DONE, 7, 0, "after the signals"));
	}
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_string_equal(message.text, "after the signals");
	signal(SIGALRM, SIG_DFL);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void nothing_is_sent_that_has_no_room(void **state)
{
	const struct pair *pair = *state;
	struct front_message message;
	int error, sent = 0;

	while ((error = front_message_write(pair->theirs, FRONT_MESSAGE_READY, 0, 0, NULL)) == 0)
		sent++;
	assert_int_equal(error, -EAGAIN);
	assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_DONE, 0, 0, NULL), -EAGAIN);
	for (int i = 0; i < sent; i++)
		assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(message.kind, FRONT_MESSAGE_READY);
	assert_int_equal(front_message_read(pair->ours, &message), -EAGAIN);
	assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_DONE, 0, 0, NULL), 0);
}

/* Otherwise a front that is stopped for some minutes would leave no room for DONE. */
static void one_sign_of_life_is_unread_at_most(void **state)
{
	const struct pair *pair = *state;
	struct front_message message;

	for (int i = 0; i < 1000; i++)
		assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_ALIVE, 0, 0, NULL), 0);
	assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_DONE, 0, 0, NULL), 0);
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(message.kind, FRONT_MESSAGE_ALIVE);
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(message.kind, FRONT_MESSAGE_DONE);
	assert_int_equal(front_message_read(pair->ours, &message), -EAGAIN);
	/* All is read, and the next one is news. */
	assert_int_equal(front_message_write(pair->theirs, FRONT_MESSAGE_ALIVE, 0, 0, NULL), 0);
	assert_int_equal(front_message_read(pair->ours, &message), 0);
	assert_int_equal(message.kind, FRONT_MESSAGE_ALIVE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
	const struct CMUnitTest tests[] = {
	    TEST(messages_arrive_one_by_one),
	    TEST(a_long_text_is_cut),
	    TEST(the_other_side_is_gone),
	    TEST(the_other_side_died_with_messages_unread),
	    TEST(a_packet_that_is_no_message),
	    TEST(a_packet_that_is_too_long),
	    TEST(a_text_without_an_end_gets_one),
	    TEST(no_socket_at_all),
	    TEST(signals_do_not_cut_it),
	    TEST(nothing_is_sent_that_has_no_room),
	    TEST(one_sign_of_life_is_unread_at_most),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
