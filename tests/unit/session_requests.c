/* SPDX-License-Identifier: Apache-2.0 */
/* What the clients of a session's control socket ask and are told; clients that leave, do not read, or ask
 * nothing. */
#include "tests/unit/session_scene.h"

#include <fcntl.h>

static void a_snapshot_is_answered_with_its_path(void **state)
{
	struct session_scene *s = *state;
	int fd = connect_client(s);

	expect(fd, NULL);
	say(s, fd, "snapshot 4711");
	assert_int_equal(s->request.target, CONTROL_PID);
	assert_int_equal(s->request.pid, 4711);
	assert_int_not_equal(s->asker, 0);
	expect(fd, "asked 1");
	expect(fd, NULL);
	control_server_written(s->server, s->asker, 4711, "/tmp/a b.pb.gz");
	expect(fd, "written 4711 /tmp/a b.pb.gz");
	expect(fd, "");
	close(fd);
}

static void each_process_of_a_snapshot_of_all_is_answered(void **state)
{
	struct session_scene *s = *state;
	int fd = connect_client(s);

	s->outstanding = 3;
	say(s, fd, "snapshot all");
	assert_int_equal(s->request.target, CONTROL_ALL);
	expect(fd, "asked 3");
	control_server_written(s->server, s->asker, 10, "/x");
	control_server_failed(s->server, s->asker, 11, -ENOSPC);
	control_server_written(s->server, s->asker + 1, 12, "/z"); /* another client's */
	expect(fd, "written 10 /x");
	expect(fd, "failed 11 No space left on device");
	expect(fd, NULL);
	control_server_written(s->server, s->asker, 12, "/z");
	expect(fd, "written 12 /z");
	expect(fd, "");
	close(fd);
}

/* The pid is that of any process of the session. */
static void a_request_may_name_a_session(void **state)
{
	struct session_scene *s = *state;
	int fd = connect_client(s);

	s->outstanding = 2;
	say(s, fd, "snapshot session 4711");
	assert_int_equal(s->request.target, CONTROL_SESSION);
	assert_int_equal(s->request.pid, 4711);
	expect(fd, "asked 2");
	close(fd);
	pump(s);
}

static void an_unknown_process_is_answered_unknown(void **state)
{
	struct session_scene *s = *state;
	int fd = connect_client(s);

	s->outstanding = 0;
	say(s, fd, "snapshot 1");
	assert_int_equal(s->asked, 1);
	expect(fd, "unknown");
	expect(fd, "");
	close(fd);
}

static void a_bad_request_ends_the_connection(void **state)
{
	static const char *const words[] = {"x", "snapshot", "snapshot ", "snapshot -1", "snapshot 0",
	    "snapshot 12x", "snapshot x", "snapshot allx", "snapshot al", "SNAPSHOT 1", " snapshot 1",
	    "snapshot session", "snapshot session ", "snapshot session 0", "snapshot session all",
	    "snapshot session -1", "snapshot session 2147483648", "snapshot session 1x",
	    "snapshot 4294967297", "snapshot 2147483648", "snapshot 18446744073709551617",
	    "snapshot 99999999999999999999999999999999999999999999999999999999999999999999999999999"};
	struct session_scene *s = *state;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		int fd = connect_client(s);

		say(s, fd, words[i]);
		expect(fd, "");
		close(fd);
		pump(s);
	}
	assert_int_equal(s->asked, 0);
	int fd = connect_client(s);
	say(s, fd, "snapshot 2147483647");
	assert_int_equal(s->request.pid, 2147483647);
	close(fd);
}

static void a_second_request_ends_the_connection(void **state)
{
	struct session_scene *s = *state;
	int fd = connect_client(s);

	say(s, fd, "snapshot 5");
	uint64_t asker = s->asker;
	say(s, fd, "snapshot 6");
	assert_int_equal(s->asked, 1);
	expect(fd, "asked 1");
	expect(fd, "");
	control_server_written(s->server, asker, 5, "/x"); /* the client is gone: no answer */
	close(fd);
}

static void a_client_that_leaves_early_disturbs_no_other(void **state)
{
	struct session_scene *s = *state;
	int leaves = connect_client(s);

	say(s, leaves, "snapshot 5");
	uint64_t asker = s->asker;
	close(leaves);
	pump(s);
	int stays = connect_client(s); /* in the same place */
	say(s, stays, "snapshot 6");
	assert_int_not_equal(s->asker, asker);
	control_server_written(s->server, asker, 5, "/x");
	control_server_written(s->server, s->asker, 6, "/y");
	expect(stays, "asked 1");
	expect(stays, "written 6 /y");
	expect(stays, "");
	close(stays);
	/* The client is gone, but the server does not know yet. */
	leaves = connect_client(s);
	say(s, leaves, "snapshot 7");
	close(leaves);
	control_server_written(s->server, s->asker, 7, "/z");
	pump(s);
}

/* A child that writes a snapshot has copies of the clients' descriptors: to close ours is not enough. */
static void copies_of_a_descriptor_keep_no_connection_open(void **state)
{
	struct session_scene *s = *state;
	int fd = connect_client(s), copy;
	struct epoll_event event;

	say(s, fd, "snapshot 5");
	for (copy = fd + 1; fcntl(copy, F_GETFD) < 0; copy++)
		; /* the server's end: accepted after ours was made */
	copy = dup(copy);
	close(fd);
	assert_int_equal(epoll_wait(s->epoll_fd, &event, 1, 0), 1);
	assert_true(control_server_event(s->server, event.data.fd));
	assert_int_equal(epoll_wait(s->epoll_fd, &event, 1, 0), 0);
	close(copy);
	/* A client that is sent away sees the end all the same. */
	fd = connect_client(s);
	for (copy = fd + 1; fcntl(copy, F_GETFD) < 0; copy++)
		;
	copy = dup(copy);
	say(s, fd, "x");
	expect(fd, "");
	close(fd);
	close(copy);
}

/* A client whose socket is full is dropped at once, and another client is served. */
static void a_client_that_does_not_read_is_dropped(void **state)
{
	enum { ANSWERS = 100000 };
	struct session_scene *s = *state;
	char path[4000], got[CONTROL_ANSWER_BYTES];
	int deaf = connect_client(s), other = connect_client(s);

	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	s->outstanding = ANSWERS;
	say(s, deaf, "snapshot all");
	uint64_t asker = s->asker;
	say(s, other, "snapshot all");
	for (int i = 0; i < ANSWERS / 2; i++)
		control_server_written(s->server, asker, 1, path);
	control_server_written(s->server, s->asker, 2, "/x");
	expect(other, "asked 100000");
	expect(other, "written 2 /x");
	expect(other, NULL);
	int count = 0;
	ssize_t bytes;
	while ((bytes = recv(deaf, got, sizeof(got), MSG_DONTWAIT)) > 0)
		count++;
	assert_true(bytes == 0 || errno == ECONNRESET); /* the end, and not "nothing yet" */
	assert_in_range(count, 1, ANSWERS - 1);
	close(deaf);
	close(other);
}

static void a_client_that_asks_nothing_makes_room(void **state)
{
	struct session_scene *s = *state;
	int fds[CONTROL_SERVER_CLIENTS];

	for (int i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		fds[i] = connect_client(s);
	int fd = connect_client(s);
	say(s, fd, "snapshot 9");
	expect(fd, "asked 1");
	expect(fds[0], "busy");
	expect(fds[0], "");
	for (int i = 1; i < CONTROL_SERVER_CLIENTS; i++)
		expect(fds[i], NULL);
	close(fd);
	for (int i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		close(fds[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_session, close_session)
	const struct CMUnitTest tests[] = {
	    TEST(a_snapshot_is_answered_with_its_path),
	    TEST(each_process_of_a_snapshot_of_all_is_answered),
	    TEST(a_request_may_name_a_session),
	    TEST(an_unknown_process_is_answered_unknown),
	    TEST(a_bad_request_ends_the_connection),
	    TEST(a_second_request_ends_the_connection),
	    TEST(a_client_that_leaves_early_disturbs_no_other),
	    TEST(copies_of_a_descriptor_keep_no_connection_open),
	    TEST(a_client_that_does_not_read_is_dropped),
	    TEST(a_client_that_asks_nothing_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
