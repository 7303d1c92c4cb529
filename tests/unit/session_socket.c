/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket with real clients: what they ask and are told, strangers, and those that do not read. */
#include "sampler/cmd/record/session_socket.h"

#include "sampler/core/control_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/workshop.h"

enum { NOBODYS_UID = 54321 };

/* The session's side, which notes what it is asked. */
struct session {
	struct workshop shop;
	struct session_socket socket;
	struct control_server *server;
	int epoll_fd;
	uint32_t outstanding; /* the answer to what comes next */
	uint32_t asked;
	pid_t pid;
	uint64_t asker;
};

/* pid 0: all, -PID: the session of that process */
static int64_t ask(void *context, const struct control_request *request, uint64_t asker)
{
	struct session *s = context;

	s->asked++;
	s->pid = request->target == CONTROL_SESSION ? -request->pid : request->pid;
	s->asker = asker;
	return s->outstanding;
}

static int open_control(struct session *s)
{
	const struct control_handlers handlers = {.context = s, .ask = ask};
	int error = 0, fd = session_socket_open(&s->socket);

	s->server = NULL;
	if (fd < 0) {
		session_socket_close(&s->socket);
		return fd;
	}
	s->server = control_server_new(s->epoll_fd, fd, CONTROL_NO_GROUP, &handlers, &error);
	return error;
}

static void close_control(struct session *s)
{
	control_server_free(s->server);
	s->server = NULL;
	session_socket_close(&s->socket);
}

static bool handle_event(const struct session *s, int fd)
{
	return control_server_event(s->server, fd);
}

/* As core.c does, which makes paths absolute. */
static void answer(struct control_server *server, uint64_t asker, pid_t pid, const char *path, int error)
{
	char folder[PATH_MAX], absolute[2 * PATH_MAX];

	if (error) {
		control_server_failed(server, asker, pid, error);
		return;
	}
	assert_non_null(getcwd(folder, sizeof(folder)));
	snprintf(absolute, sizeof(absolute), "%s%s%s", path[0] == '/' ? "" : folder,
	    path[0] == '/' ? "" : "/", path);
	control_server_written(server, asker, pid, absolute);
}

static int open_session(void **state)
{
	struct session *s = calloc(1, sizeof(*s));

	strcpy(s->shop.folder, "/tmp/heaptap-unit.XXXXXX");
	*state = s;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!mkdtemp(s->shop.folder) || setenv("XDG_RUNTIME_DIR", s->shop.folder, 1) != 0)
		return -1;
	s->outstanding = 1;
	return open_control(s);
}

static int close_session(void **state)
{
	struct session *s = *state;
	char command[128];

	close_control(s);
	close(s->epoll_fd);
	snprintf(command, sizeof(command), "rm -rf %s", s->shop.folder);
	free(s);
	return system(command);
}

/* Deals with all that has come. */
static void pump(struct session *s)
{
	struct epoll_event events[64];
	int count;

	while ((count = epoll_wait(s->epoll_fd, events, 64, 0)) > 0)
		for (int i = 0; i < count; i++)
			(void)handle_event(s, events[i].data.fd);
}

static void socket_path(const struct session *s, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/heaptap/%d.sock", s->shop.folder, (int)getpid());
}

static int try_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -errno;
}

static int connect_client(struct session *s)
{
	char path[PATH_MAX];

	socket_path(s, path);
	int fd = try_connect(path);
	assert_true(fd >= 0);
	pump(s);
	return fd;
}

static void say(struct session *s, int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	pump(s);
}

/* The next packet is `text`; "": the end of file; NULL: there is none yet. */
static void expect(int fd, const char *text)
{
	char got[CONTROL_ANSWER_BYTES + 1];
	ssize_t bytes = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);

	if (!text) {
		assert_int_equal(bytes, -1);
		assert_int_equal(errno, EAGAIN);
		return;
	}
	if (bytes < 0 && errno == ECONNRESET) /* it was closed before it had read all */
		bytes = 0;
	assert_true(bytes >= 0);
	got[bytes] = '\0';
	assert_string_equal(got, text);
}

static void a_request_and_its_answer(void **state)
{
	struct session *s = *state;
	char folder[PATH_MAX], text[PATH_MAX + 64];
	int fd = connect_client(s);

	expect(fd, NULL);
	say(s, fd, "snapshot 4711");
	assert_int_equal(s->pid, 4711);
	assert_int_not_equal(s->asker, 0);
	expect(fd, "asked 1");
	expect(fd, NULL);
	answer(s->server, s->asker, 4711, "/tmp/a b.pb.gz", 0);
	expect(fd, "written 4711 /tmp/a b.pb.gz");
	expect(fd, "");
	close(fd);
	/* A relative path is no use to somebody in another folder. */
	fd = connect_client(s);
	say(s, fd, "snapshot 4711");
	expect(fd, "asked 1");
	answer(s->server, s->asker, 4711, "b.pb.gz", 0);
	assert_non_null(getcwd(folder, sizeof(folder)));
	snprintf(text, sizeof(text), "written 4711 %s/b.pb.gz", folder);
	expect(fd, text);
	expect(fd, "");
	close(fd);
}

static void all_means_an_answer_for_each(void **state)
{
	struct session *s = *state;
	int fd = connect_client(s);

	s->outstanding = 3;
	say(s, fd, "snapshot all");
	assert_int_equal(s->pid, 0);
	expect(fd, "asked 3");
	answer(s->server, s->asker, 10, "/x", 0);
	answer(s->server, s->asker, 11, "/y", -ENOSPC);
	answer(s->server, s->asker + 1, 12, "/z", 0); /* somebody else's */
	expect(fd, "written 10 /x");
	expect(fd, "failed 11 No space left on device");
	expect(fd, NULL);
	answer(s->server, s->asker, 12, "/z", 0);
	expect(fd, "written 12 /z");
	expect(fd, "");
	close(fd);
}

/* A session is asked for by the pid of any of its processes: a negative number, as for kill(2). */
static void a_session_is_a_negative_pid(void **state)
{
	struct session *s = *state;
	int fd = connect_client(s);

	s->outstanding = 2;
	say(s, fd, "snapshot session 4711");
	assert_int_equal(s->pid, -4711);
	expect(fd, "asked 2");
	close(fd);
	pump(s);
}

static void an_unknown_process(void **state)
{
	struct session *s = *state;
	int fd = connect_client(s);

	s->outstanding = 0;
	say(s, fd, "snapshot 1");
	assert_int_equal(s->asked, 1);
	expect(fd, "unknown");
	expect(fd, "");
	close(fd);
}

static void what_is_no_request_ends_the_connection(void **state)
{
	static const char *const words[] = {"x", "snapshot", "snapshot ", "snapshot -1", "snapshot 0",
	    "snapshot 12x", "snapshot x", "snapshot allx", "snapshot al", "SNAPSHOT 1", " snapshot 1",
	    "snapshot session", "snapshot session ", "snapshot session 0", "snapshot session all",
	    "snapshot session -1", "snapshot session 2147483648", "snapshot session 1x",
	    "snapshot 4294967297", "snapshot 2147483648", "snapshot 18446744073709551617",
	    "snapshot 99999999999999999999999999999999999999999999999999999999999999999999999999999"};
	struct session *s = *state;

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
	assert_int_equal(s->pid, 2147483647);
	close(fd);
}

static void one_request_at_a_time(void **state)
{
	struct session *s = *state;
	int fd = connect_client(s);

	say(s, fd, "snapshot 5");
	uint64_t asker = s->asker;
	say(s, fd, "snapshot 6");
	assert_int_equal(s->asked, 1);
	expect(fd, "asked 1");
	expect(fd, "");
	answer(s->server, asker, 5, "/x", 0); /* nobody is there to hear it */
	close(fd);
}

static void who_leaves_early_disturbs_nobody(void **state)
{
	struct session *s = *state;
	int leaves = connect_client(s);

	say(s, leaves, "snapshot 5");
	uint64_t asker = s->asker;
	close(leaves);
	pump(s);
	int stays = connect_client(s); /* in the same place */
	say(s, stays, "snapshot 6");
	assert_int_not_equal(s->asker, asker);
	answer(s->server, asker, 5, "/x", 0);
	answer(s->server, s->asker, 6, "/y", 0);
	expect(stays, "asked 1");
	expect(stays, "written 6 /y");
	expect(stays, "");
	close(stays);
	/* Gone, but we have not heard of it yet. */
	leaves = connect_client(s);
	say(s, leaves, "snapshot 7");
	close(leaves);
	answer(s->server, s->asker, 7, "/z", 0);
	pump(s);
}

/* A child that writes a snapshot has copies of the clients' descriptors, so closing ours is not enough. */
static void who_has_left_is_not_waited_for_again(void **state)
{
	struct session *s = *state;
	int fd = connect_client(s), copy;
	struct epoll_event event;

	say(s, fd, "snapshot 5");
	for (copy = fd + 1; fcntl(copy, F_GETFD) < 0; copy++)
		; /* the server's end: accepted after ours was made */
	copy = dup(copy);
	close(fd);
	assert_int_equal(epoll_wait(s->epoll_fd, &event, 1, 0), 1);
	assert_true(handle_event(s, event.data.fd));
	assert_int_equal(epoll_wait(s->epoll_fd, &event, 1, 0), 0);
	close(copy);
	/* And who is sent away hears of it. */
	fd = connect_client(s);
	for (copy = fd + 1; fcntl(copy, F_GETFD) < 0; copy++)
		;
	copy = dup(copy);
	say(s, fd, "x");
	expect(fd, "");
	close(fd);
	close(copy);
}

/* Its socket fills up: it is dropped, at once, and another is served. */
static void who_does_not_read_is_dropped(void **state)
{
	enum { ANSWERS = 100000 };
	struct session *s = *state;
	char path[4000], got[CONTROL_ANSWER_BYTES];
	int deaf = connect_client(s), other = connect_client(s);

	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	s->outstanding = ANSWERS;
	say(s, deaf, "snapshot all");
	uint64_t asker = s->asker;
	say(s, other, "snapshot all");
	for (int i = 0; i < ANSWERS / 2; i++)
		answer(s->server, asker, 1, path, 0);
	answer(s->server, s->asker, 2, "/x", 0);
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
	struct session *s = *state;
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

static void only_our_user_and_root_may_ask(void **state)
{
	struct session *s = *state;
	char path[PATH_MAX], command[PATH_MAX + 256];
	int status, told[2];

	if (geteuid() != 0) {
		print_message("only root can become a stranger\n");
		skip();
	}
	/* Even when the way to the socket stands open. */
	socket_path(s, path);
	snprintf(command, sizeof(command), "chmod 755 %s %s/heaptap && chmod 777 %s", s->shop.folder,
	    s->shop.folder, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char got;
		int fd = setresuid(NOBODYS_UID, NOBODYS_UID, NOBODYS_UID) == 0 ? try_connect(path) : -1;
		bool sent = fd >= 0 && send(fd, "snapshot 1", 10, MSG_NOSIGNAL) == 10;

		if (!sent || write(told[1], "", 1) != 1)
			_exit(1);
		ssize_t bytes = recv(fd, &got, 1, 0);
		_exit(bytes > 0 || (bytes < 0 && errno != ECONNRESET));
	}
	close(told[1]);
	assert_int_equal(read(told[0], command, 1), 1);
	close(told[0]);
	pump(s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(s->asked, 0);
}

/* ---- where it is */

static bool is_there(const char *folder)
{
	char path[PATH_MAX];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%d.sock", folder, (int)getpid());
	return stat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

static void a_folder_of_its_own_that_is_left_clean(void **state)
{
	struct session *s = *state;
	char folder[PATH_MAX], path[PATH_MAX];
	struct stat status;

	snprintf(folder, sizeof(folder), "%s/heaptap", s->shop.folder);
	assert_true(is_there(folder));
	assert_int_equal(stat(folder, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	close_control(s);
	assert_false(is_there(folder));
	/* What a sampler left that had our number and was killed is replaced. */
	socket_path(s, path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(open_control(s), 0);
	close(connect_client(s));
}

static void a_folder_that_others_may_change_is_refused(void **state)
{
	static const char *const spoils[] = {"chmod 770 heaptap", "chmod 702 heaptap",
	    "rmdir heaptap && mkdir elsewhere && ln -s elsewhere heaptap",
	    "rm heaptap && rmdir elsewhere && touch heaptap",
	    "rm heaptap && mkdir heaptap && chown 54321 heaptap"};
	struct session *s = *state;
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/heaptap", s->shop.folder);
	for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
		close_control(s);
		if (workshop_run(&s->shop, "%s", spoils[i]) != 0)
			continue; /* only root gives folders away */
		const int error = open_control(s);

		assert_false(is_there(folder));
		assert_int_equal(error != 0, s->server == NULL); /* there may be another, or none */
	}
}

static void the_folders_to_look_in(void **state)
{
	char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES], wanted[CONTROL_FOLDER_BYTES], long_path[200];
	const struct session *s = *state;

	assert_int_equal(control_folders(folders, 77), 3);
	snprintf(wanted, sizeof(wanted), "%s/heaptap", s->shop.folder);
	assert_string_equal(folders[0], wanted);
	assert_string_equal(folders[1], "/tmp/heaptap-77");
	assert_string_equal(folders[2], "/run/user/77/heaptap");
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	assert_int_equal(control_folders(folders, 77), 2);
	memset(long_path, '/', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	setenv("XDG_RUNTIME_DIR", long_path, 1);
	assert_int_equal(control_folders(folders, 77), 2);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(control_folders(folders, 77), 2);
	assert_string_equal(folders[0], "/tmp/heaptap-77");
}

static void other_descriptors_are_none_of_its(void **state)
{
	struct session *s = *state;

	assert_false(handle_event(s, s->epoll_fd));
	assert_false(control_server_event(NULL, 0));
	answer(NULL, 1, 1, "/x", 0);
	answer(s->server, 4711, 1, "/x", 0);
	struct session_socket none = {.folder_fd = -1};
	session_socket_close(&none);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_session, close_session)
	const struct CMUnitTest tests[] = {
	    TEST(a_request_and_its_answer),
	    TEST(all_means_an_answer_for_each),
	    TEST(a_session_is_a_negative_pid),
	    TEST(an_unknown_process),
	    TEST(what_is_no_request_ends_the_connection),
	    TEST(one_request_at_a_time),
	    TEST(who_leaves_early_disturbs_nobody),
	    TEST(who_has_left_is_not_waited_for_again),
	    TEST(who_does_not_read_is_dropped),
	    TEST(a_client_that_asks_nothing_makes_room),
	    TEST(only_our_user_and_root_may_ask),
	    TEST(a_folder_of_its_own_that_is_left_clean),
	    TEST(a_folder_that_others_may_change_is_refused),
	    TEST(the_folders_to_look_in),
	    TEST(other_descriptors_are_none_of_its),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
