/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange.h"

#include "pprof/codec/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { GZIP_BYTES_MIN = 1024 };

struct exchange *exchange_new(struct server *server, const char *target, int *error)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	*error = -ENOMEM;
	if (!exchange)
		return NULL;
	*error = route_parse(&exchange->route, target);
	if (*error) {
		free(exchange);
		return NULL;
	}
	exchange->server = server;
	return exchange;
}

static void end_wait(const struct exchange *exchange)
{
	struct server *server = exchange->server;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < server->waits; i++)
		if (server->waiting[i] != exchange)
			server->waiting[kept++] = server->waiting[i];
	server->waits = kept;
}

void exchange_stop(struct exchange *exchange)
{
	if (exchange->work)
		exchange->work->exchange = NULL;
	exchange->work = NULL;
	if (exchange->planned)
		exchange->planned->free_data(exchange->planned);
	free(exchange->planned);
	exchange->planned = NULL;
	catalog_leave(&exchange->waiter);
	broker_client_cancel(exchange->server->broker, exchange->request);
	exchange->request = 0;
	fetch_fini(&exchange->first);
	fetch_fini(&exchange->last);
	end_wait(exchange);
}

void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	exchange_stop(exchange);
	reply_fini(&exchange->reply);
	route_fini(&exchange->route);
	free(exchange->body);
	free(exchange);
}

void exchange_finish(struct exchange *exchange)
{
	end_wait(exchange);
	exchange->wake_ns = 0;
	exchange->finished(exchange);
}

/* ---- jobs */

/* A large text shrinks to a tenth. Profiles are compressed already, and clients of theirs want no more. */
static void compress(struct exchange_work *work)
{
	struct reply *reply = &work->reply;
	struct blob *packed;
	uint8_t *bytes;
	size_t length;

	if (!work->has_gzip || !reply->body || reply->body->length < GZIP_BYTES_MIN ||
	    strcmp(reply->headers[0].value, REPLY_PROFILE) == 0 ||
	    gzip_encode(reply->body->bytes, reply->body->length, GZIP_LEVEL_FAST, &bytes, &length))
		return;
	packed = blob_new(bytes, length);
	if (!packed)
		return;
	blob_drop(reply->body);
	reply->body = packed;
	reply_header(reply, "Content-Encoding", "gzip");
	reply_header(reply, "Vary", "Accept-Encoding");
}

static void run(struct job *job)
{
	struct exchange_work *work = (struct exchange_work *)job;

	work->run(work);
	compress(work);
}

static void done(struct job *job)
{
	struct exchange_work *work = (struct exchange_work *)job;
	struct exchange *exchange = work->exchange;

	if (job->refused && exchange) {
		exchange->work = NULL;
		exchange->server->refused++;
		reply_go_error(&exchange->reply, 503, "too much to do: try again later");
	} else if (exchange) {
		if (work->done)
			work->done(exchange, work);
		reply_fini(&exchange->reply);
		exchange->reply = work->reply;
		exchange->work = NULL;
		fetch_fini(&exchange->first); /* the reply is made: it may take long to send it */
		fetch_fini(&exchange->last);
	} else {
		reply_fini(&work->reply);
	}
	work->free_data(work);
	free(work);
	if (exchange)
		exchange_finish(exchange);
}

static bool is_foreign(const struct fetch *fetch)
{
	for (size_t i = 0; i < fetch->count; i++)
		if (fetch->items[i].profile && fetch->items[i].profile->foreign)
			return true;
	return false;
}

void exchange_submit(struct exchange *exchange, struct exchange_work *work)
{
	work->job = (struct job){.run = run,
	    .done = done,
	    .client = exchange->client,
	    .foreign = is_foreign(&exchange->first) || is_foreign(&exchange->last)};
	work->exchange = exchange;
	work->has_gzip = exchange->has_gzip;
	exchange->work = work;
	if (jobs_submit(exchange->server->jobs, &work->job))
		return;
	exchange->work = NULL;
	work->free_data(work);
	free(work);
	exchange->server->refused++;
	reply_go_error(&exchange->reply, 503, "too much to do: try again later");
	exchange_finish(exchange);
}
