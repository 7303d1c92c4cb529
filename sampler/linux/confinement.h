/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes from the calling process what a parser of hostile bytes does not need, for ever: other files than
 * those that are named, memory shared with other processes, root, capabilities, new privileges, and all
 * system calls but those that read and write what is open and take memory. For a forked child with one
 * thread.
 */
#ifndef SAMPLER_LINUX_CONFINEMENT_H
#define SAMPLER_LINUX_CONFINEMENT_H

/*
 * Keeps the descriptors `one` and `other` alone, and ends the process after that much CPU time, or when the
 * thread that forked it ends. 0 or -errno: then the process must not go on. Where the kernel has no seccomp
 * filters, or a sanitizer's runtime is in the program, system calls are not filtered.
 */
int confinement_enter(int one, int other, unsigned int cpu_seconds);

/* The last part of that alone. The process must have PR_SET_NO_NEW_PRIVS. */
int confinement_filter_calls(void);

#endif
