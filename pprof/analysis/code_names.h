/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of functions that are made at run time, as the profiles of a process know them together. A
 * snapshot from before the names were there (`jcmd PID Compiler.perfmap`, for example) has [jit] at an
 * address at which a later one has a name. That must not make two rows of a function.
 * If other code has taken the place meanwhile, the name is the later code's. The sampler's own snapshots have
 * the same limit: they name a block's stack by what is known when they are written.
 */
#ifndef PPROF_ANALYSIS_CODE_NAMES_H
#define PPROF_ANALYSIS_CODE_NAMES_H

#include "pprof/analysis/late_names.h"

#include <stdint.h>

struct profile;

/* Takes the names at addresses outside of files; of several names the newest counts. 0 or -ENOMEM. */
int code_names_learn(struct late_names *names, const struct profile *profile);

/* The number of the process that a profile is of, for code_names_of(). */
uint64_t code_names_process(const struct profile *profile);

/* The name that was learned for a location that the profile calls [jit]. NULL if the location has another
 * name, or none was learned. */
const char *code_names_of(
    const struct late_names *names, const struct profile *profile, uint64_t process, uint32_t location);

#endif
