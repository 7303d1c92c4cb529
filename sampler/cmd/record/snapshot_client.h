/* SPDX-License-Identifier: Apache-2.0 */
/* `heaptap snapshot PID` and `heaptap snapshot --all`: requests snapshots from the samplers, and waits for
 * the files. */
#ifndef SAMPLER_CMD_RECORD_SNAPSHOT_CLIENT_H
#define SAMPLER_CMD_RECORD_SNAPSHOT_CLIENT_H

struct options;

/* Prints the path of each profile on stdout once it is complete. Returns the exit status: 0 if there was
 * at least one profile and none failed. */
int snapshot_client_run(struct options *options);

#endif
