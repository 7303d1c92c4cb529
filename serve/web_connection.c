/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the web process that speaks to libmicrohttpd. */
#include "serve/web.h"

#include "pprof/text/clock.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ACCEPTED_AT_ONCE = 16,
	DEFER_S = 3, /* the kernel keeps a connection until its client sends something, for so long */
};

struct connection {
	struct connection *next, **link;
	struct connection_listener *listener;
	struct MHD_Connection *mhd;
	struct request *waiting; /* the request that is suspended; NULL if none is */
	struct loop_source source;
	int fd;
	struct connection_set_member member;
	uint64_t end_ns; /* when it is closed; 0: it waits for us */
};

static struct connection *connection_of(struct MHD_Connection *mhd)
{
	return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static uint64_t after_ms(uint64_t ms)
{
	return clock_now_ns() + ms * CLOCK_NS_PER_MS;
}

static void set_state(struct connection *connection, enum connection_set_state state)
{
	connection->member.state = state;
	connection->member.since_ns = clock_now_ns();
}

/* libmicrohttpd sees the end, and closes the connection. */
static void cut_off(struct connection *connection)
{
	(void)shutdown(connection->fd, SHUT_RDWR);
	connection_set_remove(&connection->listener->set, &connection->member);
	connection->end_ns = 0;
}

/* ---- suspended requests */

/* The answer is there, or the client has gone. */
static void resume(struct connection *connection)
{
	if (!connection->waiting)
		return;
	web_loop_remove(connection->listener->web->epoll_fd, &connection->source);
	connection->waiting = NULL;
	MHD_resume_connection(connection->mhd);
}

static void on_finished(struct request *request)
{
	resume(request->context);
}

/* While a request is suspended libmicrohttpd does not look at its connection. */
static void on_hung_up(struct loop_source *source, uint32_t events)
{
	struct connection *connection =
	    (struct connection *)((char *)source - offsetof(struct connection, source));

	(void)events;
	if (!connection->waiting)
		return;
	request_stop(connection->waiting);
	connection->waiting->state = REQUEST_GONE;
	resume(connection);
}

static void suspend(struct connection *connection, struct request *request)
{
	connection->waiting = request;
	connection->source.ready = on_hung_up;
	MHD_suspend_connection(connection->mhd);
	(void)web_loop_add(connection->listener->web->epoll_fd, &connection->source, connection->fd,
	    EPOLLRDHUP | EPOLLHUP | EPOLLERR);
}

/* ---- what a request must have */

static bool is_method(const char *methods, const char *method)
{
	size_t length = strlen(method);

	for (const char *at = methods; length && (at = strstr(at, method)); at += length)
		if ((at == methods || at[-1] == ' ') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

/* Judges all but the body. Then the request is in state BODY, or ANSWERED with a refusal. */
static void judge(struct connection *connection, struct request *request, const char *method)
{
	struct web *web = connection->listener->web;
	struct reply *reply = &request->reply;
	unsigned int status;
	const char *why;

	web->server.requests++;
	request->state = REQUEST_ANSWERED;
	if (request->error) {
		reply_text(reply, request->error == -ENOMEM ? 500 : 400, REPLY_TEXT, "400 Bad Request\n");
		return;
	}
	request->endpoint = endpoint_find(&request->route);
	request->client = (struct client){.mhd = connection->mhd,
	    .target_host = request->route.host,
	    .address = &connection->listener->address,
	    .address_text = connection->listener->text,
	    .own_name = web->own_name,
	    .fd = connection->fd,
	    .key = connection->member.name};
	status = client_refusal(&request->client, &web->server.token,
	    request->endpoint->access == ENDPOINT_OPEN, &request->has_token, &why);
	if (status) {
		web->server.refused++;
		request_set_refusal(request, status, why);
		if (status == 401)
			reply_header(reply, "WWW-Authenticate", "Bearer realm=\"heaptap\"");
		return;
	}
	if (!is_method(request->endpoint->methods, method)) {
		request_set_refusal(request, 405, "405 Method Not Allowed");
		reply_header(reply, "Allow", "%s", request->endpoint->methods);
		return;
	}
	request->is_post = strcmp(method, "POST") == 0;
	request->finished = on_finished;
	request->context = connection;
	request->state = REQUEST_BODY;
}

/* ---- answers */

static void drop_blob(void *blob)
{
	blob_drop(blob);
}

static struct MHD_Response *response_of(const struct reply *reply)
{
	static char nothing[1];
	struct MHD_Response *response = reply->body
	    ? MHD_create_response_from_buffer_with_free_callback_cls(
	          reply->body->length, reply->body->bytes, drop_blob, reply->body)
	    : MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);

	if (!response)
		return NULL;
	blob_hold(reply->body);
	MHD_add_response_header(response, "Connection", "close");
	for (size_t i = 0; i < reply->header_count; i++)
		MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
	return response;
}

/* Bytes that only this answer needs are limited for all answers together: clients may take their time. */
static void count_bytes(struct web *web, struct request *request)
{
	const struct reply *reply = &request->reply;
	size_t bytes = reply->body && atomic_load(&reply->body->holders) == 1 ? reply->body->length : 0;

	if (web->sending_bytes && bytes > CONNECTION_SENDING_BYTES - web->sending_bytes) {
		web->server.refused++;
		reply_go_error(
		    &request->reply, 503, "too many large answers are being sent: try again later");
		return;
	}
	request->sending_bytes = bytes < CONNECTION_SENDING_BYTES ? bytes : CONNECTION_SENDING_BYTES;
	web->sending_bytes += request->sending_bytes;
}

static enum MHD_Result answer(struct connection *connection, struct request *request)
{
	struct MHD_Response *response;
	size_t bytes;
	enum MHD_Result queued;

	count_bytes(connection->listener->web, request);
	response = response_of(&request->reply);
	bytes = request->reply.body ? request->reply.body->length : 0;

	if (!response)
		return MHD_NO;
	connection->end_ns =
	    after_ms(CONNECTION_SEND_MS + (uint64_t)bytes * 1000 / CONNECTION_SEND_BYTES_PER_S);
	set_state(connection, CONNECTION_SET_SENDING);
	queued = MHD_queue_response(connection->mhd, request->reply.status, response);
	MHD_destroy_response(response);
	return queued;
}

/* A body that is too large is read to its end, and then refused. */
static void take_body(struct request *request, const char *bytes, size_t length)
{
	char *body;

	if (request->state != REQUEST_BODY)
		return;
	body = request->body_bytes + length > REQUEST_BODY_BYTES
	    ? NULL
	    : realloc(request->body, request->body_bytes + length + 1);
	if (!body) {
		reply_text(&request->reply, 413, REPLY_TEXT, "413 Request Entity Too Large\n");
		request->state = REQUEST_ANSWERED;
		return;
	}
	memcpy(body + request->body_bytes, bytes, length);
	request->body = body;
	request->body_bytes += length;
	body[request->body_bytes] = '\0';
}

static enum MHD_Result begin(struct connection *connection, struct request *request)
{
	request->state = REQUEST_WORKING;
	connection->end_ns = 0;
	set_state(connection, CONNECTION_SET_WORKING);
	endpoint_begin(request);
	if (request->state == REQUEST_ANSWERED)
		return answer(connection, request);
	suspend(connection, request);
	return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_bytes, void **place)
{
	struct connection *connection = connection_of(mhd);
	struct request *request = *place;

	(void)context;
	(void)url;
	(void)version;
	if (!request || !connection)
		return MHD_NO;
	if (request->state == REQUEST_NEW) {
		judge(connection, request, method);
		return request->state == REQUEST_BODY ? MHD_YES : answer(connection, request);
	}
	if (*upload_bytes && request->state != REQUEST_GONE) {
		take_body(request, upload, *upload_bytes);
		*upload_bytes = 0;
		return MHD_YES;
	}
	if (request->state == REQUEST_BODY)
		return begin(connection, request);
	return request->state == REQUEST_ANSWERED ? answer(connection, request) : MHD_NO;
}

/* ---- what libmicrohttpd tells */

static void *on_first_line(void *context, const char *target, struct MHD_Connection *mhd)
{
	struct web *web = context;

	(void)mhd;
	return request_new(&web->server, target);
}

static void on_completed(
    void *context, struct MHD_Connection *mhd, void **place, enum MHD_RequestTerminationCode code)
{
	struct connection *connection = connection_of(mhd);
	struct request *request = *place;

	(void)context;
	(void)code;
	if (!request)
		return;
	if (connection) {
		connection->listener->web->sending_bytes -= request->sending_bytes;
		if (connection->waiting == request) {
			web_loop_remove(connection->listener->web->epoll_fd, &connection->source);
			connection->waiting = NULL;
		}
	}
	request_free(request);
	*place = NULL;
}

/* newest: the connection that stays; NULL: none. */
static void give_way(struct connection_listener *listener, const struct connection_set_member *newest)
{
	struct connection_set_member *member = connection_set_choose(&listener->set, newest);

	if (!member)
		return;
	cut_off((struct connection *)((char *)member - offsetof(struct connection, member)));
	listener->web->server.cut_off++;
}

/* A connection that is in no set, for want of memory, is closed itself. */
static void make_room(struct connection *connection)
{
	struct connection_listener *listener = connection->listener;
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(connection->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	if (connection_set_add(&listener->set, &connection->member, info ? info->client_addr : NULL,
	        connection->fd, clock_now_ns())) {
		cut_off(connection);
		return;
	}
	if (listener->set.count > listener->most)
		give_way(listener, &connection->member);
}

static void begin_connection(struct connection_listener *listener, struct MHD_Connection *mhd, void **place)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	*place = connection;
	if (!connection)
		return;
	connection->listener = listener;
	connection->mhd = mhd;
	connection->source.fd = -1;
	connection->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	connection->end_ns = after_ms(CONNECTION_READ_MS);
	connection->next = listener->web->connections;
	connection->link = &listener->web->connections;
	if (connection->next)
		connection->next->link = &connection->next;
	listener->web->connections = connection;
	make_room(connection);
}

static void on_connection(
    void *context, struct MHD_Connection *mhd, void **place, enum MHD_ConnectionNotificationCode code)
{
	struct connection *connection = *place;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		begin_connection(context, mhd, place);
	} else if (connection) {
		connection_set_remove(&connection->listener->set, &connection->member);
		*connection->link = connection->next;
		if (connection->next)
			connection->next->link = connection->link;
		free(connection);
		*place = NULL;
	}
}

static void on_ready(struct loop_source *source, uint32_t events)
{
	struct connection_listener *listener =
	    (struct connection_listener *)((char *)source - offsetof(struct connection_listener, source));

	(void)events;
	MHD_run(listener->daemon);
}

/* Accepts few at once, and then looks at what they have sent, so that no connection is closed unheard for
 * others that come after it. (libmicrohttpd accepts all that come before it looks.) */
static void on_incoming(struct loop_source *source, uint32_t events)
{
	struct connection_listener *listener =
	    (struct connection_listener *)((char *)source - offsetof(struct connection_listener, incoming));
	struct sockaddr_storage address = {0};

	(void)events;
	for (size_t i = 0; i < ACCEPTED_AT_ONCE && i < listener->most; i++) {
		socklen_t length = sizeof(address);
		int fd =
		    accept4(source->fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE)
				give_way(listener, NULL);
			break;
		}
		MHD_add_connection(listener->daemon, fd, (const struct sockaddr *)&address, length);
	}
	MHD_run(listener->daemon);
}

int web_connection_listen(struct web *web, struct connection_listener *listener, int fd, size_t files)
{
	const unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
	const int defer_s = DEFER_S;
	int err;

	listener->web = web;
	listener->most = files / 2 < CONNECTIONS_MAX ? files / 2 : CONNECTIONS_MAX;
	/* The limit includes connections that are being closed, since at its limit libmicrohttpd closes new
	 * ones. */
	const size_t limit = 2 * listener->most;
	listen_address_text(&listener->address, listener->text);
	if (!listener->address.is_unix) /* without this, slow clients are closed more often */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof(defer_s));
	listener->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, listener,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned int)limit, MHD_OPTION_CONNECTION_TIMEOUT,
	    (unsigned int)(CONNECTION_SEND_MS / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CONNECTION_HEADER_BYTES, MHD_OPTION_URI_LOG_CALLBACK, on_first_line, web,
	    MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
	    listener, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	if (!listener->daemon)
		return -EINVAL;
	listener->source.ready = on_ready;
	listener->incoming.ready = on_incoming;
	err = web_loop_add(web->epoll_fd, &listener->source,
	    MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, EPOLLIN);
	return err ? err : web_loop_add(web->epoll_fd, &listener->incoming, fd, EPOLLIN);
}

/* ---- time */

int web_connection_run(struct connection_listener *listener)
{
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(listener->daemon);
	return MHD_get_timeout(listener->daemon, &ms) == MHD_YES && ms < 1000 ? (int)ms : 1000;
}

int web_connection_tend(struct web *web, uint64_t now_ns)
{
	uint64_t due_ns = now_ns + CLOCK_NS_PER_S;
	struct request *due[SERVER_WAITS_MAX];
	size_t count = 0;

	for (struct connection *at = web->connections; at; at = at->next) {
		struct request *request = at->waiting;

		if (at->end_ns && now_ns >= at->end_ns)
			cut_off(at);
		if (!request || !request->wake_ns)
			continue;
		if (request->wake_ns <= now_ns && count < SERVER_WAITS_MAX)
			due[count++] = request;
		else if (request->wake_ns < due_ns)
			due_ns = request->wake_ns;
	}
	for (size_t i = 0; i < count; i++) { /* wake() may end this request, and never another */
		due[i]->wake_ns = 0;
		due[i]->wake(due[i]);
	}
	return (int)((due_ns - now_ns) / CLOCK_NS_PER_MS) + 1;
}
