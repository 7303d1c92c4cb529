/* SPDX-License-Identifier: Apache-2.0 */
/* A control server in a folder of its own, whose handlers note what they are asked, and its clients. */
#ifndef TESTS_UNIT_CONTROL_SCENE_H
#define TESTS_UNIT_CONTROL_SCENE_H

#include "sampler/core/control_client.h"
#include "sampler/core/control_server.h"
#include "sampler/core/control_socket.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/workshop.h"

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

static inline int64_t ask(void *context, const struct control_request *request, uint64_t asker)
{
	struct daemon *d = context;

	d->asked++;
	d->request = *request;
	d->asker = asker;
	return d->outstanding;
}

static inline void list(void *context, struct control_list_writer *writer)
{
	const struct control_daemon daemon = {.pid = getpid(), .version = "1.2.3"};
	const struct control_process process = {.pid = 7, .service = "redis"};

	control_list_write_daemon(writer, &daemon);
	for (int i = 0; i < 10000; i++)
		control_list_write_process(writer, &process);
}

static inline void gone(void *context, uint64_t asker)
{
	((struct daemon *)context)->gone++;
}

static inline int start(struct daemon *d, gid_t group)
{
	const struct control_handlers handlers = {d, list, ask, gone};
	int error, fd = control_socket_bind(d->path, group);

	if (fd < 0)
		return fd;
	d->server = control_server_new(d->epoll_fd, fd, group, &handlers, &error);
	return error;
}

static inline int open_daemon(void **state)
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

static inline int close_daemon(void **state)
{
	struct daemon *d = *state;
	char command[128];

	control_server_free(d->server);
	close(d->epoll_fd);
	snprintf(command, sizeof(command), "rm -rf %s", d->shop.folder);
	free(d);
	return system(command);
}

/* Handles all that has arrived. */
static inline void pump(struct daemon *d)
{
	struct epoll_event events[64];
	int count;

	while ((count = epoll_wait(d->epoll_fd, events, 64, 0)) > 0)
		for (int i = 0; i < count; i++)
			(void)control_server_event(d->server, events[i].data.fd);
}

static inline int connect_client(struct daemon *d)
{
	int fd = control_socket_connect(d->path);

	assert_true(fd >= 0);
	pump(d);
	return fd;
}

static inline int connect_and_ask(struct daemon *d, const struct control_request *request)
{
	int fd = connect_client(d);

	assert_int_equal(control_client_send(fd, request), 0);
	pump(d);
	return fd;
}

static const struct control_request snapshot_all = {.verb = CONTROL_SNAPSHOT, .target = CONTROL_ALL};
static const struct control_request profile_7 = {.verb = CONTROL_PROFILE, .target = CONTROL_PID, .pid = 7};

/* The next answer, which must have come. Returns what control_client_receive does. */
static inline int next(int fd, struct control_answer *answer)
{
	int profile_fd, got = control_client_receive(fd, 0, answer, &profile_fd);

	if (profile_fd >= 0)
		close(profile_fd);
	return got;
}

static inline void expect_kind(int fd, enum control_answer_kind kind)
{
	struct control_answer answer;

	assert_int_equal(next(fd, &answer), 1);
	assert_int_equal(answer.kind, kind);
}

static inline void expect_end(int fd)
{
	struct control_answer answer;

	assert_int_equal(next(fd, &answer), 0);
	close(fd);
}

static inline int count_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Runs `body`, which asks and waits for answers, in a process of its own. Returns its exit status. */
static inline int run_client(struct daemon *d, int (*body)(struct daemon *d))
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

#endif
