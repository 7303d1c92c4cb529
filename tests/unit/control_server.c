/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides of the control socket: real clients and a real server, strangers, those that do not read, and
 * servers that lie. */
#include "sampler/core/control_server.h"

#include "sampler/core/control_client.h"
#include "sampler/core/control_path.h"
#include "sampler/core/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/workshop.h"

enum { NOBODYS_UID = 54321, GROUP = 54322 };

/* The daemon's side, which notes what it is asked. */
struct daemon {
	struct workshop shop;
	char path[CONTROL_PATH_BYTES];
	struct control_server *server;
	int epoll_fd;
	int64_t outstanding; /* the answer to what comes next */
	uint32_t asked, gone;
	struct control_request request;
	uint64_t asker;
};

static int64_t ask(void *context, const struct control_request *request, uint64_t asker)
{
	struct daemon *d = context;

	d->asked++;
	d->request = *request;
	d->asker = asker;
	return d->outstanding;
}

static void list(void *context, struct control_list_writer *writer)
{
	const struct control_daemon daemon = {.pid = getpid(), .version = "1.2.3"};
	const struct control_process process = {.pid = 7, .service = "redis"};

	control_list_write_daemon(writer, &daemon);
	for (int i = 0; i < 10000; i++)
		control_list_write_process(writer, &process);
}

static void gone(void *context, uint64_t asker)
{
	((struct daemon *)context)->gone++;
}

static int start(struct daemon *d, gid_t group)
{
	const struct control_handlers handlers = {d, list, ask, gone};
	int error, fd = control_socket_bind(d->path, group);

	if (fd < 0)
		return fd;
	d->server = control_server_new(d->epoll_fd, fd, group, &handlers, &error);
	return error;
}

static int open_daemon(void **state)
{
	struct daemon *d = calloc(1, sizeof(*d));

	strcpy(d->shop.folder, "/tmp/heaptap-unit.XXXXXX");
	*state = d;
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!mkdtemp(d->shop.folder))
		return -1;
	snprintf(d->path, sizeof(d->path), "%s/run/control", d->shop.folder);
	d->outstanding = 1;
	return start(d, CONTROL_NO_GROUP);
}

static int close_daemon(void **state)
{
	struct daemon *d = *state;
	char command[128];

	control_server_free(d->server);
	close(d->epoll_fd);
	snprintf(command, sizeof(command), "rm -rf %s", d->shop.folder);
	free(d);
	return system(command);
}

/* Deals with all that has come. */
static void pump(struct daemon *d)
{
	struct epoll_event events[64];
	int count;

	while ((count = epoll_wait(d->epoll_fd, events, 64, 0)) > 0)
		for (int i = 0; i < count; i++)
			(void)control_server_event(d->server, events[i].data.fd);
}

static int connect_client(struct daemon *d)
{
	int fd = control_socket_connect(d->path);

	assert_true(fd >= 0);
	pump(d);
	return fd;
}

static int connect_and_ask(struct daemon *d, const struct control_request *request)
{
	int fd = connect_client(d);

	assert_int_equal(control_client_send(fd, request), 0);
	pump(d);
	return fd;
}

static const struct control_request snapshot_all = {.verb = CONTROL_SNAPSHOT, .target = CONTROL_ALL};
static const struct control_request profile_7 = {.verb = CONTROL_PROFILE, .target = CONTROL_PID, .pid = 7};

/* The next answer, which must have come. Returns what control_client_receive does. */
static int next(int fd, struct control_answer *answer)
{
	int profile_fd, got = control_client_receive(fd, 0, answer, &profile_fd);

	if (profile_fd >= 0)
		close(profile_fd);
	return got;
}

static void expect_kind(int fd, enum control_answer_kind kind)
{
	struct control_answer answer;

	assert_int_equal(next(fd, &answer), 1);
	assert_int_equal(answer.kind, kind);
}

static void expect_end(int fd)
{
	struct control_answer answer;

	assert_int_equal(next(fd, &answer), 0);
	close(fd);
}

static int count_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* ---- what works */

static void a_snapshot(void **state)
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

static void a_profile_without_a_file(void **state)
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
	/* Nobody waits for it: it is closed all the same. */
	control_server_profiled(d->server, d->asker, 7, control_server_memory(bytes, sizeof(bytes)));
	assert_int_equal(count_fds(), before);
}

/* A client of its own process, whose function waits for answers. Returns its exit status. */
static int run_client(struct daemon *d, int (*body)(struct daemon *d))
{
	int status, fds[2];

	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(fds[0]);
		_exit(body(d));
	}
	close(fds[1]);
	struct epoll_event event = {.events = EPOLLIN | EPOLLHUP, .data.fd = fds[0]};
	assert_int_equal(epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fds[0], &event), 0);
	while (epoll_wait(d->epoll_fd, &event, 1, 60000) == 1 && event.data.fd != fds[0]) {
		(void)control_server_event(d->server, event.data.fd);
		while (d->asked && control_server_waits(d->server, d->asker))
			control_server_written(d->server, d->asker, 7, "/x");
	}
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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

static void a_list(void **state)
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

/* More answers at once than a socket's buffer holds: those that wait are sent when it has been read. */
static void many_answers(void **state)
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

static void what_the_daemon_cannot_do(void **state)
{
	struct daemon *d = *state;

	d->outstanding = 0;
	assert_int_equal(run_client(d, unknown_process), 0);
	d->outstanding = -EOPNOTSUPP;
	assert_int_equal(run_client(d, unsupported), 0);
	/* Whatever there is no room for: the process is there all the same. */
	d->outstanding = -EBUSY;
	assert_int_equal(run_client(d, busy), 0);
	d->outstanding = -EAGAIN;
	assert_int_equal(run_client(d, busy), 0);
}

/* ---- bad clients */

static void who_hangs_up_is_forgotten(void **state)
{
	struct daemon *d = *state;
	int fd = connect_and_ask(d, &snapshot_all);
	uint64_t asker = d->asker;

	close(fd);
	pump(d);
	assert_int_equal(d->gone, 1);
	assert_false(control_server_waits(d->server, asker));
	control_server_written(d->server, asker, 7, "/x");
	/* Somebody else in its place is not told. */
	fd = connect_and_ask(d, &snapshot_all);
	expect_kind(fd, CONTROL_ASKED);
	control_server_written(d->server, asker, 7, "/x");
	control_server_written(d->server, d->asker, 8, "/y");
	struct control_answer answer;
	assert_int_equal(next(fd, &answer), 1);
	assert_int_equal(answer.pid, 8);
	expect_end(fd);
}

static void who_does_not_read_is_dropped(void **state)
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

/* They are memory of ours: who asks for all of them and reads none gets few. */
static void profiles_that_wait_are_few(void **state)
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
	/* And those that wait are closed if the client goes. */
	before = count_fds();
	fd = connect_and_ask(d, &profile_7);
	for (int i = 0; i < sent - 1; i++)
		control_server_profiled(d->server, d->asker, 7, control_server_memory("x", 1));
	assert_true(control_server_waits(d->server, d->asker));
	close(fd);
	pump(d);
	assert_int_equal(count_fds(), before);
}

static void a_second_request_ends_it(void **state)
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

static void there_is_room_for_so_many(void **state)
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

/* Clients that ask nothing shut nobody out: the oldest of them goes. */
static void who_asks_nothing_makes_room(void **state)
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

/* Who cannot be accepted would keep the socket readable, and the loop awake, for as long as that lasts. */
static void without_a_descriptor_it_comes_to_rest(void **state)
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

/* As that user and groups, a client that asks for the list. */
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
	assert_int_equal(run_client(d, list_10000), 0);
	/* Nor can one user keep another out by requests that take long. */
	int fds[CONTROL_SERVER_CLIENTS];
	for (int i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		expect_kind(fds[i] = connect_and_ask(d, &snapshot_all), CONTROL_ASKED);
	assert_int_equal(run_client(d, as_member), 0);
	expect_end(fds[0]);
	for (int i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		close(fds[i]);
}

/* ---- where it is */

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
	/* Who has become root may still have the variable of whom he was. */
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

/* ---- bad servers */

/* One that says `text`, with copies of fd (-1: none), to whoever asks. */
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

static void a_server_that_lies(void **state)
{
	static struct control_answer answer;
	int profile_fd, before = count_fds();
	int sealed = control_server_memory("12345", 5),
	    loose = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(loose, 5), 0);
	assert_int_equal(lie("profile 7 5", -1, 0, &profile_fd, &answer), -EPROTO); /* without one */
	assert_int_equal(lie("profile 7 6", sealed, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(lie("profile 7 5", loose, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(lie("written 7 /x", sealed, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(lie("nonsense", sealed, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(lie("list 5", STDERR_FILENO, 1, &profile_fd, &answer), -EPROTO);
	assert_int_equal(count_fds(), before + 2);
	for (int copies = 1; copies <= 4; copies++) {
		assert_int_equal(lie("profile 7 5", sealed, copies, &profile_fd, &answer), 1);
		close(profile_fd);
		assert_int_equal(count_fds(), before + 2); /* those that came with it are gone */
	}
	close(sealed);
	close(loose);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_snapshot, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(a_profile_without_a_file, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(a_list, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(many_answers, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(what_the_daemon_cannot_do, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(who_hangs_up_is_forgotten, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(who_does_not_read_is_dropped, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(profiles_that_wait_are_few, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(a_second_request_ends_it, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(there_is_room_for_so_many, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(who_asks_nothing_makes_room, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(without_a_descriptor_it_comes_to_rest, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(
	        only_root_our_user_and_the_group_may_ask, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(
	        a_socket_that_nobody_serves_is_replaced, open_daemon, close_daemon),
	    cmocka_unit_test(the_order_of_paths),
	    cmocka_unit_test(a_server_that_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
