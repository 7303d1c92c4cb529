/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket of a session in a folder of its own, and clients that send it packets of text. */
#ifndef TESTS_UNIT_SESSION_SCENE_H
#define TESTS_UNIT_SESSION_SCENE_H

#include "sampler/cmd/record/session_state.h"
#include "sampler/core/control_server.h"
#include "sampler/core/control_socket.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/workshop.h"

/* The session's side, which notes what it is asked. */
struct session_scene {
	struct workshop shop;
	struct session_socket socket;
	struct control_server *server;
	int epoll_fd;
	uint32_t outstanding; /* the answer to what comes next */
	uint32_t asked;
	struct control_request request;
	uint64_t asker;
};

static inline int64_t ask(void *context, const struct control_request *request, uint64_t asker)
{
	struct session_scene *s = context;

	s->asked++;
	s->request = *request;
	s->asker = asker;
	return s->outstanding;
}

static inline int open_control(struct session_scene *s)
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

static inline void close_control(struct session_scene *s)
{
	control_server_free(s->server);
	s->server = NULL;
	session_socket_close(&s->socket);
}

static inline int open_session(void **state)
{
	struct session_scene *s = calloc(1, sizeof(*s));

	strcpy(s->shop.folder, "/tmp/heaptap-unit.XXXXXX");
	*state = s;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!mkdtemp(s->shop.folder) || setenv("XDG_RUNTIME_DIR", s->shop.folder, 1) != 0)
		return -1;
	s->outstanding = 1;
	return open_control(s);
}

static inline int close_session(void **state)
{
	struct session_scene *s = *state;
	char command[128];

	close_control(s);
	close(s->epoll_fd);
	snprintf(command, sizeof(command), "rm -rf %s", s->shop.folder);
	free(s);
	return system(command);
}

/* Handles all that has arrived. */
static inline void pump(struct session_scene *s)
{
	struct epoll_event events[64];
	int count;

	while ((count = epoll_wait(s->epoll_fd, events, 64, 0)) > 0)
		for (int i = 0; i < count; i++)
			(void)control_server_event(s->server, events[i].data.fd);
}

static inline void socket_path(const struct session_scene *s, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/heaptap/%d.sock", s->shop.folder, (int)getpid());
}

static inline int connect_client(struct session_scene *s)
{
	char path[PATH_MAX];

	socket_path(s, path);
	int fd = control_socket_connect(path);
	assert_true(fd >= 0);
	pump(s);
	return fd;
}

static inline void say(struct session_scene *s, int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	pump(s);
}

/* The next packet is `text`; "": the end of file; NULL: there is none yet. */
static inline void expect(int fd, const char *text)
{
	char got[CONTROL_ANSWER_BYTES + 1];
	ssize_t bytes = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);

	if (!text) {
		assert_int_equal(bytes, -1);
		assert_int_equal(errno, EAGAIN);
		return;
	}
	if (bytes < 0 && errno == ECONNRESET) /* the server closed it before it had read all */
		bytes = 0;
	assert_true(bytes >= 0);
	got[bytes] = '\0';
	assert_string_equal(got, text);
}

#endif
