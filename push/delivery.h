/* SPDX-License-Identifier: Apache-2.0 */
/* One profile made ready for a target: its labels, and its bytes within the limits of the server, with what
 * was allocated as a difference. */
#ifndef PUSH_DELIVERY_H
#define PUSH_DELIVERY_H

#include "pprof/model/labels.h"
#include "push/fit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct since;
struct origin;
struct profile;
struct target;

enum { DELIVERY_UUID_BYTES = 37 };

struct delivery_part {
	uint8_t *profile; /* profile.proto */
	uint8_t *packed;  /* the same, gzip */
	size_t profile_bytes, packed_bytes;
};

struct delivery {
	char series[64];  /* __name__: "memory" */
	char session[17]; /* __session_id__, 16 hexadecimal digits; "" where the process is not known */
	char uuid[DELIVERY_UUID_BYTES]; /* of the profile: the same whenever it is computed */
	struct labels labels;
	int64_t start_ns, end_ns; /* the window of what was allocated; equal if it is not known */
	/* Parca takes a duration for the mark of a difference, so what is in use and what was allocated are
	 * two parts. Other servers get one part. 0 parts: the target wants nothing of the profile. */
	struct delivery_part parts[2];
	size_t part_count;
	struct fitted fitted; /* of the parts together; bytes is not set */
	int64_t fallen;       /* since_values() */
};

/* The number of the process that a profile is of, while the process executes one program; the same whenever
 * it is computed. Profiles of an event have another number. 0 if the profile does not tell its process. */
uint64_t delivery_process(const struct origin *origin);

enum delivery_age { DELIVERY_IN_TIME, DELIVERY_TOO_OLD, DELIVERY_TOO_NEW };

/* Would the target refuse a profile of this time? */
enum delivery_age delivery_age(const struct target *target, int64_t time_ns, int64_t now_ns);

/* base: the profile of the same process that the target accepted last. 0 or -errno; delivery_fini() is due in
 * any case. */
int delivery_make(struct delivery *delivery, const struct target *target, const struct profile *profile,
    const struct origin *origin, const struct since *base);
void delivery_fini(struct delivery *delivery);

/* What was cut to the target's limits, for one line; "" if nothing was. */
void delivery_cuts(const struct delivery *delivery, char *text, size_t text_bytes);

#endif
