/* SPDX-License-Identifier: Apache-2.0 */
#include "push/answer.h"

#include "pprof/codec/wire.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

void answer_init(struct answer *answer)
{
	*answer = (struct answer){.grpc_status = ANSWER_NO_GRPC_STATUS};
}

/* The value of a header of that name, without spaces around it, cut; false: the line is another's. */
static bool value_of(const char *line, size_t length, const char *name, char *value, size_t value_bytes)
{
	size_t at = strlen(name);

	if (length <= at || line[at] != ':' || strncasecmp(line, name, at) != 0)
		return false;
	for (at++; at < length && (line[at] == ' ' || line[at] == '\t'); at++)
		;
	while (length > at && strchr(" \t\r\n", line[length - 1]) && line[length - 1])
		length--;
	length -= at;
	if (length >= value_bytes)
		length = value_bytes - 1;
	memcpy(value, line + at, length);
	value[length] = '\0';
	return true;
}

/* "HTTP/1.1 404 Not Found", "HTTP/2 200": begins an answer, maybe after an interim one. */
static bool read_status(struct answer *answer, const char *line, size_t length)
{
	const char *space = memchr(line, ' ', length);
	size_t seen = answer->header_bytes;

	if (length < 5 || memcmp(line, "HTTP/", 5) != 0 || !space || (size_t)(line + length - space) < 4)
		return false;
	answer_init(answer);
	answer->header_bytes = seen;
	for (int i = 1; i <= 3; i++) {
		if (space[i] < '0' || space[i] > '9') {
			answer->http_status = 0;
			return true;
		}
		answer->http_status = answer->http_status * 10 + (space[i] - '0');
	}
	return true;
}

/* grpc-message is percent-encoded (gRPC over HTTP2, "Responses"). */
static void decode(char *text)
{
	text[text_percent_decode(text, strlen(text))] = '\0';
}

static void read_grpc_status(struct answer *answer, const char *value)
{
	char *end;
	long number = strtol(value, &end, 10);

	answer->grpc_status = end == value || *end || number < 0 || number > 99 ? 2 : (int)number;
}

bool answer_header(struct answer *answer, const char *line, size_t length)
{
	char value[64];

	answer->header_bytes += length;
	if (answer->header_bytes > ANSWER_HEADER_BYTES) {
		answer->too_large = true;
		return false;
	}
	if (read_status(answer, line, length))
		return true;
	if (value_of(line, length, "grpc-status", value, sizeof(value)))
		read_grpc_status(answer, value);
	else if (value_of(line, length, "grpc-message", answer->grpc_message, sizeof(answer->grpc_message)))
		decode(answer->grpc_message);
	else if (!value_of(
	             line, length, "content-type", answer->content_type, sizeof(answer->content_type)) &&
	    !value_of(line, length, "retry-after", answer->retry_after, sizeof(answer->retry_after)))
		value_of(line, length, "location", answer->location, sizeof(answer->location));
	return true;
}

bool answer_body(struct answer *answer, const void *bytes, size_t length)
{
	size_t kept = sizeof(answer->body) - answer->body_kept;

	kept = length < kept ? length : kept;
	memcpy(answer->body + answer->body_kept, bytes, kept);
	answer->body_kept += kept;
	answer->body_bytes += length;
	answer->too_large = answer->too_large || answer->body_bytes > ANSWER_BODY_BYTES;
	return !answer->too_large;
}

/* Also its beginning at the end, where the text was cut. */
static void hide_in(uint8_t *text, size_t length, const char *secret, size_t secret_bytes)
{
	for (size_t at = 0; at + ANSWER_SECRET_BYTES <= length; at++) {
		size_t most = length - at < secret_bytes ? length - at : secret_bytes;

		if (memcmp(text + at, secret, most) == 0)
			memset(text + at, '*', most);
	}
}

void answer_hide(struct answer *answer, const char *secret)
{
	size_t length = strlen(secret);

	if (length < ANSWER_SECRET_BYTES)
		return;
	hide_in(answer->body, answer->body_kept, secret, length);
	hide_in((uint8_t *)answer->grpc_message, strlen(answer->grpc_message), secret, length);
	hide_in((uint8_t *)answer->location, strlen(answer->location), secret, length);
}

bool answer_is_type(const struct answer *answer, const char *type)
{
	return strncasecmp(answer->content_type, type, strlen(type)) == 0;
}

int answer_grpc_message(const struct answer *answer, const uint8_t **message, size_t *length)
{
	const uint8_t *at = answer->body;

	if (answer->body_kept < 5 || answer->body_kept != answer->body_bytes || at[0] != 0)
		return -EBADMSG;
	*length = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
	*message = at + 5;
	return *length == answer->body_kept - 5 ? 0 : -EBADMSG;
}

bool answer_is_protobuf(const uint8_t *bytes, size_t length)
{
	struct wire wire = {bytes, bytes + length};
	struct wire_field field;
	int status;

	while ((status = wire_next(&wire, &field)) > 0)
		;
	return status == 0;
}

static bool is_text(const struct answer *answer)
{
	return answer->body_kept &&
	    (answer_is_type(answer, "text/") || answer_is_type(answer, "application/json") ||
	        (!*answer->content_type && utf8_valid_prefix(answer->body, answer->body_kept) > 0));
}

void answer_text(const struct answer *answer, char *text)
{
	char said[256];
	size_t length = answer->body_kept < sizeof(said) ? answer->body_kept : sizeof(said) - 1;

	text[0] = '\0';
	if (answer->grpc_status != ANSWER_NO_GRPC_STATUS)
		text_append(text, ANSWER_TEXT_BYTES, "grpc-status %d", answer->grpc_status);
	else
		text_append(text, ANSWER_TEXT_BYTES, "HTTP %d", answer->http_status);
	if (*answer->grpc_message)
		text_append(text, ANSWER_TEXT_BYTES, ": %s", answer->grpc_message);
	if (answer->http_status / 100 == 3 && *answer->location)
		text_append(text, ANSWER_TEXT_BYTES, ": redirects to %s, and redirects are not followed",
		    answer->location);
	if (is_text(answer)) {
		memcpy(said, answer->body, length);
		said[length] = '\0';
		length = strlen(said);
		while (length && strchr(" \r\n\t", said[length - 1]))
			said[--length] = '\0';
		text_append(text, ANSWER_TEXT_BYTES, ": %s", said);
	}
	utf8_disarm(text, strlen(text));
}

/* ---- what to do after an answer */

enum answer_verdict answer_judge_http(int status)
{
	if (status == 401 || status == 403 || status == 407)
		return ANSWER_DENIED;
	return status == 408 || status == 429 || status == 499 || status >= 500 ? ANSWER_LATER
	                                                                        : ANSWER_REFUSED;
}

enum answer_verdict answer_judge_grpc(int status)
{
	switch (status) {
	case 1:  /* cancelled: by the server, for we have read the answer */
	case 2:  /* unknown */
	case 4:  /* deadline exceeded */
	case 8:  /* resource exhausted: what HTTP says by 429 */
	case 10: /* aborted */
	case 13: /* internal */
	case 14: /* unavailable */
	case 15: /* data loss */
		return ANSWER_LATER;
	case 7:  /* permission denied */
	case 16: /* unauthenticated */
		return ANSWER_DENIED;
	default:
		return ANSWER_REFUSED;
	}
}

uint64_t answer_retry_delay_ns(unsigned int failures, uint64_t random, uint64_t asked_ns)
{
	uint64_t delay = ANSWER_RETRY_FIRST_NS;

	for (unsigned int i = 1; i < failures && delay < ANSWER_RETRY_MOST_NS; i++)
		delay *= 2;
	if (delay > ANSWER_RETRY_MOST_NS)
		delay = ANSWER_RETRY_MOST_NS;
	/* A tenth more or less, so that many clients that failed at once do not come back at once. */
	delay = delay - delay / 10 + random % (delay / 5 + 1);
	if (asked_ns > ANSWER_RETRY_ASKED_MAX)
		asked_ns = ANSWER_RETRY_ASKED_MAX;
	return asked_ns > delay ? asked_ns + random % (asked_ns / 10 + 1) : delay;
}

uint64_t answer_retry_after_ns(const char *value, int64_t now_unix_ns)
{
	uint64_t seconds = 0;
	size_t digits = strspn(value, "0123456789");
	struct tm tm = {0};
	time_t when;

	if (digits && !value[digits]) {
		for (size_t i = 0; i < digits && seconds < ANSWER_RETRY_ASKED_MAX / 1000000000; i++)
			seconds = seconds * 10 + (uint64_t)(value[i] - '0');
		return seconds * 1000000000 < ANSWER_RETRY_ASKED_MAX ? seconds * 1000000000
		                                                     : ANSWER_RETRY_ASKED_MAX;
	}
	if (!strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		return 0;
	when = timegm(&tm);
	if (when <= now_unix_ns / 1000000000)
		return 0;
	if ((uint64_t)(when - now_unix_ns / 1000000000) > ANSWER_RETRY_ASKED_MAX / 1000000000)
		return ANSWER_RETRY_ASKED_MAX;
	return (uint64_t)(when - now_unix_ns / 1000000000) * 1000000000;
}
