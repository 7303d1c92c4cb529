/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor looks at: a program's file, or a running process with all that it has mapped. */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_TARGET_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_TARGET_H

struct findings;

/* Reports what heaptap would not see. name: a number means a process, any other name a program, which is
 * found as a shell finds it. Returns 0, or -errno after a line that says why the target cannot be
 * examined. */
int doctor_target_examine(struct findings *findings, const char *name);

#endif
