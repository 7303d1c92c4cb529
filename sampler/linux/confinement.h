/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes from the calling process, for ever, what a parser of hostile bytes does not need: all files but two
 * descriptors, memory shared with other processes, root, capabilities, new privileges, and most system calls:
 * it may only read and write open files and allocate memory. For a forked child with one thread.
 */
#ifndef SAMPLER_LINUX_CONFINEMENT_H
#define SAMPLER_LINUX_CONFINEMENT_H

#include <stdbool.h>

/* Closes all descriptors from `first` to `last`, both included. Uses close_range(2), or closes one after
 * another if the kernel has no such call (before Linux 5.9) or a filter refuses it. */
void confinement_close_range(unsigned int first, unsigned int last);

/*
 * Keeps only the descriptors `one` and `other`. Ends the process after `cpu_seconds` of CPU time, or when the
 * thread that forked it ends. Returns 0, or -errno, after which the process must not go on. System calls are
 * not filtered if the kernel has no seccomp filters, or if a sanitizer's runtime is in the program.
 */
int confinement_enter(int one, int other, unsigned int cpu_seconds);

/* From confinement_enter() on, openat(2) raises SIGSYS, whose handler gives the result, instead of failing
 * with EPERM. False: calls are not filtered here. */
bool confinement_trap_opens(void);

/* Only filters the system calls. The process must have PR_SET_NO_NEW_PRIVS. */
int confinement_filter_calls(void);

#endif
