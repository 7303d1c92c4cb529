/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says of a running process and of all that it has mapped. */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_PROCESS_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_PROCESS_H

#include <sys/types.h>

struct findings;

/* Returns 0, or -errno after a line that says why the process cannot be examined. */
int doctor_process_examine(struct findings *findings, pid_t pid);

/* A process' effective capabilities and its seccomp mode; left unchanged where they are unknown. */
void doctor_process_capabilities(pid_t pid, unsigned long long *capabilities, int *seccomp);

#endif
