/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells whether two profiles are the same measurement: copies of one file, or one before and after its
 * addresses got names. Pure.
 */
#ifndef PPROF_ANALYSIS_FINGERPRINT_H
#define PPROF_ANALYSIS_FINGERPRINT_H

#include <stdint.h>

struct profile;

/*
 * Of all that is in the profile but names: types, times, comments, and each sample with its values, labels
 * and the addresses of its stack (where there is no address, function and line). Equal for equal profiles,
 * within this process only: the hash is seeded, so that a hostile file cannot pass for another. Of long texts
 * only the beginning counts.
 */
uint64_t fingerprint_make(const struct profile *profile);

/* Of one comment: what profiles of one origin have in common. */
uint64_t fingerprint_text(const char *text);

/* How many addresses have names: of two profiles with the same fingerprint, the one with more says more. */
uint64_t fingerprint_names(const struct profile *profile);

#endif
