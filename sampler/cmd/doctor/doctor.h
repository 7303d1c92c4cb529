/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap doctor [PID | PROGRAM]: tries what this kernel, user and container allow, and finds what heaptap
 * would not see of a program or a process. Each problem is reported with the command that fixes it.
 */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_H

struct options;

/* The command. Exit status 0; 1 if something cannot be seen at all, or cannot be examined. */
int doctor_run(struct options *options);

#endif
