/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the endpoint of a request in the table, and lets it answer. The endpoints that need no profile are
 * here. */
#include "pprof/page/page.h"
#include "pprof/text/clock.h"
#include "serve/endpoint_list.h"
#include "serve/request.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table */

#define GET      "GET, HEAD"
#define POST     "POST"
#define GET_POST "GET, HEAD, POST"

#define ROW(path, reach, methods, access, needs, errors, answer, parameters)                      \
	{path, ENDPOINT_##reach, methods, ENDPOINT_##access, ENDPOINT_##needs, ENDPOINT_##errors, \
	    parameters, answer},

static const struct endpoint endpoints[] = {ENDPOINT_LIST(ROW)};

#define ENDPOINT_COUNT (sizeof(endpoints) / sizeof(endpoints[0]))

static bool matches(const char *pattern, const char *path)
{
	const size_t fixed = strcspn(pattern, "*");

	if (!pattern[fixed])
		return strcmp(pattern, path) == 0;
	return strncmp(pattern, path, fixed) == 0 && (pattern[fixed + 1] || !strchr(path + fixed, '/'));
}

const struct endpoint *endpoint_find(const struct route *route)
{
	size_t at = 0;

	while (at + 1 < ENDPOINT_COUNT &&
	    ((route->is_below_process && endpoints[at].reach == ENDPOINT_ALONE) ||
	        !matches(endpoints[at].path, route->below)))
		at++;
	return &endpoints[at];
}

const struct endpoint *endpoint_all(size_t *count)
{
	*count = ENDPOINT_COUNT;
	return endpoints;
}

/* ---- from the table to the answer */

static void on_catalog(struct catalog_waiter *waiter)
{
	struct request *request = (struct request *)((char *)waiter - offsetof(struct request, waiter));
	struct catalog *catalog = request->server->catalog;

	/* The process may have begun since the list was made. */
	if (!request->looked_again && catalog_choose(catalog, &request->route, NULL, 0) == 0) {
		request->looked_again = true;
		catalog_want(catalog, waiter, clock_now_ns());
		return;
	}
	request->endpoint->answer(request);
}

void endpoint_begin(struct request *request)
{
	const struct endpoint *endpoint = request->endpoint;

	if (endpoint->access == ENDPOINT_TOKEN && !request->has_token) {
		request_refuse(request, 403, "only a server with --token-file writes snapshots");
		return;
	}
	if (endpoint->needs == ENDPOINT_NOTHING) {
		endpoint->answer(request);
		return;
	}
	request->waiter.ready = on_catalog;
	request->waiter.needs_files = endpoint->needs == ENDPOINT_FILES;
	catalog_want(request->server->catalog, &request->waiter, 0);
}

/* ---- answers that need nothing */

void answer_not_found(struct request *request)
{
	reply_text(&request->reply, 404, REPLY_TEXT, "404 page not found\n");
	request_finish(request);
}

void answer_old_pprof(struct request *request)
{
	reply_text(&request->reply, 410, REPLY_TEXT, "/pprof/... is gone: use /debug/pprof/...\n");
	request_finish(request);
}

void answer_no_view(struct request *request)
{
	request_refuse(request, 404, "there is no such view; /api/v1/openapi.json lists all");
}

void answer_health(struct request *request)
{
	reply_text(&request->reply, 200, REPLY_TEXT, "ok\n");
	request_finish(request);
}

/* A NUL-terminated string. The Makefile has a rule that this object depends on the file. */
__asm__(".pushsection .rodata\n"
        "openapi_text:\n"
        ".incbin \"serve/openapi.json\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char openapi_text[] __attribute__((visibility("hidden")));

const char *endpoint_openapi(void)
{
	return openapi_text;
}

void answer_openapi(struct request *request)
{
	reply_text(&request->reply, 200, REPLY_JSON, "%s", openapi_text);
	request_finish(request);
}

void answer_page(struct request *request)
{
	const char *name = request->route.below + 1;
	const struct page_file *file = page_find(*name ? name : "page.html");

	if (!file) {
		answer_not_found(request);
		return;
	}
	reply_bytes(&request->reply, 200, file->type, blob_copy(file->bytes, page_length(file)));
	reply_header(&request->reply, "Content-Security-Policy", "%s", PAGE_CSP);
	reply_header(&request->reply, "Cache-Control", "no-cache");
	reply_header(&request->reply, "Referrer-Policy", "no-referrer");
	request_finish(request);
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

/* As Go's ServeMux redirects: with the query, which may choose a process. */
void answer_debug_redirect(struct request *request)
{
	const struct route *route = &request->route;
	const char *to = strcmp(route->path, "/debug/pprof") == 0 ? "/debug/pprof/" : "pprof/";
	char *escaped = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&escaped, &length);

	if (out)
		write_html(out, route->query);
	if (out && fclose(out) == 0) {
		const char *mark = *route->query ? "?" : "";

		reply_text(&request->reply, 301, "text/html; charset=utf-8",
		    "<a href=\"%s%s%s\">Moved Permanently</a>.\n\n", to, mark, escaped);
		reply_header(&request->reply, "Location", "%s%s%s", to, mark, route->query);
	} else {
		reply_text(&request->reply, 500, REPLY_TEXT, "out of memory\n");
	}
	free(escaped);
	request_finish(request);
}
