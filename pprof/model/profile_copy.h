/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a profile without its samples, for another profile with samples of the same stacks. */
#ifndef PPROF_MODEL_PROFILE_COPY_H
#define PPROF_MODEL_PROFILE_COPY_H

struct profile;

/* Types, period, times and comments. */
void profile_copy_header(struct profile *to, const struct profile *from);

/* Copies mappings and functions (and with _tables locations) into a profile that has none. Ids are given out
 * in the order of adding, so they stay what they are in tables without equal entries. See profile_error(). */
void profile_copy_functions(struct profile *to, const struct profile *from);
void profile_copy_tables(struct profile *to, const struct profile *from);

#endif
