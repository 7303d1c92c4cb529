/* SPDX-License-Identifier: Apache-2.0 */
#include "push/protocols.h"

#include "push/answer.h"
#include "push/http.h"
#include "push/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct protocol *protocols_of(const struct target *target)
{
	static const struct protocol *const protocols[] = {[URL_PYROSCOPE] = &pyroscope_protocol,
	    [URL_PARCA] = &parca_protocol,
	    [URL_OTLP] = &otlp_protocol};

	return protocols[target->url.protocol];
}

int protocols_request(const struct target *target, const struct delivery *delivery,
    struct http_request *request, char *error, size_t error_bytes)
{
	int err;

	*request = (struct http_request){.timeout_ns = target->timeout_ns, .ca_file = target->ca_file};
	err = target_authorize(target, request, error, error_bytes);
	if (err)
		return err == -ENOMEM ? err : -EACCES;
	err = protocols_of(target)->request(target, delivery, request);
	if (err)
		snprintf(error, error_bytes, "cannot make the request: %s", strerror(-err));
	return err;
}

static void hide_header(const struct http_request *request, struct answer *answer)
{
	static const char name[] = "Authorization: ";

	for (size_t i = 0; i < request->header_count; i++) {
		const char *value = request->headers[i] + sizeof(name) - 1;

		if (strncmp(request->headers[i], name, sizeof(name) - 1) == 0)
			answer_hide(answer, value + strcspn(value, " ") + 1);
	}
}

enum answer_verdict protocols_judge(
    const struct target *target, const struct http_request *request, struct answer *answer, char *text)
{
	hide_header(request, answer);
	if (request->secret)
		answer_hide(answer, request->secret);
	return protocols_of(target)->judge(target, answer, text);
}
