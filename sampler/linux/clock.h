/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks are in pprof/text/clock.h. This header goes when its users include that one. */
#ifndef SAMPLER_LINUX_CLOCK_H
#define SAMPLER_LINUX_CLOCK_H

#include "pprof/text/clock.h" /* IWYU pragma: export */

#endif
