/* SPDX-License-Identifier: Apache-2.0 */
/* Where an exchange goes: to the part that its route is about. */
#ifndef SERVE_EXCHANGE_ROUTE_H
#define SERVE_EXCHANGE_ROUTE_H

struct exchange;

/* Starts it. finished() is called once, from here or later. */
void exchange_route_begin(struct exchange *exchange);

/* For one that has a wake_ns, when that is over. */
void exchange_route_wake(struct exchange *exchange);

#endif
