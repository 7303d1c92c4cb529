/* SPDX-License-Identifier: Apache-2.0 */
/* `heaptap status [PID | SERVICE]...`: asks the daemon for its list, and shows it. */
#ifndef SAMPLER_CMD_STATUS_STATUS_H
#define SAMPLER_CMD_STATUS_STATUS_H

#include "pprof/store/spool_files.h"
#include "sampler/core/control_list.h"

#include <stdint.h>
#include <stdio.h>

struct options;

/* Returns the exit status: 0, or 1 if no daemon answers, or if it knows none of the processes that are
 * named. */
int status_run(struct options *options);

/*
 * The JSON of `heaptap status --json`:
 *
 *	{"daemon": {pid, since, cpu_seconds, rss_bytes, disk_bytes},
 *	 "processes": [{pid, service, exe, comm, container_id, since, profiled, reason, inuse_bytes,
 *	     inuse_bytes_error, inuse_objects, rss_bytes, growth, growth_bytes, growth_bytes_error,
 *	     growth_since, growth_until, growth_significant, growth_bytes_per_hour,
 *	     growth_bytes_per_hour_error, samples, lost: {cause: n}, backend, labels: {}}],
 *	 "push": [{name, sent, retried, rejected, dropped, given_up, passed_over, resent, denied,
 *	     spool_profiles, spool_bytes, oldest_seconds}]}
 *
 * Times are in UTC, as in RFC 3339. A value that is not known is null; growth is "" then. growth_significant
 * is true if growth is "grows". Members may be added, but none is ever renamed. `push` has the targets of the
 * user's own `heaptap push`, or of root's. oldest_seconds is null if no profile waits.
 */
void status_write_json(
    FILE *out, const struct control_list *list, const struct spool_list *spools, int64_t now_unix_ns);

#endif
