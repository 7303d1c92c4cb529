/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that start containers. The programs in a container get an environment without our library, and
 * pids in a namespace of their own, by which they would not find us. A profile of the starter alone would
 * surprise a user who asked for the container's. */
#ifndef SAMPLER_BOOKS_CONTAINER_STARTER_H
#define SAMPLER_BOOKS_CONTAINER_STARTER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether a program of this name, with these arguments (as in /proc/PID/cmdline: a NUL behind each),
 * starts a container without our library. Not if an argument contains LD_PRELOAD: the user passes it on.
 * Pure. */
bool container_starter_is(const char *name, const char *arguments, size_t bytes);

/* Warns the user if the process is such a program. Returns whether it is. */
bool container_starter_say(pid_t pid);

#endif
