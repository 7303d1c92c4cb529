/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are collected from several profiles, because a profile may lack a name that another one has.
 * Without the collected names a thread or a function would have two rows. Of several names the newest
 * profile's counts.
 *
 *   threads   A profile has the name of a thread only if the sampler saw the thread alive. So a child does
 *             not have the names of its parent's threads, though it inherits their blocks, and the last
 *             snapshot may lack a name that an early snapshot has. Take the names of all profiles of a
 *             session.
 *   code      A program may publish late the names of functions that it makes at run time (`jcmd PID
 *             Compiler.perfmap`, for example). Then an early snapshot has [jit] at an address at which a
 *             later snapshot has a name. Take the names of all profiles of a process.
 *
 * Limit: if other code has taken the place meanwhile, the early sample gets the name of the later code. The
 * sampler has the same limit: it names the stack of a block when it writes a snapshot.
 */
#ifndef PPROF_ANALYSIS_LATE_NAMES_H
#define PPROF_ANALYSIS_LATE_NAMES_H

#include "pprof/table/index.h"
#include "pprof/table/intern.h"

#include <stddef.h>
#include <stdint.h>

struct profile;

struct late_names_entry {
	uint64_t key; /* a hash of the thread, or of the place of the code */
	int64_t time_ns;
	uint32_t name; /* in `names` */
};

struct late_names {
	struct index index;
	struct intern names;
	struct late_names_entry *entries;
	size_t capacity;
	uint32_t count;
};

/* A struct late_names is all zero at first: it has no names. */
void late_names_fini(struct late_names *names);

size_t late_names_bytes(const struct late_names *names);

/* Takes the names of threads from a profile's labels. 0, -ENOMEM or -EOVERFLOW. */
int late_names_learn_threads(struct late_names *names, const struct profile *profile);

/* The name of a sample's thread: the sample's label, else the name that was learned. NULL: unknown. session:
 * `session` of the profile's struct origin (origin.h). Valid until late_names_fini(). */
const char *late_names_of_thread(
    const struct late_names *names, const struct profile *profile, const char *session, size_t sample);

/* Takes the names at addresses outside of files. 0, -ENOMEM or -EOVERFLOW. */
int late_names_learn_code(struct late_names *names, const struct profile *profile);

/* The number of the process that a profile is of, for late_names_of_code(). */
uint64_t late_names_process(const struct profile *profile);

/* The name that was learned for a location that the profile calls [jit]. NULL if the location has another
 * name, or none was learned. Valid until late_names_fini(). */
const char *late_names_of_code(
    const struct late_names *names, const struct profile *profile, uint64_t process, uint32_t location);

#endif
