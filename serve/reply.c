/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/reply.h"

#include "pprof/text/json.h"
#include "pprof/text/utf8.h"
#include "serve/blob.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reply_fini(struct reply *reply)
{
	for (size_t i = 0; i < reply->header_count; i++)
		free(reply->headers[i].value);
	blob_drop(reply->body);
	*reply = (struct reply){0};
}

static void fail(struct reply *reply)
{
	reply_fini(reply);
	reply->status = 500;
}

void reply_header(struct reply *reply, const char *name, const char *format, ...)
{
	va_list args;
	char *value;

	if (reply->header_count == REPLY_HEADERS)
		return;
	va_start(args, format);
	if (vasprintf(&value, format, args) < 0)
		value = NULL;
	va_end(args);
	if (!value) {
		fail(reply);
		return;
	}
	reply->headers[reply->header_count++] = (struct reply_header){name, value};
}

void reply_bytes(struct reply *reply, unsigned int status, const char *type, struct blob *body)
{
	reply_fini(reply);
	if (!body) {
		fail(reply);
		return;
	}
	reply->status = status;
	reply->body = body;
	reply_header(reply, "Content-Type", "%s", type);
	reply_header(reply, "X-Content-Type-Options", "nosniff");
}

void reply_text(struct reply *reply, unsigned int status, const char *type, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	reply_bytes(reply, status, type, length < 0 ? NULL : blob_new(text, (size_t)length));
}

void reply_go_error(struct reply *reply, unsigned int status, const char *text)
{
	reply_text(reply, status, REPLY_TEXT, "%s\n", text);
	if (reply->body)
		reply_header(reply, "X-Go-Pprof", "1");
}

void reply_json_error(struct reply *reply, unsigned int status, const char *text)
{
	char *bytes = NULL, clean[1024];
	size_t length = 0;
	FILE *out = open_memstream(&bytes, &length);
	struct json json = {.out = out};

	snprintf(clean, sizeof(clean), "%s", text); /* the text may quote the request */
	utf8_disarm(clean, strlen(clean));
	if (out) {
		json_object(&json, NULL);
		json_text(&json, "error", clean);
		json_end(&json);
	}
	if (!out || fclose(out)) {
		free(bytes);
		fail(reply);
		return;
	}
	reply_bytes(reply, status, REPLY_JSON, blob_new(bytes, length));
}
