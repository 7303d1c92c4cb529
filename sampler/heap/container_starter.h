/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that start others in containers. What they start gets an environment of its own, without our
 * library, and numbers in a pid namespace of its own, by which it would not find us: a profile of the starter
 * alone would surprise whoever asked for the container's.
 */
#ifndef SAMPLER_HEAP_CONTAINER_STARTER_H
#define SAMPLER_HEAP_CONTAINER_STARTER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Does a program of this name, with these arguments (as in /proc/PID/cmdline: a NUL behind each), start one
 * that gets nothing of us? Not if an argument speaks of LD_PRELOAD: the user passes it on. Pure. */
bool container_starter_is(const char *name, const char *arguments, size_t bytes);

/* Says so, if the process is one. Returns whether it did. */
bool container_starter_say(pid_t pid);

#endif
