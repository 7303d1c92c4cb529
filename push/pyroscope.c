/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grafana Pyroscope: Connect's unary push.v1.PusherService/Push with protobuf bodies, or, where the server
 * answers 404 to that, /ingest (pkg/distributor and pkg/ingester/pyroscope of grafana/pyroscope).
 *
 * Pyroscope adds up alloc_* over time: they are sent as differences, and `__delta__=false` tells the
 * storage of version 1 not to subtract again.
 */
#include "pprof/text/text.h"
#include "push/answer.h"
#include "push/delivery.h"
#include "push/http.h"
#include "push/protocol.h"
#include "push/pyroscope.pb-c.h"
#include "push/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXTRA_LABELS = 4 };

static void set_label(Pyroscope__Label *label, char *name, char *value)
{
	pyroscope__label__init(label);
	label->name = name;
	label->value = value;
}

/* labels has room for all; how many there are. The strings are the delivery's. */
static size_t make_labels(const struct delivery *delivery, Pyroscope__Label *labels)
{
	static char name[] = "__name__", delta[] = "__delta__", no[] = "false", spy[] = "pyroscope_spy",
	            heaptap[] = "heaptap", session[] = "__session_id__";
	size_t count = 0;

	set_label(&labels[count++], name, (char *)delivery->series);
	for (size_t i = 0; i < delivery->labels.count; i++)
		set_label(&labels[count++], delivery->labels.rows[i].name, delivery->labels.rows[i].value);
	set_label(&labels[count++], delta, no);
	if (!labels_find(&delivery->labels, spy))
		set_label(&labels[count++], spy, heaptap);
	if (*delivery->session)
		set_label(&labels[count++], session, (char *)delivery->session);
	return count;
}

static int push_request(
    const struct target *target, const struct delivery *delivery, struct http_request *request)
{
	Pyroscope__Label labels[LABELS_MAX + EXTRA_LABELS], *label_pointers[LABELS_MAX + EXTRA_LABELS];
	Pyroscope__Sample sample = PYROSCOPE__SAMPLE__INIT, *samples = &sample;
	Pyroscope__Series series = PYROSCOPE__SERIES__INIT, *all = &series;
	Pyroscope__PushRequest message = PYROSCOPE__PUSH_REQUEST__INIT;

	sample.raw_profile.data = delivery->parts[0].packed;
	sample.raw_profile.len = delivery->parts[0].packed_bytes;
	sample.id = (char *)delivery->uuid;
	series.n_labels = make_labels(delivery, labels);
	for (size_t i = 0; i < series.n_labels; i++)
		label_pointers[i] = &labels[i];
	series.labels = label_pointers;
	series.n_samples = 1;
	series.samples = &samples;
	message.n_series = 1;
	message.series = &all;
	request->body_bytes = pyroscope__push_request__get_packed_size(&message);
	request->body = malloc(request->body_bytes + 1);
	if (!request->body)
		return -ENOMEM;
	pyroscope__push_request__pack(&message, request->body);
	snprintf(request->url, sizeof(request->url), "%s/push.v1.PusherService/Push", target->url.address);
	if (http_request_header(request, "Content-Type: application/proto") ||
	    http_request_header(request, "Connect-Protocol-Version: 1"))
		return -ENOMEM;
	return 0;
}

/* name=service{k="v",...}: the braces' text has no way to write ',', '=', '}' or '"'. */
static void append_ingest_label(char *name, size_t name_bytes, const char *key, const char *value)
{
	size_t at;

	text_append(name, name_bytes, "%s%s=", name[strlen(name) - 1] == '{' ? "" : ",", key);
	at = strlen(name);
	text_append(name, name_bytes, "%s", value);
	for (; name[at]; at++)
		if (strchr(",={}\"", name[at]))
			name[at] = '_';
}

static int ingest_request(
    const struct target *target, const struct delivery *delivery, struct http_request *request)
{
	char name[2048], escaped[3 * sizeof(name)];

	snprintf(name, sizeof(name), "%s", labels_find(&delivery->labels, "service_name"));
	for (char *at = name; *at; at++)
		if (strchr("{}", *at))
			*at = '_';
	text_append(name, sizeof(name) - 2, "{");
	for (size_t i = 0; i < delivery->labels.count; i++)
		if (strcmp(delivery->labels.rows[i].name, "service_name") != 0)
			append_ingest_label(name, sizeof(name) - 2, delivery->labels.rows[i].name,
			    delivery->labels.rows[i].value);
	if (*delivery->session)
		append_ingest_label(name, sizeof(name) - 2, "__session_id__", delivery->session);
	text_append(name, sizeof(name), "}");
	http_escape(name, escaped, sizeof(escaped));
	snprintf(request->url, sizeof(request->url),
	    "%s/ingest?name=%s&from=%" PRId64 "&until=%" PRId64 "&format=pprof&spyName=heaptap",
	    target->url.address, escaped, delivery->start_ns / 1000000000, delivery->end_ns / 1000000000);
	request->body_bytes = delivery->parts[0].packed_bytes;
	request->body = malloc(request->body_bytes + 1);
	if (!request->body)
		return -ENOMEM;
	memcpy(request->body, delivery->parts[0].packed, request->body_bytes);
	return http_request_header(request, "Content-Type: application/octet-stream");
}

static int make_request(
    const struct target *target, const struct delivery *delivery, struct http_request *request)
{
	return target->path_missing ? ingest_request(target, delivery, request)
	                            : push_request(target, delivery, request);
}

/* A proxy's page with status 200 is no acknowledgement: Push answers with a protobuf message. */
static bool is_acknowledged(const struct target *target, const struct answer *answer)
{
	if (answer->http_status != 200)
		return false;
	if (target->path_missing)
		return !answer_is_type(answer, "text/html");
	return answer_is_type(answer, "application/proto") && answer->body_kept == answer->body_bytes &&
	    answer_is_protobuf(answer->body, answer->body_kept);
}

static enum answer_verdict judge(const struct target *target, const struct answer *answer, char *text)
{
	if (is_acknowledged(target, answer))
		return ANSWER_ACCEPTED;
	answer_text(answer, text);
	if (answer->http_status / 100 == 2) {
		text_append(text, ANSWER_TEXT_BYTES, " (that is no answer of Pyroscope)");
		return ANSWER_LATER;
	}
	if (answer->http_status == 404 && !target->path_missing)
		return ANSWER_OTHER_PATH;
	return answer_judge_http(answer->http_status);
}

const struct protocol pyroscope_protocol = {make_request, judge};
