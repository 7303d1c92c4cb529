/* SPDX-License-Identifier: Apache-2.0 */
/* What this kernel, user and container allow, and what the doctor advises. */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_MACHINE_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_MACHINE_H

#include "sampler/perf/features.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct findings;

/* name: of a process to be examined, by its id, or of a program; NULL: none. */
void doctor_machine_examine(struct findings *findings, const char *name);

/* ---- what is known of kernels and capabilities: pure functions */

/* The oldest kernel that heaptap is written for. Events for uprobes came with 4.17, memory that is empty in a
 * forked child with 4.14. */
#define DOCTOR_MACHINE_OLDEST "4.18"

/* Is a kernel of this release (uname -r) new enough? True if its number cannot be read. */
bool doctor_machine_new_enough(const char *release);

/* ", CAP_SYS_ADMIN, CAP_PERFMON": the capabilities of the set (CapEff of proc(5)) that matter here. */
void doctor_machine_describe_capabilities(uint64_t capabilities, char *text, size_t bytes);

/* What to do if uprobes are refused, and if breakpoints are. paranoid: kernel.perf_event_paranoid. */
const char *doctor_machine_uprobe_remedy(uint64_t capabilities, enum features_obstacle obstacle);
const char *doctor_machine_breakpoint_remedy(enum features_obstacle obstacle, long paranoid);

#endif
