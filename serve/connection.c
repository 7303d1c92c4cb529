/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/connection.h"

#include "sampler/linux/clock.h"
#include "serve/client.h"
#include "serve/exchange.h"
#include "serve/exchange_route.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ACCEPTED_AT_ONCE = 16,
	DEFER_S = 3, /* a connection is the kernel's until its client sends something, for so long */
};

/* A request. It begins with its first line, and ends when its answer is sent, or the client has gone. */
struct call {
	char *target;
	struct exchange *exchange; /* NULL: none is needed, or the client has gone */
	struct reply reply;        /* where there is no exchange */
	size_t sending_bytes;      /* of web->sending_bytes */
	bool looked_at, begun, answered, gone, too_large;
};

struct connection {
	struct connection *next, **link;
	struct connection_listener *listener;
	struct MHD_Connection *mhd;
	struct call *call; /* that is suspended; NULL: none */
	struct event_source source;
	int fd;
	struct connection_set_member member;
	uint64_t end_ns; /* it is cut off then; 0: we are to blame if it takes long */
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

/* libmicrohttpd sees it, and closes it. */
static void cut_off(struct connection *connection)
{
	(void)shutdown(connection->fd, SHUT_RDWR);
	connection_set_remove(&connection->listener->set, &connection->member);
	connection->end_ns = 0;
}

/* ---- suspended requests */

/* Its answer is there, or nobody is there for it. */
static void resume(struct connection *connection)
{
	if (!connection->call)
		return;
	event_loop_remove(connection->listener->web->epoll_fd, &connection->source);
	connection->call = NULL;
	MHD_resume_connection(connection->mhd);
}

static void on_finished(struct exchange *exchange)
{
	struct MHD_Connection *mhd = exchange->context;
	struct connection *connection = connection_of(mhd);

	if (connection->call)
		connection->call->answered = true;
	exchange->context = NULL; /* it was called */
	resume(connection);
}

/* While a request is suspended libmicrohttpd does not look at its connection. */
static void on_hung_up(struct event_source *source, uint32_t events)
{
	struct connection *connection =
	    (struct connection *)((char *)source - offsetof(struct connection, source));
	struct call *call = connection->call;

	(void)events;
	if (!call)
		return;
	exchange_free(call->exchange);
	call->exchange = NULL;
	call->gone = true;
	resume(connection);
}

static void suspend(struct connection *connection, struct call *call)
{
	connection->call = call;
	connection->source.ready = on_hung_up;
	MHD_suspend_connection(connection->mhd);
	(void)event_loop_add(connection->listener->web->epoll_fd, &connection->source, connection->fd,
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

/* Judges all but the body. The exchange is made, or the reply. */
static void look_at(struct connection *connection, struct call *call, const char *method)
{
	struct web *web = connection->listener->web;
	const struct client client = {connection->mhd, &connection->listener->address,
	    connection->listener->text, web->own_name, connection->fd};
	struct exchange *exchange;
	int error = -EINVAL;

	call->looked_at = true;
	web->server.requests++;
	exchange = call->target ? exchange_new(&web->server, call->target, &error) : NULL;
	if (!exchange) {
		reply_text(&call->reply, error == -ENOMEM ? 500 : 400, REPLY_TEXT, "400 Bad Request\n");
		return;
	}
	if (!client_may_ask(&client, exchange, &call->reply)) {
		web->server.refused++;
	} else if (!is_method(route_methods(&exchange->route), method)) {
		client_refuse(&call->reply, &exchange->route, 405, "405 Method Not Allowed");
		reply_header(&call->reply, "Allow", "%s", route_methods(&exchange->route));
	}
	if (call->reply.status) {
		exchange_free(exchange);
		return;
	}
	exchange->client = connection->member.name;
	exchange->post = strcmp(method, "POST") == 0;
	client_describe(&client, exchange);
	exchange->finished = on_finished;
	call->exchange = exchange;
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
	for (size_t i = 0; i < reply->header_count; i++)
		MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
	return response;
}

/* Bytes that only this answer needs are limited for all together: clients may take their time. */
static void count_bytes(struct web *web, struct call *call, struct reply *reply)
{
	size_t bytes = reply->body && atomic_load(&reply->body->holders) == 1 ? reply->body->length : 0;

	if (web->sending_bytes && bytes > CONNECTION_SENDING_BYTES - web->sending_bytes) {
		web->server.refused++;
		reply_go_error(reply, 503, "too many large answers are being sent: try again later");
		return;
	}
	call->sending_bytes = bytes < CONNECTION_SENDING_BYTES ? bytes : CONNECTION_SENDING_BYTES;
	web->sending_bytes += call->sending_bytes;
}

static enum MHD_Result answer(struct connection *connection, struct call *call, struct reply *reply)
{
	struct MHD_Response *response;
	size_t bytes;
	enum MHD_Result queued;

	count_bytes(connection->listener->web, call, reply);
	response = response_of(reply);
	bytes = reply->body ? reply->body->length : 0;

	if (!response)
		return MHD_NO;
	connection->end_ns =
	    after_ms(CONNECTION_SEND_MS + (uint64_t)bytes * 1000 / CONNECTION_SEND_BYTES_PER_S);
	set_state(connection, CONNECTION_SET_SENDING);
	queued = MHD_queue_response(connection->mhd, reply->status, response);
	MHD_destroy_response(response);
	return queued;
}

/* The client may have sent all of its request by now, or wait to send its body. */
static void take_body(struct call *call, const char *bytes, size_t length)
{
	struct exchange *exchange = call->exchange;
	char *body;

	if (!exchange || call->too_large)
		return;
	if (exchange->body_bytes + length > EXCHANGE_BODY_BYTES) {
		call->too_large = true;
		return;
	}
	body = realloc(exchange->body, exchange->body_bytes + length + 1);
	if (!body) {
		call->too_large = true;
		return;
	}
	memcpy(body + exchange->body_bytes, bytes, length);
	exchange->body = body;
	exchange->body_bytes += length;
	body[exchange->body_bytes] = '\0';
}

static enum MHD_Result begin(struct connection *connection, struct call *call)
{
	struct exchange *exchange = call->exchange;

	call->begun = true;
	connection->end_ns = 0;
	set_state(connection, CONNECTION_SET_WORKING);
	if (call->too_large) {
		reply_text(&call->reply, 413, REPLY_TEXT, "413 Request Entity Too Large\n");
		return answer(connection, call, &call->reply);
	}
	exchange->context = connection->mhd;
	exchange_route_begin(exchange);
	if (!exchange->context) /* on_finished() has been called */
		return answer(connection, call, &exchange->reply);
	suspend(connection, call);
	return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_bytes, void **request)
{
	struct connection *connection = connection_of(mhd);
	struct call *call = *request;

	(void)context;
	(void)url;
	(void)version;
	if (!call || !connection || call->gone)
		return MHD_NO;
	if (!call->looked_at) {
		look_at(connection, call, method);
		return call->exchange ? MHD_YES : answer(connection, call, &call->reply);
	}
	if (*upload_bytes) {
		take_body(call, upload, *upload_bytes);
		*upload_bytes = 0;
		return MHD_YES;
	}
	if (!call->begun)
		return begin(connection, call);
	return call->answered ? answer(connection, call, &call->exchange->reply) : MHD_NO;
}

/* ---- what libmicrohttpd tells */

static void *on_first_line(void *context, const char *target, struct MHD_Connection *mhd)
{
	struct call *call = calloc(1, sizeof(*call));

	(void)context;
	(void)mhd;
	if (call)
		call->target = strdup(target);
	return call;
}

static void on_completed(
    void *context, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode code)
{
	struct connection *connection = connection_of(mhd);
	struct call *call = *request;

	(void)context;
	(void)code;
	if (!call)
		return;
	if (connection) {
		connection->listener->web->sending_bytes -= call->sending_bytes;
		connection->end_ns = after_ms(CONNECTION_READ_MS);
		set_state(connection, CONNECTION_SET_READING);
		if (connection->call == call) {
			event_loop_remove(connection->listener->web->epoll_fd, &connection->source);
			connection->call = NULL;
		}
	}
	exchange_free(call->exchange);
	reply_fini(&call->reply);
	free(call->target);
	free(call);
	*request = NULL;
}

/* newest: stays; NULL: none. */
static void give_way(struct connection_listener *listener, const struct connection_set_member *newest)
{
	struct connection_set_member *member = connection_set_choose(&listener->set, newest);

	if (!member)
		return;
	cut_off((struct connection *)((char *)member - offsetof(struct connection, member)));
	listener->web->server.cut_off++;
}

/* Who is in no set for want of memory gives way himself. */
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

static void on_ready(struct event_source *source, uint32_t events)
{
	struct connection_listener *listener =
	    (struct connection_listener *)((char *)source - offsetof(struct connection_listener, source));

	(void)events;
	MHD_run(listener->daemon);
}

/* Few at once, and then a look at what they have sent: none has to give way unheard because of those that
 * come after it. (libmicrohttpd accepts all that come before it looks.) */
static void on_incoming(struct event_source *source, uint32_t events)
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

int connection_listen(struct web *web, struct connection_listener *listener, int fd, size_t files)
{
	const unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
	const int defer_s = DEFER_S;
	int err;

	listener->web = web;
	listener->most = files / 2 < CONNECTIONS_MAX ? files / 2 : CONNECTIONS_MAX;
	/* With those that are being cut off: at its limit libmicrohttpd closes whoever comes. */
	const size_t limit = 2 * listener->most;
	listen_address_text(&listener->address, listener->text);
	if (!listener->address.is_unix) /* without it who is slow to send gives way more often */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof(defer_s));
	listener->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, listener,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned int)limit, MHD_OPTION_CONNECTION_TIMEOUT,
	    (unsigned int)(CONNECTION_SEND_MS / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CONNECTION_HEADER_BYTES, MHD_OPTION_URI_LOG_CALLBACK, on_first_line, NULL,
	    MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
	    listener, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	if (!listener->daemon)
		return -EINVAL;
	listener->source.ready = on_ready;
	listener->incoming.ready = on_incoming;
	err = event_loop_add(web->epoll_fd, &listener->source,
	    MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, EPOLLIN);
	return err ? err : event_loop_add(web->epoll_fd, &listener->incoming, fd, EPOLLIN);
}

/* ---- time */

int connection_run(struct connection_listener *listener)
{
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(listener->daemon);
	return MHD_get_timeout(listener->daemon, &ms) == MHD_YES && ms < 1000 ? (int)ms : 1000;
}

int connection_tend(struct web *web, uint64_t now_ns)
{
	uint64_t due_ns = now_ns + CLOCK_NS_PER_S;
	struct exchange *due[SERVER_WAITS_MAX];
	size_t count = 0;

	for (struct connection *at = web->connections; at; at = at->next) {
		struct exchange *exchange = at->call ? at->call->exchange : NULL;

		if (at->end_ns && now_ns >= at->end_ns)
			cut_off(at);
		if (!exchange || !exchange->wake_ns)
			continue;
		if (exchange->wake_ns <= now_ns && count < SERVER_WAITS_MAX)
			due[count++] = exchange;
		else if (exchange->wake_ns < due_ns)
			due_ns = exchange->wake_ns;
	}
	for (size_t i = 0; i < count; i++) /* may end them, and others never */
		exchange_route_wake(due[i]);
	return (int)((due_ns - now_ns) / CLOCK_NS_PER_MS) + 1;
}
