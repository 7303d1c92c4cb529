/* SPDX-License-Identifier: Apache-2.0 */
/* A user may give the pid of `heaptap record` (a shell's $!) in place of the program that it started. */
#ifndef SAMPLER_DOCTOR_DOCTOR_SELF_H
#define SAMPLER_DOCTOR_DOCTOR_SELF_H

#include <stdbool.h>
#include <sys/types.h>

struct findings;

/* Is the process heaptap's own (the front or the sampler), and not a target? Then it says so, and which
 * process may be meant. */
bool doctor_self_is(struct findings *findings, pid_t pid);

#endif
