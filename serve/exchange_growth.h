/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/growth: of a process over its snapshots, of a service between moments that its processes share. And
 * the other views of a service at such moments. */
#ifndef SERVE_EXCHANGE_GROWTH_H
#define SERVE_EXCHANGE_GROWTH_H

#include "serve/api_view.h"
#include "serve/exchange.h"

void exchange_growth(struct exchange *exchange);

/* "at-NANOSECONDS", as a service's time line has them, or "now". */
bool exchange_growth_moment(const char *id, int64_t *moment_ns);

/* The states of all processes that the route means, of each moment added up in a column. */
void exchange_growth_view(
    struct exchange *exchange, enum api_view view, const int64_t *moments_ns, size_t moment_count);

#endif
