/* SPDX-License-Identifier: Apache-2.0 */
/* The output of commands that write a profile. */
#ifndef SAMPLER_CMD_REPORT_PROFILE_OUTPUT_H
#define SAMPLER_CMD_REPORT_PROFILE_OUTPUT_H

struct profile;

/* Encodes, packs and publishes a profile (flags: enum file_flags). path NULL: to standard output. 0, or
 * -errno after a line that says why. */
int profile_output_write(const struct profile *profile, const char *path, unsigned int flags);

#endif
