/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: the answers that clients get, where the socket is, and a server that lies. */
#include "tests/unit/control_scene.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

static void a_snapshot_is_answered_for_each_process(void **state)
{
	struct daemon *d = *state;
	struct control_answer answer;

	d->outstanding = 3;
	int fd = connect_and_ask(d, &snapshot_all);
	assert_int_equal(d->request.target, CONTROL_ALL);
	assert_int_equal(next(fd, &answer), 1);
	assert_int_equal(answer.kind, CONTROL_ASKED);
	assert_int_equal(answer.count, 3);
	assert_int_equal(next(fd, &answer), -EAGAIN);
	assert_true(control_server_waits(d->server, d->asker));
	control_server_written(d->server, d->asker, 5, "/tmp/a b.pb.gz");
	control_server_written(d->server, d->asker + 1, 6, "/somebody/elses");
	control_server_failed(d->server, d->asker, 7, -ESRCH);
	control_server_failed(d->server, d->asker, 6, -ENOSPC);
	assert_int_equal(next(fd, &answer), 1);
	assert_int_equal(answer.pid, 5);
	assert_string_equal(answer.text, "/tmp/a b.pb.gz");
	assert_int_equal(next(fd, &answer), 1);
	assert_int_equal(answer.kind, CONTROL_GONE);
	assert_int_equal(answer.pid, 7);
	assert_int_equal(next(fd, &answer), 1);
	assert_string_equal(answer.text, strerror(ENOSPC));
	assert_false(control_server_waits(d->server, d->asker));
	expect_end(fd);
	assert_int_equal(d->gone, 0);
}

static void a_profile_is_sealed_memory(void **state)
{
	static const char bytes[] = "not really a profile";
	struct daemon *d = *state;
	struct control_answer answer;
	int before = count_fds(), profile_fd;
	int fd = connect_and_ask(d, &profile_7);

	expect_kind(fd, CONTROL_ASKED);
	control_server_profiled(d->server, d->asker, 7, control_server_memory(bytes, sizeof(bytes)));
	assert_int_equal(control_client_receive(fd, 0, &answer, &profile_fd), 1);
	assert_int_equal(answer.kind, CONTROL_PROFILED);
	assert_int_equal(answer.bytes, sizeof(bytes));
	assert_int_equal(write(profile_fd, "x", 1), -1); /* sealed */
	assert_int_equal(ftruncate(profile_fd, 0), -1);
	void *read_bytes;
	assert_int_equal(control_client_read(profile_fd, answer.bytes, &read_bytes), 0);
	assert_memory_equal(read_bytes, bytes, sizeof(bytes));
	free(read_bytes);
	expect_end(fd);
	assert_int_equal(count_fds(), before);
	/* A profile that nobody waits for is closed all the same. */
	control_server_profiled(d->server, d->asker, 7, control_server_memory(bytes, sizeof(bytes)));
	assert_int_equal(count_fds(), before);
}

static int list_10000(struct daemon *d)
{
	struct control_list read_list;
	char reason[256];

	if (control_client_list(d->path, &read_list, reason, sizeof(reason)) != 0)
		return 1;
	bool good = read_list.process_count == 10000 && read_list.daemon.pid == getppid() &&
	    strcmp(read_list.processes[9999].service, "redis") == 0;
	control_list_fini(&read_list);
	return good ? 0 : 2;
}

static void a_list_of_many_processes(void **state)
{
	assert_int_equal(run_client(*state, list_10000), 0);
}

static int count_visits(void *context, const struct control_answer *answer, int profile_fd)
{
	*(int *)context += answer->kind == CONTROL_WRITTEN && strcmp(answer->text, "/x") == 0;
	return 0;
}

static int snapshot_5000(struct daemon *d)
{
	uint32_t missing;
	int visits = 0;
	char reason[256];
	int error = control_client_each(
	    d->path, &snapshot_all, count_visits, &visits, &missing, reason, sizeof(reason));

	return error || missing || visits != 5000;
}

/* More answers at once than a socket's buffer holds: the rest is sent when the client has read. */
static void answers_wait_for_room_in_the_socket(void **state)
{
	struct daemon *d = *state;

	d->outstanding = 5000;
	assert_int_equal(run_client(d, snapshot_5000), 0);
}

static int unknown_process(struct daemon *d)
{
	uint32_t missing;
	char reason[256];

	return control_client_each(
	           d->path, &profile_7, count_visits, NULL, &missing, reason, sizeof(reason)) != -ENOENT ||
	    strcmp(reason, "the daemon profiles no such process") != 0;
}

static int busy(struct daemon *d)
{
	uint32_t missing;
	char reason[256];

	return control_client_each(
	           d->path, &profile_7, count_visits, NULL, &missing, reason, sizeof(reason)) != -EBUSY;
}

static int unsupported(struct daemon *d)
{
	uint32_t missing;
	char reason[256];

	return control_client_each(
	           d->path, &profile_7, count_visits, NULL, &missing, reason, sizeof(reason)) != -EOPNOTSUPP;
}

static void each_refusal_has_its_error(void **state)
{
	struct daemon *d = *state;

	d->outstanding = 0;
	assert_int_equal(run_client(d, unknown_process), 0);
	d->outstanding = -EOPNOTSUPP;
	assert_int_equal(run_client(d, unsupported), 0);
	/* Any other error is "busy": "unknown" would deny that the process is profiled. */
	d->outstanding = -EBUSY;
	assert_int_equal(run_client(d, busy), 0);
	d->outstanding = -EAGAIN;
	assert_int_equal(run_client(d, busy), 0);
}

/* ---- where the socket is */

static void a_socket_that_nobody_serves_is_replaced(void **state)
{
	struct daemon *d = *state;

	assert_int_equal(control_socket_bind(d->path, CONTROL_NO_GROUP), -EADDRINUSE);
	control_server_free(d->server);
	assert_int_equal(start(d, CONTROL_NO_GROUP), 0);
	close(connect_client(d));
	control_server_free(d->server);
	d->server = NULL;
	assert_int_equal(control_socket_connect(d->path), -ECONNREFUSED);
	assert_int_equal(workshop_run(&d->shop, "rm run/control && echo precious >run/control"), 0);
	assert_int_equal(control_socket_bind(d->path, CONTROL_NO_GROUP), -EEXIST);
	assert_int_equal(workshop_run(&d->shop, "grep -q precious run/control && rm run/control"), 0);
	assert_int_equal(workshop_run(&d->shop, "[ -z \"$(ls -A run)\" ] && chmod 777 run"), 0);
	assert_int_equal(control_socket_bind(d->path, CONTROL_NO_GROUP), -EPERM);
}

static void the_order_of_paths(void **state)
{
	char paths[CONTROL_PATHS][CONTROL_PATH_BYTES], path[CONTROL_PATH_BYTES], longest[256];
	bool chosen;

	unsetenv("HEAPTAP_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(control_path_candidates(NULL, 0, paths, &chosen), 1);
	assert_string_equal(paths[0], "/run/heaptap/control");
	assert_false(chosen);
	assert_int_equal(control_path_candidates(NULL, 7, paths, &chosen), 2);
	assert_string_equal(paths[0], "/tmp/heaptap-7/control");
	assert_string_equal(paths[1], "/run/heaptap/control");
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	assert_int_equal(control_path_own(NULL, 7, path), 0);
	assert_string_equal(path, "/run/user/7/heaptap/control");
	setenv("HEAPTAP_SOCKET", "/a/b", 1);
	assert_int_equal(control_path_candidates(NULL, 7, paths, &chosen), 1);
	assert_string_equal(paths[0], "/a/b");
	assert_true(chosen);
	assert_int_equal(control_path_candidates("c", 7, paths, &chosen), 1);
	assert_string_equal(paths[0], "c");
	/* A user who has become root may still have the variable of before. */
	assert_int_equal(control_path_candidates(NULL, 0, paths, &chosen), 1);
	assert_string_equal(paths[0], "/a/b");
	assert_false(chosen);
	assert_int_equal(control_path_candidates("c", 0, paths, &chosen), 1);
	assert_true(chosen);
	setenv("HEAPTAP_SOCKET", "", 1);
	assert_int_equal(control_path_candidates(NULL, 0, paths, &chosen), 1);
	assert_false(chosen);
	assert_int_equal(control_path_off("/run/heaptap/control", path), 0);
	assert_string_equal(path, "/run/heaptap/off");
	assert_int_equal(control_path_off("c", path), 0);
	assert_string_equal(path, "off");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(control_path_own(longest, 0, path), -ENAMETOOLONG);
	assert_int_equal(control_path_candidates(longest, 0, paths, &chosen), 0);
}

/* ---- a server that lies */

/* A client asks a server that answers `text`, with so many copies of fd (-1: none). Returns what
 * control_client_receive() does. */
static int lie(const char *text, int fd, int copies, int *profile_fd, struct control_answer *answer)
{
	int fds[2];
	char room[CMSG_SPACE(4 * sizeof(int))] = "";
	struct iovec bytes = {(void *)(uintptr_t)text, strlen(text)};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = room;
		message.msg_controllen = CMSG_SPACE((size_t)copies * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		*header = (struct cmsghdr){CMSG_LEN((size_t)copies * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		for (int i = 0; i < copies; i++)
			memcpy(CMSG_DATA(header) + (size_t)i * sizeof(int), &fd, sizeof(fd));
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_true(sendmsg(fds[0], &message, 0) >= 0);
	close(fds[0]);
	int got = control_client_receive(fds[1], 1000, answer, profile_fd);
	close(fds[1]);
	return got;
}

static void a_server_that_lies_is_not_believed(void **state)
{
	static struct control_answer answer;
	int profile_fd, before = count_fds();
	int sealed = control_server_memory("12345", 5),
	    loose = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(loose, 5), 0);
	assert_int_equal(lie("profile 7 5", -1, 0, &profile_fd, &answer), -EPROTO); /* no descriptor */
	assert_int_equal(lie("profile 7 6", sealed, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(lie("profile 7 5", loose, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(lie("written 7 /x", sealed, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(lie("nonsense", sealed, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(lie("list 5", STDERR_FILENO, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(count_fds(), before + 2);
	for (int copies = 1; copies <= 4; copies++) {
		assert_int_equal(lie("profile 7 5", sealed, copies, &profile_fd, &answer), 1);
		close(profile_fd);
		assert_int_equal(count_fds(), before + 2); /* the other copies are closed */
	}
	close(sealed);
	close(loose);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_daemon, close_daemon)
	const struct CMUnitTest tests[] = {
	    TEST(a_snapshot_is_answered_for_each_process),
	    TEST(a_profile_is_sealed_memory),
	    TEST(a_list_of_many_processes),
	    TEST(answers_wait_for_room_in_the_socket),
	    TEST(each_refusal_has_its_error),
	    TEST(a_socket_that_nobody_serves_is_replaced),
	    cmocka_unit_test(the_order_of_paths),
	    cmocka_unit_test(a_server_that_lies_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
