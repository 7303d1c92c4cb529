/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the processes of one program run. Without a plan the settings of the session hold. */
#ifndef SAMPLER_INTAKE_TARGET_PLAN_H
#define SAMPLER_INTAKE_TARGET_PLAN_H

#include <stdint.h>
#include <sys/types.h>

enum { TARGET_SERVICE_BYTES = 129, TARGET_OWNER_BYTES = 128, TARGET_LABELS_BYTES = 2048 };

struct target_plan {
	uint64_t interval_ns;               /* between periodic snapshots: see write/interval.h */
	uint64_t period_bytes;              /* as configured; 0: samples_per_hour is */
	uint64_t samples_per_hour;          /* the period follows from it; 0: it does not */
	uint64_t keep;                      /* numbered snapshots, the newest; 0: all */
	uint64_t decided;                   /* the round of decisions that made the plan, for its maker */
	uid_t uid;                          /* the user of the process */
	char service[TARGET_SERVICE_BYTES]; /* the service, as a name of a folder */
	char owner[TARGET_OWNER_BYTES];     /* the user who chose that name; "": the configuration */
	char account[TARGET_OWNER_BYTES];   /* whose share of memory and CPU time it uses */
	char labels[TARGET_LABELS_BYTES];   /* a comment of each profile: "labels: ..."; "" none */
};

#endif
