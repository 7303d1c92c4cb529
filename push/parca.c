/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca: a unary call of gRPC, parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw. It is a POST of
 * HTTP/2, and the status of the answer is in its trailers (gRPC over HTTP2). The status of HTTP is 200 even
 * for a refusal.
 */
#include "pprof/text/text.h"
#include "push/answer.h"
#include "push/delivery.h"
#include "push/http.h"
#include "push/parca.pb-c.h"
#include "push/protocol.h"
#include "push/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXTRA_LABELS = 2, FRAME_BYTES = 5 /* flags, length */ };

static void set_label(Parca__Label *label, char *name, char *value)
{
	parca__label__init(label);
	label->name = name;
	label->value = value;
}

static size_t make_labels(const struct delivery *delivery, Parca__Label *labels)
{
	static char name[] = "__name__", session[] = "__session_id__";
	size_t count = 0;

	set_label(&labels[count++], name, (char *)delivery->series);
	for (size_t i = 0; i < delivery->labels.count; i++)
		set_label(&labels[count++], delivery->labels.rows[i].name, delivery->labels.rows[i].value);
	if (*delivery->session)
		set_label(&labels[count++], session, (char *)delivery->session);
	return count;
}

/* The message behind its frame: not compressed, length in network order. */
static int pack(const Parca__WriteRawRequest *message, struct http_request *request)
{
	size_t length = parca__write_raw_request__get_packed_size(message);

	if (length > UINT32_MAX)
		return -EFBIG;
	request->body = malloc(FRAME_BYTES + length);
	if (!request->body)
		return -ENOMEM;
	request->body_bytes = FRAME_BYTES + length;
	request->body[0] = 0;
	for (int i = 0; i < 4; i++)
		request->body[1 + i] = (uint8_t)(length >> (24 - 8 * i));
	parca__write_raw_request__pack(message, request->body + FRAME_BYTES);
	return 0;
}

static int make_request(
    const struct target *target, const struct delivery *delivery, struct http_request *request)
{
	Parca__Label labels[LABELS_MAX + EXTRA_LABELS], *label_pointers[LABELS_MAX + EXTRA_LABELS];
	Parca__LabelSet set = PARCA__LABEL_SET__INIT;
	Parca__Sample samples[2], *sample_pointers[2];
	Parca__Series series = PARCA__SERIES__INIT, *all = &series;
	Parca__WriteRawRequest message = PARCA__WRITE_RAW_REQUEST__INIT;
	int err;

	set.n_labels = make_labels(delivery, labels);
	for (size_t i = 0; i < set.n_labels; i++)
		label_pointers[i] = &labels[i];
	set.labels = label_pointers;
	for (size_t i = 0; i < delivery->part_count; i++) {
		parca__sample__init(&samples[i]);
		samples[i].raw_profile.data = delivery->parts[i].packed;
		samples[i].raw_profile.len = delivery->parts[i].packed_bytes;
		sample_pointers[i] = &samples[i];
	}
	series.labels = &set;
	series.n_samples = delivery->part_count;
	series.samples = sample_pointers;
	message.n_series = 1;
	message.series = &all;
	err = pack(&message, request);
	if (err)
		return err;
	request->http2 = true;
	snprintf(request->url, sizeof(request->url),
	    "%s/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", target->url.address);
	if (http_request_header(request, "Content-Type: application/grpc") ||
	    http_request_header(request, "TE: trailers") ||
	    http_request_header(
	        request, "grpc-timeout: %llum", (unsigned long long)(request->timeout_ns / 1000000)))
		return -ENOMEM;
	return 0;
}

/* gRPC without grpc-status is something else that speaks HTTP; its status has gRPC's meaning by the table of
 * "HTTP to gRPC Status Code Mapping", which agrees with ours but for 404. */
static enum answer_verdict judge(const struct target *target, const struct answer *answer, char *text)
{
	const uint8_t *message;
	size_t length;

	if (answer->grpc_status == 0 && answer->http_status == 200 &&
	    !answer_grpc_message(answer, &message, &length) && answer_is_protobuf(message, length))
		return ANSWER_ACCEPTED;
	answer_text(answer, text);
	if (answer->grpc_status > 0)
		return answer_judge_grpc(answer->grpc_status);
	if (answer->http_status / 100 == 2 || answer->grpc_status == 0) {
		text_append(text, ANSWER_TEXT_BYTES, " (that is no answer of gRPC)");
		return ANSWER_LATER;
	}
	return answer_judge_http(answer->http_status);
}

const struct protocol parca_protocol = {make_request, judge};
