/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of `heaptap status --json`:
 *
 *	{"daemon": {pid, since, cpu_seconds, rss_bytes, disk_bytes},
 *	 "processes": [{pid, service, exe, comm, container_id, since, profiled, reason, inuse_bytes,
 *	     inuse_bytes_error, inuse_objects, rss_bytes, growth_bytes_per_hour, growth_significant, samples,
 *	     lost: {cause: n}, backend, labels: {}}]}
 *
 * `since` is a time in UTC, as RFC 3339 writes it; what is not known is null. Members may be added, none is
 * ever renamed.
 */
#ifndef SAMPLER_STATUS_STATUS_JSON_H
#define SAMPLER_STATUS_STATUS_JSON_H

#include "sampler/control/control_list.h"

#include <stdio.h>

void status_json_write(FILE *out, const struct control_list *list);

#endif
