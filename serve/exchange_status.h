/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an exchange that is about /metrics and /sd. */
#ifndef SERVE_EXCHANGE_STATUS_H
#define SERVE_EXCHANGE_STATUS_H

struct exchange;

/* The catalog is ready. */
void exchange_status(struct exchange *exchange);

#endif
