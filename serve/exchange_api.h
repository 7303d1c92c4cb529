/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an exchange that is about /api/v1. */
#ifndef SERVE_EXCHANGE_API_H
#define SERVE_EXCHANGE_API_H

#include <stdbool.h>

struct exchange;

/* What needs no look at processes: the description, an unknown name, a snapshot without a token. True:
 * the reply
 * is there. */
bool exchange_api_is_static(struct exchange *exchange);

/* The catalog is ready. */
void exchange_api(struct exchange *exchange);

#endif
