/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an exchange that is about /debug/pprof. */
#ifndef SERVE_EXCHANGE_DEBUG_H
#define SERVE_EXCHANGE_DEBUG_H

struct exchange;

/* The catalog is ready, and the plan is made. */
void exchange_debug(struct exchange *exchange);

/* `seconds` are over. */
void exchange_debug_wake(struct exchange *exchange);

#endif
