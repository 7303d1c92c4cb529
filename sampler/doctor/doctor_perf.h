/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor knows of kernels, capabilities and filters, and what it advises. Pure. */
#ifndef SAMPLER_DOCTOR_DOCTOR_PERF_H
#define SAMPLER_DOCTOR_DOCTOR_PERF_H

#include "sampler/perf/features.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The oldest kernel that heaptap is written for: before it there is no event for uprobes (4.17), nor memory
 * that a forked child finds empty (4.14). */
#define DOCTOR_PERF_OLDEST "4.18"

/* Is a kernel of this release (uname -r) as new as that? One whose number cannot be read is. */
bool doctor_perf_new_enough(const char *release);

/* ", CAP_SYS_ADMIN, CAP_PERFMON": those of the set that matter here, CapEff of proc(5). */
void doctor_perf_describe_capabilities(uint64_t capabilities, char *text, size_t bytes);

/* What to do if uprobes are refused, and if breakpoints are. paranoid: kernel.perf_event_paranoid. */
const char *doctor_perf_uprobe_remedy(uint64_t capabilities, enum features_obstacle obstacle);
const char *doctor_perf_breakpoint_remedy(enum features_obstacle obstacle, long paranoid);

#endif
