/* SPDX-License-Identifier: Apache-2.0 */
#include "push/retry.h"

#include <string.h>
#include <time.h>

enum retry_verdict retry_http(int status)
{
	if (status == 401 || status == 403 || status == 407)
		return RETRY_DENIED;
	return status == 408 || status == 429 || status == 499 || status >= 500 ? RETRY_LATER : RETRY_REFUSED;
}

enum retry_verdict retry_grpc(int status)
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
		return RETRY_LATER;
	case 7:  /* permission denied */
	case 16: /* unauthenticated */
		return RETRY_DENIED;
	default:
		return RETRY_REFUSED;
	}
}

uint64_t retry_delay_ns(unsigned int failures, uint64_t random, uint64_t asked_ns)
{
	uint64_t delay = RETRY_FIRST_NS;

	for (unsigned int i = 1; i < failures && delay < RETRY_MOST_NS; i++)
		delay *= 2;
	if (delay > RETRY_MOST_NS)
		delay = RETRY_MOST_NS;
	/* A tenth more or less, so that many clients that failed at once do not come back at once. */
	delay = delay - delay / 10 + random % (delay / 5 + 1);
	if (asked_ns > RETRY_ASKED_MAX)
		asked_ns = RETRY_ASKED_MAX;
	return asked_ns > delay ? asked_ns + random % (asked_ns / 10 + 1) : delay;
}

uint64_t retry_after_ns(const char *value, int64_t now_unix_ns)
{
	uint64_t seconds = 0;
	size_t digits = strspn(value, "0123456789");
	struct tm tm = {0};
	time_t when;

	if (digits && !value[digits]) {
		for (size_t i = 0; i < digits && seconds < RETRY_ASKED_MAX / 1000000000; i++)
			seconds = seconds * 10 + (uint64_t)(value[i] - '0');
		return seconds * 1000000000 < RETRY_ASKED_MAX ? seconds * 1000000000 : RETRY_ASKED_MAX;
	}
	if (!strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		return 0;
	when = timegm(&tm);
	if (when <= now_unix_ns / 1000000000)
		return 0;
	if ((uint64_t)(when - now_unix_ns / 1000000000) > RETRY_ASKED_MAX / 1000000000)
		return RETRY_ASKED_MAX;
	return (uint64_t)(when - now_unix_ns / 1000000000) * 1000000000;
}
