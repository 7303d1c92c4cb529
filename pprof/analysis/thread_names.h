/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of threads, as the profiles of a session know them together. A profile has the name of a thread
 * only if the thread was seen alive: a child does not know its parent's threads, whose blocks it inherits,
 * and an early snapshot may have a name that the last one has not. That must not make two rows of a thread.
 */
#ifndef PPROF_ANALYSIS_THREAD_NAMES_H
#define PPROF_ANALYSIS_THREAD_NAMES_H

#include "pprof/table/index.h"
#include "pprof/table/intern.h"

#include <stddef.h>
#include <stdint.h>

struct profile;

struct thread_names_entry {
	uint64_t key; /* hash of session and thread id */
	int64_t time_ns;
	uint32_t name; /* in `names` */
};

struct thread_names {
	struct index index;
	struct intern names;
	struct thread_names_entry *entries;
	size_t capacity;
	uint32_t count;
};

/* All zero knows none. */
void thread_names_fini(struct thread_names *names);
size_t thread_names_bytes(const struct thread_names *names);

/* Takes the names from a profile's labels; of several names of a thread the newest counts. 0 or -ENOMEM. */
int thread_names_learn(struct thread_names *names, const struct profile *profile);

/* The name of a sample's thread: its own label, else what was learned; NULL: unknown. session: of its
 * profile, as origin.h has it. */
const char *thread_names_of(
    const struct thread_names *names, const struct profile *profile, const char *session, size_t sample);

#endif
