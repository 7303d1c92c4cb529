/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of threads, as the profiles of a session know them together. A profile has the name of a thread
 * only if the thread was seen alive: a child does not know its parent's threads, whose blocks it inherits,
 * and an early snapshot may have a name that the last one has not. That must not make two rows of a thread.
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
