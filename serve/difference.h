/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on profiles of one process. Pure. */
#ifndef SERVE_DIFFERENCE_H
#define SERVE_DIFFERENCE_H

#include <stdbool.h>
#include <stdint.h>

struct profile;

/*
 * first and last are of one process, in this order. With `totals_only` the result is what came since `first`
 * (pprof/analysis/since.h), and what is in use stays that of `last`. Otherwise all values are last minus
 * first, as Go's handlers answer seconds=N. The time is that of `last`, the duration what lies between. With
 * `totals_only`, first may be NULL: nothing was allocated before; or, if `unknown`, how much is not known. 0
 * with *out the caller's; -ENOMEM, -EOVERFLOW, -ENODATA.
 */
int difference_make(
    struct profile *first, struct profile *last, bool totals_only, bool unknown, struct profile **out);

#endif
