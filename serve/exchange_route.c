/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_route.h"

#include "pprof/page/page.h"
#include "sampler/linux/clock.h"
#include "serve/exchange.h"
#include "serve/exchange_api.h"
#include "serve/exchange_debug.h"
#include "serve/exchange_status.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void write_html(FILE *out, const char *text)
{
	static const char *const escapes[256] = {
	    ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&#34;", ['\''] = "&#39;"};

	for (; *text; text++) {
		const char *escape = escapes[(unsigned char)*text];

		if (escape)
			fputs(escape, out);
		else
			putc(*text, out);
	}
}

/* As Go's ServeMux redirects, with the query, which may say whom. */
static void redirect(struct exchange *exchange)
{
	const struct route *route = &exchange->route;
	const char *to = strcmp(route->path, "/debug/pprof") == 0 ? "/debug/pprof/" : "pprof/";
	char *escaped = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&escaped, &length);

	if (out)
		write_html(out, route->query);
	if (out && fclose(out) == 0) {
		const char *mark = *route->query ? "?" : "";

		reply_text(&exchange->reply, 301, "text/html; charset=utf-8",
		    "<a href=\"%s%s%s\">Moved Permanently</a>.\n\n", to, mark, escaped);
		reply_header(&exchange->reply, "Location", "%s%s%s", to, mark, route->query);
	} else {
		reply_text(&exchange->reply, 500, REPLY_TEXT, "out of memory\n");
	}
	free(escaped);
	exchange_finish(exchange);
}

static void on_catalog(struct catalog_waiter *waiter)
{
	struct exchange *exchange = (struct exchange *)((char *)waiter - offsetof(struct exchange, waiter));
	struct catalog *catalog = exchange->server->catalog;

	/* It may have begun since. */
	if (!exchange->looked_again && catalog_choose(catalog, &exchange->route, NULL, 0) == 0) {
		exchange->looked_again = true;
		catalog_want(catalog, waiter, clock_now_ns());
		return;
	}
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

void exchange_route_begin(struct exchange *exchange)
{
	switch (exchange->route.kind) {
	case ROUTE_NONE:
		reply_text(&exchange->reply, 404, REPLY_TEXT, "404 page not found\n");
		exchange_finish(exchange);
		return;
	case ROUTE_DEBUG_BARE:
		redirect(exchange);
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
	exchange->waiter.needs_files = exchange->route.kind == ROUTE_API;
	catalog_want(exchange->server->catalog, &exchange->waiter, 0);
}

void exchange_route_wake(struct exchange *exchange)
{
	exchange->wake_ns = 0;
	exchange_debug_wake(exchange);
}
