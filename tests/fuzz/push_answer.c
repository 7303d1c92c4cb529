/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What servers send, by every protocol's judge: header lines, trailers and bodies of any kind. The first
 * byte says which protocol; then pieces, each with a length of two bytes, header or body by its first bit.
 * What holds: an answer is accepted only with the status that the protocol has for that, and what is
 * printed of it is safe.
 */
#include "pprof/text/utf8.h"
#include "push/answer.h"
#include "push/protocols.h"
#include "push/target.h"

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

static void judge(const struct target *target, const struct answer *answer)
{
	char text[ANSWER_TEXT_BYTES] = "";
	enum answer_verdict verdict = protocols_of(target)->judge(target, answer, text);

	REQUIRE(memchr(text, '\0', sizeof(text)));
	if (verdict == ANSWER_ACCEPTED)
		REQUIRE(answer->http_status / 100 == 2 &&
		    (target->url.protocol != URL_PARCA || answer->grpc_status == 0));
	answer_text(answer, text);
	REQUIRE(strlen(text) < sizeof(text));
	utf8_disarm(text, strlen(text));
	answer_retry_after_ns(answer->retry_after, INT64_C(1800000000) * 1000000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target target = {0};
	struct answer answer;
	bool going_on = true;

	if (!size)
		return 0;
	target.url.protocol = (data[0] & 3) % (URL_OTLP + 1);
	target.path_missing = data[0] & 4;
	answer_init(&answer);
	for (data++, size--; size >= 2 && going_on;) {
		size_t length = (size_t)(data[0] & 0x7f) << 8 | data[1];
		bool body = data[0] & 0x80;

		data += 2;
		size -= 2;
		length = length < size ? length : size;
		going_on = body ? answer_body(&answer, data, length)
		                : answer_header(&answer, (const char *)data, length);
		data += length;
		size -= length;
		judge(&target, &answer);
	}
	REQUIRE(answer.body_kept <= ANSWER_KEPT_BYTES && answer.body_kept <= answer.body_bytes);
	return 0;
}
