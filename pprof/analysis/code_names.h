/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of functions that a program makes at run time, collected from all profiles of a process. A
 * program may publish such names late (`jcmd PID Compiler.perfmap`, for example). Then an early snapshot has
 * [jit] at an address at which a later snapshot has a name. Without the collected names a function would have
 * two rows.
 *
 * Limit: if other code has taken the place meanwhile, the early sample gets the name of the later code. The
 * sampler has the same limit: it names the stack of a block when it writes a snapshot.
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
