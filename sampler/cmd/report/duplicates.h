/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of many profiles tell nothing that others do not: copies, the raw twin of a profile that `heaptap
 * symbolize` wrote, and sums (of `heaptap merge`) of processes that are there themselves. Pure.
 */
#ifndef SAMPLER_CMD_REPORT_DUPLICATES_H
#define SAMPLER_CMD_REPORT_DUPLICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

enum duplicates_kind {
	DUPLICATES_NONE,
	DUPLICATES_COPY, /* `other` is the same, with as many names */
	DUPLICATES_RAW,  /* `other` is the same, with more names */
	DUPLICATES_SUM,  /* every process in it is there itself, or in another sum */
};

/* What a profile is known by. Hashes are seeded: a hostile file cannot pass for another. */
struct duplicates_facts {
	uint64_t measurement; /* hash of all but names: types, times, comments, and what each sample counts */
	uint64_t names;       /* addresses that have a name */
	bool timed;           /* without a time, equal profiles may be of two processes */
	bool is_sum;
	uint64_t *processes; /* hashes of the comments that name its processes, of its event and its group */
	size_t process_count;
	size_t group; /* duplicates are looked for within each */
};

struct duplicates_verdict {
	enum duplicates_kind kind;
	size_t other;
	bool overlaps; /* some processes of this sum, but not all, are there themselves */
};

/* event: "" for a profile of the heap. The caller ends it with duplicates_facts_fini(). 0 or -ENOMEM. */
int duplicates_facts_read(struct duplicates_facts *facts, const struct profile *profile, const char *event,
    bool is_sum, size_t group);
void duplicates_facts_fini(struct duplicates_facts *facts);

/* One verdict for each of `count` profiles. sums: also look for DUPLICATES_SUM. 0 or -ENOMEM. */
int duplicates_find(
    const struct duplicates_facts *facts, size_t count, bool sums, struct duplicates_verdict *verdicts);

#endif
