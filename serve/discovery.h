/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /sd: what Prometheus' and Alloy's http_sd read (prometheus.io/docs/prometheus/latest/http_sd). Each process
 * is a target at our own address, below its path.
 */
#ifndef SERVE_DISCOVERY_H
#define SERVE_DISCOVERY_H

#include "serve/catalog.h"

#include <stdio.h>

/* Pure. address: at which clients reach us. Processes that do not run are left out. */
void discovery_write(FILE *out, const struct catalog_process *processes, size_t count, const char *address);

#endif
