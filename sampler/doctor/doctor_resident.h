/* SPDX-License-Identifier: Apache-2.0 */
/* What the resident memory of a process consists of, as far as it can be known without samples. */
#ifndef SAMPLER_DOCTOR_DOCTOR_RESIDENT_H
#define SAMPLER_DOCTOR_DOCTOR_RESIDENT_H

#include "sampler/doctor/finding.h"

#include <sys/types.h>

void doctor_resident_say(struct findings *findings, pid_t pid);

#endif
