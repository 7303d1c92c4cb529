/* SPDX-License-Identifier: Apache-2.0 */
/* What is decided for the processes of one image alone; without one the session's settings hold. */
#ifndef SAMPLER_TARGET_TARGET_PLAN_H
#define SAMPLER_TARGET_TARGET_PLAN_H

#include <stdint.h>
#include <sys/types.h>

enum { TARGET_SERVICE_BYTES = 129, TARGET_OWNER_BYTES = 128, TARGET_LABELS_BYTES = 2048 };

struct target_plan {
	uint64_t interval_ns;               /* between periodic snapshots: see snapshot/schedule.h */
	uint64_t period_bytes;              /* as configured; 0: samples_per_hour is */
	uint64_t samples_per_hour;          /* the period follows from it; 0: it does not */
	uint64_t keep;                      /* numbered snapshots, the newest; 0: all */
	uint64_t decided;                   /* for whoever has made the plan: by which round of decisions */
	uid_t uid;                          /* whose process it is */
	char service[TARGET_SERVICE_BYTES]; /* as it names a folder */
	char owner[TARGET_OWNER_BYTES];     /* who has chosen that name; "": the configuration */
	char account[TARGET_OWNER_BYTES];   /* whose share it takes of what all have in common */
	char labels[TARGET_LABELS_BYTES];   /* a comment of each profile: "labels: ..."; "" none */
};

#endif
