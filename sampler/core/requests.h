/* SPDX-License-Identifier: Apache-2.0 */
/* What clients of the control socket ask of a sampler: its list, snapshots, profiles as shared memory. */
#ifndef SAMPLER_CORE_REQUESTS_H
#define SAMPLER_CORE_REQUESTS_H

#include "sampler/core/core.h"

/* Serves clients on listen_fd, a bound socket that is taken over, also in an error. Clients are root, our own
 * user and members of `group`. cpu_file_prefix: begins the paths of files that CPU profiles are written to.
 * 0 or -errno. */
int requests_open(struct core *core, int listen_fd, gid_t group, const char *cpu_file_prefix);

/* Also without a requests_open(). */
void requests_close(struct core *core);

/* Requests a snapshot of every process. Returns how many will be written. */
uint32_t requests_want_all(struct core *core, const char *cause);

#endif
