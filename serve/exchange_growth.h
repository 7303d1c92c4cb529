/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/growth: of a process over its snapshots, of a service between moments that its processes share. */
#ifndef SERVE_EXCHANGE_GROWTH_H
#define SERVE_EXCHANGE_GROWTH_H

#include "serve/exchange.h"

void exchange_growth(struct exchange *exchange);

#endif
