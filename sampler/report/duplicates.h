/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of many profiles tell nothing that others do not: copies, the raw twin of one that `heaptap
 * symbolize` wrote, and sums (of `heaptap merge`) of processes that are there themselves. Pure.
 */
#ifndef SAMPLER_REPORT_DUPLICATES_H
#define SAMPLER_REPORT_DUPLICATES_H

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

/* What a profile is known by. */
struct duplicates_facts {
	uint64_t fingerprint, names; /* see pprof/analysis/fingerprint.h */
	bool timed;                  /* without a time, equal profiles may be of two processes */
	bool is_sum;
	uint64_t *processes; /* hashes of the comments that name them */
	size_t process_count;
	uint64_t
	    kind;     /* of the heap, or a hash of its event's name: sums of one kind have no other in them */
	size_t group; /* duplicates are looked for within each */
};

struct duplicates_verdict {
	enum duplicates_kind kind;
	size_t other;
	bool overlaps; /* some processes of this sum, but not all, are there themselves */
};

/* The rest of `facts` is read from the profile; the caller ends it with duplicates_facts_fini(). -ENOMEM. */
int duplicates_facts_read(struct duplicates_facts *facts, const struct profile *profile);
void duplicates_facts_fini(struct duplicates_facts *facts);

/* One verdict for each of `count` profiles. sums: also look for DUPLICATES_SUM. 0 or -ENOMEM. */
int duplicates_find(
    const struct duplicates_facts *facts, size_t count, bool sums, struct duplicates_verdict *verdicts);

#endif
