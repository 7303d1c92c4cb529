/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/timeline: of a process, or of a service the sum of its processes. */
#ifndef SERVE_EXCHANGE_TIMELINE_H
#define SERVE_EXCHANGE_TIMELINE_H

struct exchange;

void exchange_timeline(struct exchange *exchange);

#endif
