/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends, as far as this program reads it itself: the first line's target with its parameters,
 * Host, Authorization, the body of /symbol, and the filters of /api/v1. The parts are separated by newlines.
 * What holds: a path without an empty or ".." part or a control character is all that leads anywhere,
 * numbers are
 * within their bounds, and no token but the right one opens.
 */
#include "serve/api_query.h"
#include "serve/client.h"
#include "serve/debug_answer.h"
#include "serve/listen_address.h"
#include "serve/request.h"
#include "serve/route.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *get(const void *context, const char *name)
{
	return parameters_get(context, name);
}

static void read_query(const struct route *route)
{
	struct api_query query;
	char error[512] = "";

	if (api_query_parse(&query, get, &route->parameters, error, sizeof(error)) == -EINVAL)
		REQUIRE(error[0] && strlen(error) < sizeof(error));
	api_query_fini(&query);
}

static void read_target(const char *target)
{
	static const char debug[] = "/debug/pprof/";
	const struct endpoint *endpoint;
	struct debug_plan plan;
	struct reply reply = {0};
	struct route route;

	if (route_parse(&route, target))
		return;
	REQUIRE(route.path[0] == '/');
	endpoint = endpoint_find(&route);
	if (*route.below) {
		REQUIRE(!strstr(route.path, "/../") && !strstr(route.path, "//"));
		for (const char *at = route.path; *at; at++)
			REQUIRE((unsigned char)*at >= 0x20);
	} else {
		REQUIRE(strcmp(endpoint->path, "**") == 0);
	}
	REQUIRE(route.pid >= 0 && strlen(route.service) < sizeof(route.service));
	REQUIRE(*endpoint->methods);
	if (endpoint->access == ENDPOINT_OPEN)
		REQUIRE(strlen(endpoint->path) <= 2 || strcmp(endpoint->path, "/healthz") == 0);
	if (strncmp(endpoint->path, debug, sizeof(debug) - 1) == 0) {
		if (debug_answer_plan(&plan, endpoint->path + sizeof(debug) - 1, &route.parameters, &reply))
			REQUIRE(plan.seconds <= DEBUG_SECONDS_MAX && plan.name && !reply.status);
		else
			REQUIRE(reply.status == 400 || reply.status == 404);
	}
	read_query(&route);
	reply_fini(&reply);
	route_fini(&route);
}

static void read_symbols(const char *query)
{
	FILE *out = fopen("/dev/null", "w");

	if (out) {
		REQUIRE(debug_answer_write_symbols(out, query, NULL) == 0);
		fclose(out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct token token = {.text = "the-only-right-token"}, other;
	struct listen_address address;
	char *text = malloc(size + 1), *rest = text, *part, error[256];

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (int turn = 0; (part = strsep(&rest, "\n")); turn++) {
		switch (turn % 5) {
		case 0:
			read_target(part);
			break;
		case 1:
			(void)client_host_is_local(part, "box");
			(void)listen_address_parse(&address, part, error, sizeof(error));
			break;
		case 2:
			if (client_token_is_shown(&token, part))
				REQUIRE(strstr(part, token.text));
			break;
		case 3:
			read_symbols(part);
			break;
		default:
			if (client_token_parse(&other, part, strlen(part)) == 0)
				REQUIRE(strlen(other.text) >= TOKEN_BYTES_MIN);
		}
	}
	free(text);
	return 0;
}
