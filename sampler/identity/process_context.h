/* SPDX-License-Identifier: Apache-2.0 */
/* The process context of OpenTelemetry (declared_names.h), out of a process's memory. */
#ifndef SAMPLER_IDENTITY_PROCESS_CONTEXT_H
#define SAMPLER_IDENTITY_PROCESS_CONTEXT_H

#include "sampler/identity/declared_names.h"

#include <sys/types.h>

/* Adds what the process has published there, if it has and can be read in time (memory_reader.h). */
void process_context_read(struct declared_names *names, pid_t pid);

#endif
