/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do after an answer, and when to try again. Pure.
 *
 * The table is that of Grafana Alloy's pyroscope.write. HTTP's 408, 429 and 5xx, and the codes of gRPC and
 * Connect that may pass, are tried again: after 500 ms, then after twice as long each time, 5 minutes at
 * most, with a tenth of jitter, and never sooner than the server asked for (Retry-After). Any other answer is
 * final, with two exceptions. "cancelled" (Pyroscope's 499) comes from a server that ends: the client that
 * reads it has not gone away. 401, 403 and a proxy's 407 are no fault of the profile: the user renews a token
 * in its file, and each profile waits a day for that.
 */
#ifndef PUSH_RETRY_H
#define PUSH_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#define RETRY_FIRST_NS  (UINT64_C(500) * 1000000)
#define RETRY_MOST_NS   (UINT64_C(300) * 1000000000)
#define RETRY_ASKED_MAX (UINT64_C(3600) * 1000000000) /* a server may not ask for more */

enum retry_verdict {
	RETRY_ACCEPTED,
	RETRY_LATER,      /* the same request may succeed later */
	RETRY_DENIED,     /* the request may succeed with another token */
	RETRY_REFUSED,    /* the request will never succeed */
	RETRY_OTHER_PATH, /* the server may take it at its other path */
};

/* For a status that is not the protocol's success. */
enum retry_verdict retry_http(int status);
enum retry_verdict retry_grpc(int status);

/* Nanoseconds until the next attempt after `failures` (1 and more) in a row. random: any number. */
uint64_t retry_delay_ns(unsigned int failures, uint64_t random, uint64_t asked_ns);

/* "120" or an HTTP date (RFC 9110, 10.2.3), as nanoseconds from now; 0 for anything else. */
uint64_t retry_after_ns(const char *value, int64_t now_unix_ns);

#endif
