/* SPDX-License-Identifier: Apache-2.0 */
/* The rules about samples. */
#ifndef PPROF_CHECK_CHECK_SAMPLES_H
#define PPROF_CHECK_CHECK_SAMPLES_H

struct checker;

/* Call after checking the tables and the sample types. */
void check_samples(struct checker *c);

#endif
