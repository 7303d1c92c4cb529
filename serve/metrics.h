/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics: Prometheus' text format 0.0.4, per service, so that there are not more series than services. */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include "sampler/control/control_list.h"

#include <stdio.h>

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* One process; strings are borrowed. */
struct metrics_process {
	const char *service;
	const struct control_process *listed;
};

struct metrics_server {
	uint64_t requests, refused;
	uint64_t snapshot_ns; /* how long the last one took; 0: none has been made */
	unsigned int waits;
};

/* Pure. 0 or -ENOMEM. lists: of each sampler, for what they say of themselves. */
int metrics_write(FILE *out, const struct metrics_process *processes, size_t count,
    const struct control_list *const *lists, size_t list_count, const struct metrics_server *server);

/* A label's value, escaped as the format wants it. */
void metrics_write_label(FILE *out, const char *value);

#endif
