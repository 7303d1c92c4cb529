/* SPDX-License-Identifier: Apache-2.0 */
#include "push/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct http {
	CURLM *multi;
};

struct http_call {
	CURL *easy;
	struct curl_slist *headers;
	struct answer *answer;
	void *owner;
	size_t body_bytes;
	char error[CURL_ERROR_SIZE];
};

enum { WAIT_FDS_MAX = 8 };

int http_request_header(struct http_request *request, const char *format, ...)
{
	char line[HTTP_HEADER_BYTES];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= sizeof(line) || request->header_count == HTTP_HEADERS_MAX)
		return -EINVAL;
	for (const char *at = line; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return -EINVAL;
	request->headers[request->header_count] = strdup(line);
	return request->headers[request->header_count] ? request->header_count++, 0 : -ENOMEM;
}

void http_request_fini(struct http_request *request)
{
	for (size_t i = 0; i < request->header_count; i++)
		free(request->headers[i]);
	request->header_count = 0;
	free(request->body);
	free(request->secret);
	request->body = NULL;
	request->secret = NULL;
}

struct http *http_new(void)
{
	struct http *http = calloc(1, sizeof(*http));

	if (!http || curl_global_init(CURL_GLOBAL_DEFAULT) || !(http->multi = curl_multi_init())) {
		free(http);
		return NULL;
	}
	return http;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	curl_multi_cleanup(http->multi);
	curl_global_cleanup();
	free(http);
}

/* curl calls it for trailers, too. */
static size_t on_header(char *line, size_t size, size_t count, void *context)
{
	struct http_call *call = context;

	return answer_header(call->answer, line, size * count) ? size * count : 0;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
	struct http_call *call = context;

	return answer_body(call->answer, bytes, size * count) ? size * count : 0;
}

static void call_free(struct http_call *call)
{
	if (!call)
		return;
	curl_easy_cleanup(call->easy);
	curl_slist_free_all(call->headers);
	free(call);
}

static int set_headers(struct http_call *call, const struct http_request *request)
{
	struct curl_slist *more = curl_slist_append(NULL, "Expect:");

	for (size_t i = 0; i < request->header_count && more; i++) {
		struct curl_slist *next = curl_slist_append(more, request->headers[i]);

		if (!next)
			curl_slist_free_all(more);
		more = next;
	}
	call->headers = more;
	return more ? 0 : -ENOMEM;
}

static void set_options(struct http_call *call, const struct http_request *request)
{
	CURL *easy = call->easy;
	bool tls = strncmp(request->url, "https:", 6) == 0;
	long version = CURL_HTTP_VERSION_1_1;

	if (request->http2)
		version = tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
	curl_easy_setopt(easy, CURLOPT_URL, request->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, version);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, (const char *)request->body);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "heaptap/" HEAPTAP_VERSION);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(request->timeout_ns / 1000000 + 1));
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	/* curl 7.88 fails on a connection that was begun by prior knowledge and is used again ("Error in
	 * the HTTP2 framing layer", by every server). */
	if (version == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE) {
		curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	}
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	/* Instead of the system's, which are a file and a folder. */
	if (request->ca_file) {
		curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
}

struct http_call *http_start(
    struct http *http, const struct http_request *request, struct answer *answer, void *owner)
{
	struct http_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->easy = curl_easy_init();
	call->answer = answer;
	call->owner = owner;
	call->body_bytes = request->body_bytes;
	answer_init(answer);
	if (!call->easy || set_headers(call, request)) {
		call_free(call);
		return NULL;
	}
	set_options(call, request);
	if (curl_multi_add_handle(http->multi, call->easy)) {
		call_free(call);
		return NULL;
	}
	return call;
}

void http_cancel(struct http *http, struct http_call *call)
{
	curl_multi_remove_handle(http->multi, call->easy);
	call_free(call);
}

/* A call that is over, if there is one. */
static bool take_done(struct http *http, void **owner, char error[HTTP_ERROR_BYTES])
{
	CURLMsg *message;
	struct http_call *call;
	curl_off_t sent = 0;
	int left;

	do
		message = curl_multi_info_read(http->multi, &left);
	while (message && message->msg != CURLMSG_DONE);
	if (!message)
		return false;
	curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
	curl_easy_getinfo(message->easy_handle, CURLINFO_SIZE_UPLOAD_T, &sent);
	call->answer->request_sent = sent >= 0 && (uint64_t)sent >= call->body_bytes;
	error[0] = '\0';
	if (call->answer->too_large)
		snprintf(error, HTTP_ERROR_BYTES, "the answer is too large");
	else if (message->data.result)
		snprintf(error, HTTP_ERROR_BYTES, "%s",
		    call->error[0] ? call->error : curl_easy_strerror(message->data.result));
	*owner = call->owner;
	http_cancel(http, call);
	return true;
}

bool http_wait(struct http *http, struct pollfd *fds, size_t fd_count, uint64_t timeout_ns, void **owner,
    char error[HTTP_ERROR_BYTES])
{
	struct curl_waitfd waits[WAIT_FDS_MAX];
	int running, ready;

	for (size_t i = 0; i < fd_count && i < WAIT_FDS_MAX; i++)
		waits[i] = (struct curl_waitfd){.fd = fds[i].fd, .events = CURL_WAIT_POLLIN};
	curl_multi_perform(http->multi, &running);
	if (take_done(http, owner, error))
		return true;
	timeout_ns = timeout_ns / 1000000 < 3600000 ? timeout_ns : UINT64_C(3600000) * 1000000;
	/* curl itself wakes up earlier where it must; rounded up, so that the time is up when it returns. */
	curl_multi_poll(
	    http->multi, waits, (unsigned int)fd_count, (int)((timeout_ns + 999999) / 1000000), &ready);
	for (size_t i = 0; i < fd_count && i < WAIT_FDS_MAX; i++)
		fds[i].revents = waits[i].revents ? POLLIN : 0;
	curl_multi_perform(http->multi, &running);
	return take_done(http, owner, error);
}

void http_escape(const char *text, char *escaped, size_t escaped_bytes)
{
	size_t to = 0;

	for (; *text && to + 4 <= escaped_bytes; text++) {
		bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');

		if (letter || (*text >= '0' && *text <= '9') || strchr("-._~", *text))
			escaped[to++] = *text;
		else
			to += (size_t)snprintf(escaped + to, 4, "%%%02X", (unsigned char)*text);
	}
	escaped[to] = '\0';
}
