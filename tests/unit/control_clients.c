/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that could harm the control server: they hang up, do not read, ask nothing or twice, are too many,
 * or may not ask. */
#include "tests/unit/control_scene.h"

#include <grp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { NOBODYS_UID = 54321, GROUP = 54322 };

static void a_client_that_hangs_up_is_forgotten(void **state)
{
	struct daemon *d = *state;
	int fd = connect_and_ask(d, &snapshot_all);
	uint64_t asker = d->asker;

	close(fd);
	pump(d);
	assert_int_equal(d->gone, 1);
	assert_false(control_server_waits(d->server, asker));
	control_server_written(d->server, asker, 7, "/x");
	/* Another client in its place does not get its answers. */
	fd = connect_and_ask(d, &snapshot_all);
	expect_kind(fd, CONTROL_ASKED);
	control_server_written(d->server, asker, 7, "/x");
	control_server_written(d->server, d->asker, 8, "/y");
	struct control_answer answer;
	assert_int_equal(next(fd, &answer), 1);
	assert_int_equal(answer.pid, 8);
	expect_end(fd);
}

static void a_client_that_does_not_read_is_dropped(void **state)
{
	struct daemon *d = *state;
	char path[4000];

	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	d->outstanding = 100000;
	int fd = connect_and_ask(d, &snapshot_all);
	int answers = 0;
	while (control_server_waits(d->server, d->asker) && answers < 100000) {
		control_server_written(d->server, d->asker, 7, path);
		answers++;
	}
	assert_int_equal(d->gone, 1);
	assert_in_range(answers, CONTROL_SERVER_QUEUE_BYTES / 4096, 4 * CONTROL_SERVER_QUEUE_BYTES / 4096);
	close(fd);
}

/* Profiles that wait are memory of ours: a client that asks for many and reads none is dropped. */
static void few_profiles_wait_for_a_client(void **state)
{
	struct daemon *d = *state;
	int before = count_fds(), sent = 0;

	d->outstanding = 1000;
	int fd = connect_and_ask(d, &profile_7);
	for (; sent < 1000 && control_server_waits(d->server, d->asker); sent++)
		control_server_profiled(d->server, d->asker, 7, control_server_memory("x", 1));
	assert_in_range(sent, CONTROL_SERVER_QUEUE_PROFILES, 64);
	close(fd);
	pump(d);
	assert_int_equal(count_fds(), before);
	/* If the client hangs up, the profiles that wait are closed. */
	before = count_fds();
	fd = connect_and_ask(d, &profile_7);
	for (int i = 0; i < sent - 1; i++)
		control_server_profiled(d->server, d->asker, 7, control_server_memory("x", 1));
	assert_true(control_server_waits(d->server, d->asker));
	close(fd);
	pump(d);
	assert_int_equal(count_fds(), before);
}

static void anything_but_one_request_ends_the_connection(void **state)
{
	struct daemon *d = *state;
	int fd = connect_and_ask(d, &snapshot_all);

	assert_int_equal(control_client_send(fd, &snapshot_all), 0);
	pump(d);
	assert_int_equal(d->asked, 1);
	expect_kind(fd, CONTROL_ASKED);
	expect_end(fd);
	assert_int_equal(send(fd = connect_client(d), "nonsense", 8, MSG_NOSIGNAL), 8);
	pump(d);
	expect_end(fd);
}

static void when_every_client_waits_a_new_client_is_told_busy(void **state)
{
	struct daemon *d = *state;
	int fds[CONTROL_SERVER_CLIENTS];

	for (int i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		expect_kind(fds[i] = connect_and_ask(d, &snapshot_all), CONTROL_ASKED);
	int fd = connect_client(d);
	expect_kind(fd, CONTROL_BUSY);
	expect_end(fd);
	for (int i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		close(fds[i]);
	pump(d);
	expect_kind(fd = connect_and_ask(d, &snapshot_all), CONTROL_ASKED);
	close(fd);
}

/* Clients that ask nothing keep nobody from asking: the oldest of them loses its place. */
static void a_client_that_asks_nothing_makes_room(void **state)
{
	struct daemon *d = *state;
	int fds[CONTROL_SERVER_CLIENTS];

	expect_kind(fds[0] = connect_and_ask(d, &snapshot_all), CONTROL_ASKED);
	for (int i = 1; i < CONTROL_SERVER_CLIENTS; i++)
		fds[i] = connect_client(d);
	int fd = connect_and_ask(d, &snapshot_all);
	expect_kind(fd, CONTROL_ASKED);
	expect_kind(fds[1], CONTROL_BUSY);
	expect_end(fds[1]);
	close(fd);
	for (int i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		close(fds[i]);
	pump(d);
	assert_int_equal(d->gone, 2);
}

/* Clients that cannot be accepted would keep the socket readable, and the main loop awake. */
static void without_descriptors_clients_are_told_busy(void **state)
{
	struct daemon *d = *state;
	struct rlimit limit, few;
	struct epoll_event event;
	int fds[3], none;

	for (int i = 0; i < 3; i++)
		assert_true((fds[i] = control_socket_connect(d->path)) >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = dup(fds[0]);
	close(none);
	few = (struct rlimit){(rlim_t)none, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int rounds = 0; rounds < 20 && epoll_wait(d->epoll_fd, &event, 1, 0) == 1; rounds++)
		(void)control_server_event(d->server, event.data.fd);
	int left = epoll_wait(d->epoll_fd, &event, 1, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(left, 0);
	for (int i = 0; i < 3; i++) {
		expect_kind(fds[i], CONTROL_BUSY);
		expect_end(fds[i]);
	}
	int fd = connect_and_ask(d, &snapshot_all);
	expect_kind(fd, CONTROL_ASKED);
	close(fd);
}

/* A client of that user and these groups, which asks for the list. */
static int as_user(struct daemon *d, uid_t uid, gid_t gid, gid_t other)
{
	struct control_list read_list;
	char reason[256];

	if (setgroups(other != CONTROL_NO_GROUP, &other) != 0 || setresgid(gid, gid, gid) != 0 ||
	    setresuid(uid, uid, uid) != 0)
		return 9;
	int error = control_client_list(d->path, &read_list, reason, sizeof(reason));
	if (!error)
		control_list_fini(&read_list);
	return error ? 1 : 0;
}

static int as_root(struct daemon *d)
{
	return as_user(d, 0, 0, CONTROL_NO_GROUP);
}

static int as_stranger(struct daemon *d)
{
	return as_user(d, NOBODYS_UID, NOBODYS_UID, CONTROL_NO_GROUP);
}

static int as_member(struct daemon *d)
{
	return as_user(d, NOBODYS_UID, NOBODYS_UID, GROUP);
}

static int with_group(struct daemon *d)
{
	return as_user(d, NOBODYS_UID, GROUP, CONTROL_NO_GROUP);
}

static void only_root_our_user_and_the_group_may_ask(void **state)
{
	struct daemon *d = *state;
	struct stat status;

	if (geteuid() != 0) {
		print_message("only root can become a stranger\n");
		skip();
	}
	control_server_free(d->server);
	d->server = NULL;
	assert_int_equal(workshop_run(&d->shop, "chmod 755 . && rm -r run"), 0);
	assert_int_equal(start(d, GROUP), 0);
	assert_int_equal(stat(d->path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0660);
	assert_int_equal(status.st_gid, GROUP);
	assert_int_equal(run_client(d, as_member), 0);
	assert_int_equal(run_client(d, with_group), 0);
	assert_int_equal(run_client(d, as_stranger), 1);
	/* Even when the way to the socket stands open. */
	assert_int_equal(workshop_run(&d->shop, "chmod 777 run/control && chmod 755 run"), 0);
	assert_int_equal(run_client(d, as_stranger), 1);
	assert_int_equal(run_client(d, as_root), 0);
	/* Nor does a user with as many clients as there are places keep another user from asking. */
	int fds[CONTROL_SERVER_CLIENTS];
	for (int i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		expect_kind(fds[i] = connect_and_ask(d, &snapshot_all), CONTROL_ASKED);
	assert_int_equal(run_client(d, as_member), 0);
	expect_end(fds[0]);
	for (int i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		close(fds[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_daemon, close_daemon)
	const struct CMUnitTest tests[] = {
	    TEST(a_client_that_hangs_up_is_forgotten),
	    TEST(a_client_that_does_not_read_is_dropped),
	    TEST(few_profiles_wait_for_a_client),
	    TEST(anything_but_one_request_ends_the_connection),
	    TEST(when_every_client_waits_a_new_client_is_told_busy),
	    TEST(a_client_that_asks_nothing_makes_room),
	    TEST(without_descriptors_clients_are_told_busy),
	    TEST(only_root_our_user_and_the_group_may_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
