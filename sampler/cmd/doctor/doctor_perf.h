/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor knows of kernels, capabilities and filters, and what it advises. Pure. */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_PERF_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_PERF_H

#include "sampler/perf/features.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The oldest kernel that heaptap is written for. Events for uprobes came with 4.17, memory that is empty in a
 * forked child with 4.14. */
#define DOCTOR_PERF_OLDEST "4.18"

/* Is a kernel of this release (uname -r) new enough? True if its number cannot be read. */
bool doctor_perf_new_enough(const char *release);

/* ", CAP_SYS_ADMIN, CAP_PERFMON": the capabilities of the set (CapEff of proc(5)) that matter here. */
void doctor_perf_describe_capabilities(uint64_t capabilities, char *text, size_t bytes);

/* What to do if uprobes are refused, and if breakpoints are. paranoid: kernel.perf_event_paranoid. */
const char *doctor_perf_uprobe_remedy(uint64_t capabilities, enum features_obstacle obstacle);
const char *doctor_perf_breakpoint_remedy(enum features_obstacle obstacle, long paranoid);

#endif
