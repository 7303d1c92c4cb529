/* SPDX-License-Identifier: Apache-2.0 */
/* The time, in nanoseconds. */
#ifndef PUSH_INSTANT_H
#define PUSH_INSTANT_H

#include <stdint.h>

/* For waiting: never goes back. */
uint64_t instant_now_ns(void);

/* Since 1970: what profiles have. */
int64_t instant_unix_ns(void);

#endif
