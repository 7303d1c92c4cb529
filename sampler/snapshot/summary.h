/* SPDX-License-Identifier: Apache-2.0 */
/* The summary on stderr when a process has ended: one block for each process. */
#ifndef SAMPLER_SNAPSHOT_SUMMARY_H
#define SAMPLER_SNAPSHOT_SUMMARY_H

#include "sampler/snapshot/heap_snapshot.h"

#include <stddef.h>

/* "12.5 MiB" */
const char *summary_bytes(double bytes, char *text, size_t text_bytes);

enum { SUMMARY_END_BYTES = TARGET_UNSEEN_BYTES }; /* of the longest phrase */

/* How a process ended, as a phrase: "exited with status 0", "was killed by SIGKILL". */
void summary_end(const struct target *target, char *text, size_t text_bytes);

/* error: of writing the profile, 0 or -errno. */
void summary_print(const struct heap_snapshot *snapshot, int error);

#endif
