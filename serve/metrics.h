/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Prometheus reads.
 *
 * /metrics has the text format 0.0.4, with a series for each service, not for each process. /sd is for
 * http_sd of Prometheus and of Alloy (prometheus.io/docs/prometheus/latest/http_sd): each process is a target
 * at our own address, below /pid/PID.
 */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include "pprof/store/spool_files.h"
#include "sampler/core/control_list.h"
#include "serve/catalog.h"
#include "serve/counters.h"

#include <stdio.h>

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* One process; strings are borrowed. */
struct metrics_process {
	const char *service;
	const struct control_process *listed;
};

struct metrics_server {
	uint64_t requests, refused, cut_off;
	uint64_t snapshot_ns; /* how long the last snapshot took; 0 if none has been made */
	unsigned int waits;
	uint64_t left_out; /* rows of lists that the broker left out, in the last look */
};

/* All that /metrics shows. */
struct metrics {
	const struct metrics_process *processes;
	size_t process_count;
	const struct control_list *const *lists; /* of all samplers */
	size_t list_count;
	const struct counters *counters; /* of services and samplers, also of ended ones */
	const struct spool_list *spools; /* of the targets of heaptap push */
	int64_t now_ns;                  /* since 1970 */
	struct metrics_server server;
};

/* Pure. 0 or -ENOMEM. */
int metrics_write(FILE *out, const struct metrics *metrics);

/* Pure: the targets of /sd. address: on which clients reach us. Processes that do not run are left out. */
void metrics_write_targets(
    FILE *out, const struct catalog_process *processes, size_t count, const char *address);

#endif
