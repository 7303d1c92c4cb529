/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap doctor [PID | PROGRAM]: what this kernel, user and container allow, found by trying, and what of a
 * program or of a running process would not be seen; each complaint with the line that fixes it.
 */
#ifndef SAMPLER_DOCTOR_DOCTOR_H
#define SAMPLER_DOCTOR_DOCTOR_H

struct options;

/* The command. Exit status 0; 1 if something is not seen at all, or cannot be said. */
int doctor_run(struct options *options);

#endif
