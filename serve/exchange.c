/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange.h"

#include "pprof/codec/gzip.h"
#include "pprof/page/page.h"
#include "serve/exchange_api.h"
#include "serve/exchange_debug.h"
#include "serve/exchange_status.h"

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

void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	if (exchange->work)
		exchange->work->exchange = NULL;
	if (exchange->planned)
		exchange->planned->free_data(exchange->planned);
	free(exchange->planned);
	catalog_leave(&exchange->waiter);
	broker_client_cancel(exchange->server->broker, exchange->request);
	gather_fini(&exchange->first);
	gather_fini(&exchange->last);
	exchange->server->waits -= exchange->counted;
	reply_fini(&exchange->reply);
	route_fini(&exchange->route);
	free(exchange->body);
	free(exchange);
}

void exchange_finish(struct exchange *exchange)
{
	exchange->server->waits -= exchange->counted;
	exchange->counted = false;
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

	if (exchange) {
		if (work->done)
			work->done(exchange, work);
		reply_fini(&exchange->reply);
		exchange->reply = work->reply;
		exchange->work = NULL;
	} else {
		reply_fini(&work->reply);
	}
	work->free_data(work);
	free(work);
	if (exchange)
		exchange_finish(exchange);
}

void exchange_submit(struct exchange *exchange, struct exchange_work *work)
{
	work->job = (struct job){.run = run, .done = done};
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

/* ---- where it goes */

static void answer_page(struct exchange *exchange)
{
	const char *name = exchange->route.name;
	const struct page_file *file = page_find(*name ? name : "page.html");

	if (!file) {
		reply_text(&exchange->reply, 404, REPLY_TEXT, "404 page not found\n");
	} else {
		reply_bytes(&exchange->reply, 200, file->type, blob_copy(file->bytes, page_length(file)));
		reply_header(&exchange->reply, "Content-Security-Policy", "%s", PAGE_CSP);
		reply_header(&exchange->reply, "Cache-Control", "no-cache");
		reply_header(&exchange->reply, "Referrer-Policy", "no-referrer");
	}
	exchange_finish(exchange);
}

static void on_catalog(struct catalog_waiter *waiter)
{
	struct exchange *exchange = (struct exchange *)((char *)waiter - offsetof(struct exchange, waiter));

	switch (exchange->route.kind) {
	case ROUTE_DEBUG:
	case ROUTE_OLD:
		exchange_debug(exchange);
		break;
	case ROUTE_API:
		exchange_api(exchange);
		break;
	default:
		exchange_status(exchange);
	}
}

void exchange_begin(struct exchange *exchange)
{
	switch (exchange->route.kind) {
	case ROUTE_NONE:
		reply_text(&exchange->reply, 404, REPLY_TEXT, "404 page not found\n");
		exchange_finish(exchange);
		return;
	case ROUTE_DEBUG_BARE:
		reply_text(&exchange->reply, 301, "text/html; charset=utf-8",
		    "<a href=\"/debug/pprof/\">Moved Permanently</a>.\n\n");
		reply_header(&exchange->reply, "Location", "%s",
		    exchange->route.scope == ROUTE_ANY ? "/debug/pprof/" : "pprof/");
		exchange_finish(exchange);
		return;
	case ROUTE_HEALTH:
		reply_text(&exchange->reply, 200, REPLY_TEXT, "ok\n");
		exchange_finish(exchange);
		return;
	case ROUTE_PAGE:
		answer_page(exchange);
		return;
	case ROUTE_DEBUG:
	case ROUTE_OLD:
		if (!debug_plan_make(&exchange->plan, &exchange->route, &exchange->reply)) {
			exchange_finish(exchange);
			return;
		}
		break;
	case ROUTE_API:
		if (exchange_api_is_static(exchange)) {
			exchange_finish(exchange);
			return;
		}
		break;
	case ROUTE_METRICS:
	case ROUTE_DISCOVERY:
		break;
	}
	exchange->waiter.ready = on_catalog;
	catalog_want(exchange->server->catalog, &exchange->waiter);
}

void exchange_wake(struct exchange *exchange)
{
	exchange->wake_ns = 0;
	exchange_debug_wake(exchange);
}
