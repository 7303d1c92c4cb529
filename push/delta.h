/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was allocated since the profile that a server accepted last.
 *
 * alloc_* of a snapshot counts from the start of its process. Servers add up what they get, so each profile
 * is sent with the difference to the last one that the target has acknowledged; what could not be delivered
 * is so contained in the next one, and nothing counts twice. A table of totals by stack is all that must be
 * kept of the accepted profile; it is a file of the spool, written by delta_encode().
 */
#ifndef PUSH_DELTA_H
#define PUSH_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct origin;
struct profile;

enum {
	DELTA_TYPES_MAX = 4,
	DELTA_TYPE_BYTES = 32,
	DELTA_ENDED_BYTES = 40 + DELTA_TYPES_MAX * DELTA_TYPE_BYTES, /* of a table without rows, encoded */
};

struct delta_row {
	uint64_t key; /* stack_key_lasting() */
	int64_t values[DELTA_TYPES_MAX];
};

/* All zero: nothing has been accepted yet, so everything since the process started is new. */
struct delta_table {
	int64_t time_ns; /* of the profile */
	bool unknown;    /* something was accepted, but how much is not known any more */
	size_t type_count;
	char types[DELTA_TYPES_MAX][DELTA_TYPE_BYTES]; /* "alloc_space" */
	struct delta_row *rows;                        /* ascending by key */
	size_t count;
};

void delta_table_fini(struct delta_table *table);

/* Does this sample type of this profile count from the start of the process? */
bool delta_is_total(const struct origin *origin, const char *type);

/* The totals of a profile. 0 or -ENOMEM. */
int delta_table_make(struct delta_table *table, const struct profile *profile, const struct origin *origin);

/*
 * The values to send: a matrix, samples by sample types, that the caller frees. Columns of totals are
 * reduced by what `base` has; where base is unknown they are 0. *fallen: the sum of what base has and the
 * profile has not under the same stack, over all columns of totals; 0 unless stacks are named differently
 * now, as after a restart of the daemon, which leaves the older ones without names. What has fallen is
 * taken from other stacks, the nameless first, then those that base has not, so that a server's sum is the
 * process' total. NULL: out of memory.
 */
int64_t *delta_values(const struct profile *profile, const struct origin *origin,
    const struct delta_table *base, int64_t *fallen);

/* The table as bytes; *bytes is the caller's. 0 or -ENOMEM. */
int delta_encode(const struct delta_table *table, uint8_t **bytes, size_t *length);

/* Of a file that may hold anything. 0, -ENOMEM, or -EBADMSG. */
int delta_decode(const uint8_t *bytes, size_t length, struct delta_table *table);

#endif
