/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of threads, collected from all profiles of a session. A profile has the name of a thread only if
 * the sampler saw the thread alive. So a child does not have the names of its parent's threads, though it
 * inherits their blocks, and the last snapshot may lack a name that an early snapshot has. Without the
 * collected names a thread would have two rows.
 */
#ifndef PPROF_ANALYSIS_THREAD_NAMES_H
#define PPROF_ANALYSIS_THREAD_NAMES_H

#include "pprof/analysis/late_names.h"

#include <stddef.h>

struct profile;

/* Takes the names from a profile's labels; of several names of a thread the newest counts. 0 or -ENOMEM. */
int thread_names_learn(struct late_names *names, const struct profile *profile);

/* The name of a sample's thread: its own label, else what was learned; NULL: unknown. session: of its
 * profile, as origin.h has it. */
const char *thread_names_of(
    const struct late_names *names, const struct profile *profile, const char *session, size_t sample);

#endif
