/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which running processes have our library, and who samples them. Only hints, for messages and completion:
 * what is read here belongs to the processes, which may change it.
 */
#ifndef SAMPLER_LOADER_PROFILED_H
#define SAMPLER_LOADER_PROFILED_H

#include <stdbool.h>
#include <sys/types.h>

enum { PROFILED_NAME_BYTES = 64 };

/* The pid of the sampler that the process' environment names; 0: none in its first 256 KiB, or it cannot be
 * read. */
pid_t profiled_sampler(pid_t pid);

/* Has it mapped our library? 1 or 0; -errno: it has ended, or its maps are not for us to read. */
int profiled_has_library(pid_t pid);

/*
 * Calls `visit` for each process that has mapped our library, in the order of the pids, until it returns
 * something other than 0; returns that value or 0. `name` can be printed on a terminal. sampled: its
 * environment names a sampler that lives.
 */
int profiled_each(int (*visit)(void *context, pid_t pid, const char *name, bool sampled), void *context);

#endif
