/* SPDX-License-Identifier: Apache-2.0 */
#include "push/datadog.h"

#include "pprof/text/json.h"
#include "pprof/text/text.h"
#include "push/answer.h"
#include "push/delivery.h"
#include "push/http.h"
#include "push/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* "2026-11-22T12:00:00.000000000Z" */
static void json_time(struct json *json, const char *key, int64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	char text[64] = "", whole[96];
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(whole, sizeof(whole), "%s.%09lldZ", text, (long long)(unix_ns % 1000000000));
	json_text(json, key, whole);
}

/* "service:x,host:y": Datadog calls a service so; a comma would end a tag. */
static void json_tags(struct json *json, const struct delivery *delivery)
{
	char text[LABELS_MAX * 256] = "";

	for (size_t i = 0; i < delivery->labels.count; i++) {
		const struct label *label = &delivery->labels.rows[i];
		const char *name = strcmp(label->name, "service_name") == 0 ? "service" : label->name;
		size_t at;

		text_append(text, sizeof(text), "%s%s:", *text ? "," : "", name);
		at = strlen(text);
		text_append(text, sizeof(text), "%.200s", label->value);
		for (; text[at]; at++)
			if (text[at] == ',')
				text[at] = '_';
	}
	text_append(text, sizeof(text), ",runtime:native");
	json_text(json, "tags_profiler", text);
}

static void write_event(FILE *out, const struct delivery *delivery)
{
	struct json json = {.out = out};

	json_object(&json, NULL);
	json_array(&json, "attachments");
	json_text(&json, NULL, "profile.pprof");
	json_end(&json);
	json_tags(&json, delivery);
	json_time(&json, "start", delivery->start_ns);
	json_time(&json, "end", delivery->end_ns);
	json_text(&json, "family", "native");
	json_text(&json, "version", "4");
	json_object(&json, "internal");
	json_end(&json);
	json_object(&json, "info");
	json_end(&json);
	json_end(&json);
}

static int make_request(
    const struct target *target, const struct delivery *delivery, struct http_request *request)
{
	char boundary[64];
	FILE *out = open_memstream((char **)&request->body, &request->body_bytes);
	bool failed;

	if (!out)
		return -ENOMEM;
	/* A UUID does not occur in gzip's bytes but by a chance of 2^-122. */
	snprintf(boundary, sizeof(boundary), "heaptap-%s", delivery->uuid);
	fprintf(out,
	    "--%s\r\nContent-Disposition: form-data; name=\"event\"; filename=\"event.json\"\r\n"
	    "Content-Type: application/json\r\n\r\n",
	    boundary);
	write_event(out, delivery);
	fprintf(out,
	    "\r\n--%s\r\nContent-Disposition: form-data; name=\"profile.pprof\"; "
	    "filename=\"profile.pprof\"\r\n"
	    "Content-Type: application/octet-stream\r\n\r\n",
	    boundary);
	fwrite(delivery->parts[0].packed, 1, delivery->parts[0].packed_bytes, out);
	fprintf(out, "\r\n--%s--\r\n", boundary);
	failed = ferror(out);
	if (fclose(out) || failed)
		return -ENOMEM;
	snprintf(request->url, sizeof(request->url), "%s/profiling/v1/input", target->url.address);
	if (http_request_header(request, "Content-Type: multipart/form-data; boundary=%s", boundary) ||
	    http_request_header(request, "DD-EVP-ORIGIN: heaptap") ||
	    http_request_header(request, "DD-EVP-ORIGIN-VERSION: " HEAPTAP_VERSION))
		return -ENOMEM;
	return 0;
}

static enum retry_verdict judge(const struct target *target, const struct answer *answer, char *text)
{
	if (answer->http_status / 100 == 2)
		return RETRY_ACCEPTED;
	answer_text(answer, text);
	return retry_http(answer->http_status);
}

const struct protocol datadog_protocol = {make_request, judge};
