/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/duplicates.h"

#include "pprof/analysis/fingerprint.h"
#include "pprof/profile/profile.h"
#include "pprof/table/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Comments of ours that name the process, and stay when profiles are merged. */
static bool names_process(const char *comment)
{
	return strncmp(comment, "session=", strlen("session=")) == 0;
}

int duplicates_facts_read(struct duplicates_facts *facts, const struct profile *profile)
{
	size_t comments = profile_comment_count(profile);

	*facts = (struct duplicates_facts){
	    .fingerprint = fingerprint_make(profile),
	    .names = fingerprint_names(profile),
	    .timed = profile_time_ns(profile) > 0,
	    .processes = calloc(comments + 1, sizeof(*facts->processes)),
	};
	if (!facts->processes)
		return -ENOMEM;
	for (size_t i = 0; i < comments; i++)
		if (names_process(profile_comment(profile, i)))
			facts->processes[facts->process_count++] =
			    fingerprint_text(profile_comment(profile, i));
	return 0;
}

void duplicates_facts_fini(struct duplicates_facts *facts)
{
	free(facts->processes);
	memset(facts, 0, sizeof(*facts));
}

/* ---- the same profile twice */

/* The file before `number` that is the same, and has no other before it; or `number`. */
static size_t first_of(const struct index *ix, const struct duplicates_facts *facts, size_t number)
{
	const struct duplicates_facts *own = &facts[number];
	uint32_t hash = index_fold(own->fingerprint), id;
	size_t cursor = index_start(hash);

	while (own->timed && (id = index_next(ix, hash, &cursor)))
		if (facts[id - 1].fingerprint == own->fingerprint && facts[id - 1].group == own->group)
			return id - 1;
	return number;
}

/* Until the end verdicts[first].other is the one with most names among those that are the same. */
static int find_copies(
    const struct duplicates_facts *facts, size_t count, size_t *firsts, struct duplicates_verdict *verdicts)
{
	struct index ix = {0};
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		size_t first = firsts[i] = first_of(&ix, facts, i);

		if (first == i)
			err = index_add(&ix, index_fold(facts[i].fingerprint), (uint32_t)i + 1);
		if (first == i || facts[i].names > facts[verdicts[first].other].names)
			verdicts[first].other = i;
	}
	for (size_t i = count; i-- > 0;) {
		size_t best = verdicts[firsts[i]].other;

		if (best != i)
			verdicts[i].kind =
			    facts[i].names < facts[best].names ? DUPLICATES_RAW : DUPLICATES_COPY;
		verdicts[i].other = best;
	}
	index_fini(&ix);
	return err;
}

/* ---- sums beside what they are made of */

/* A table of what processes are there: `known` grows to the number that is in it. */
struct processes {
	struct index ix;
	uint64_t *known;
	size_t count;
};

/* The same process in another group, or its events, are another one. */
static uint64_t process_of(const struct duplicates_facts *facts, size_t i)
{
	return index_mix(index_mix(facts->processes[i], facts->kind), facts->group);
}

static bool is_known(const struct processes *p, uint64_t process)
{
	uint32_t hash = index_fold(process), id;
	size_t cursor = index_start(hash);

	while ((id = index_next(&p->ix, hash, &cursor)))
		if (p->known[id - 1] == process)
			return true;
	return false;
}

static int processes_add(struct processes *p, const struct duplicates_facts *facts)
{
	int err = 0;

	for (size_t i = 0; i < facts->process_count && !err; i++) {
		uint64_t process = process_of(facts, i);

		if (is_known(p, process))
			continue;
		p->known[p->count++] = process;
		err = index_add(&p->ix, index_fold(process), (uint32_t)p->count);
	}
	return err;
}

static size_t count_known(const struct processes *p, const struct duplicates_facts *facts)
{
	size_t known = 0;

	for (size_t i = 0; i < facts->process_count; i++)
		known += is_known(p, process_of(facts, i));
	return known;
}

static int find_sums(const struct duplicates_facts *facts, size_t count, struct duplicates_verdict *verdicts)
{
	struct processes p = {{0}, NULL, 0};
	size_t total = 0;
	int err;

	for (size_t i = 0; i < count; i++)
		total += facts[i].process_count;
	p.known = calloc(total + 1, sizeof(*p.known));
	err = p.known ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		if (!facts[i].is_sum && verdicts[i].kind == DUPLICATES_NONE)
			err = processes_add(&p, &facts[i]);
	for (size_t i = 0; i < count && !err; i++) {
		size_t known;

		if (!facts[i].is_sum || verdicts[i].kind != DUPLICATES_NONE)
			continue;
		known = count_known(&p, &facts[i]);
		verdicts[i].overlaps = known && known < facts[i].process_count;
		if (known && !verdicts[i].overlaps)
			verdicts[i].kind = DUPLICATES_SUM;
		err = processes_add(&p, &facts[i]);
	}
	index_fini(&p.ix);
	free(p.known);
	return err;
}

int duplicates_find(
    const struct duplicates_facts *facts, size_t count, bool sums, struct duplicates_verdict *verdicts)
{
	size_t *firsts = calloc(count + 1, sizeof(*firsts));
	int err = firsts ? 0 : -ENOMEM;

	memset(verdicts, 0, count * sizeof(*verdicts));
	if (!err)
		err = find_copies(facts, count, firsts, verdicts);
	if (!err && sums)
		err = find_sums(facts, count, verdicts);
	free(firsts);
	return err;
}
