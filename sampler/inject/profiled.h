/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which running processes have our library, and which sampler samples them. These are only hints, for
 * messages and completion: the processes own what is read here, and may change it.
 */
#ifndef SAMPLER_INJECT_PROFILED_H
#define SAMPLER_INJECT_PROFILED_H

#include <stdbool.h>
#include <sys/types.h>

enum { PROFILED_NAME_BYTES = 64 };

/* The pid of the sampler in the process' environment. 0 if the first 256 KiB name none, or cannot be read. */
pid_t profiled_sampler(pid_t pid);

/* Has the process mapped our library? Returns 1, 0, or -errno if it has ended or we may not read its maps. */
int profiled_has_library(pid_t pid);

/*
 * Calls `visit` for each process that has mapped our library, in the order of the pids, until `visit` returns
 * a value other than 0. Returns that value or 0. `name` is safe to print on a terminal. sampled: the sampler
 * in the process' environment lives.
 */
int profiled_each(int (*visit)(void *context, pid_t pid, const char *name, bool sampled), void *context);

#endif
