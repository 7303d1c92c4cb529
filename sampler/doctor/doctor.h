/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap doctor [PID | PROGRAM]: what this kernel, user and container allow, found by trying, and what of a
 * program or of a running process would not be seen; each complaint with the line that mends it.
 */
#ifndef SAMPLER_DOCTOR_DOCTOR_H
#define SAMPLER_DOCTOR_DOCTOR_H

struct options;

/* The command. Exit status 0; 1 if something is not seen at all, or cannot be said. */
int doctor_run(struct options *options);

/* Lines of the examination, on standard output. `mend` NULL: nothing to be done. */
enum doctor_finding { DOCTOR_GOOD, DOCTOR_NOTE, DOCTOR_BAD };
void doctor_say(enum doctor_finding finding, const char *mend, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
