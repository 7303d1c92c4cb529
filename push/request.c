/* SPDX-License-Identifier: Apache-2.0 */
#include "push/request.h"

#include "push/datadog.h"
#include "push/http.h"
#include "push/otlp.h"
#include "push/parca.h"
#include "push/pyroscope.h"
#include "push/target.h"

#include <stdio.h>
#include <string.h>

const struct protocol *request_protocol(const struct target *target)
{
	static const struct protocol *const protocols[] = {[URL_PYROSCOPE] = &pyroscope_protocol,
	    [URL_PARCA] = &parca_protocol,
	    [URL_DATADOG] = &datadog_protocol,
	    [URL_OTLP] = &otlp_protocol};

	return protocols[target->url.protocol];
}

int request_make(const struct target *target, const struct delivery *delivery, struct http_request *request,
    char *error, size_t error_bytes)
{
	int err;

	*request = (struct http_request){.timeout_ns = target->timeout_ns, .ca_file = target->ca_file};
	err = target_authorize(target, request, error, error_bytes);
	if (err)
		return err;
	err = request_protocol(target)->request(target, delivery, request);
	if (err)
		snprintf(error, error_bytes, "cannot make the request: %s", strerror(-err));
	return err;
}
