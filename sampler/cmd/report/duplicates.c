/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/duplicates.h"

#include "pprof/model/profile.h"
#include "pprof/table/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A hostile profile has one very long text in a million places: of each, so much is looked at. */
enum { TEXT_BYTES = 128 };

#define NAMES_PROCESS "session=" /* begins a comment that stays when profiles are merged */

/* ---- facts */

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return index_mix_bytes(hash, text, strnlen(text, TEXT_BYTES));
}

static uint64_t mix_header(uint64_t hash, const struct profile *p)
{
	hash = index_mix(hash, (uint64_t)profile_time_ns(p));
	hash = index_mix(hash, (uint64_t)profile_duration_ns(p));
	hash = index_mix(hash, (uint64_t)profile_period(p));
	for (size_t i = 0; i < profile_sample_type_count(p); i++)
		hash = mix_text(hash, profile_sample_type(p, i).type);
	for (size_t i = 0; i < profile_comment_count(p); i++)
		hash = mix_text(hash, profile_comment(p, i));
	return hash;
}

/* The depth of its stack, what it counts, and its labels: a stack without names has the same. */
static uint64_t sample_hash(const struct profile *p, size_t index)
{
	const struct profile_sample sample = profile_sample(p, index);
	uint64_t hash = index_mix(index_seed(), sample.depth);

	for (size_t i = 0; i < profile_sample_type_count(p); i++)
		hash = index_mix(hash, (uint64_t)sample.values[i]);
	for (size_t i = 0; i < sample.label_count; i++) {
		const struct profile_label label = profile_sample_label(p, index, i);

		hash = index_mix(mix_text(hash, label.str ? label.str : label.key), (uint64_t)label.num);
	}
	return hash;
}

/* The order of samples is a writer's choice, and so are samples of nothing. */
static uint64_t measurement_of(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profile_sample_count(p); i++)
		if (!profile_sample_is_zero(p, i))
			sum += sample_hash(p, i);
	return index_mix(mix_header(index_seed(), p), sum);
}

int duplicates_facts_read(struct duplicates_facts *facts, const struct profile *profile, const char *event,
    bool is_sum, size_t group)
{
	const size_t comments = profile_comment_count(profile);
	const uint64_t kind = mix_text(index_mix(index_seed(), group), event);

	*facts = (struct duplicates_facts){
	    .measurement = measurement_of(profile),
	    .timed = profile_time_ns(profile) > 0,
	    .is_sum = is_sum,
	    .group = group,
	    .processes = calloc(comments + 1, sizeof(*facts->processes)),
	};
	if (!facts->processes)
		return -ENOMEM;
	for (uint32_t id = 1; id <= profile_location_count(profile); id++)
		facts->names += profile_location(profile, id).line_count > 0;
	for (size_t i = 0; i < comments; i++) {
		const char *comment = profile_comment(profile, i);

		if (strncmp(comment, NAMES_PROCESS, strlen(NAMES_PROCESS)) == 0)
			facts->processes[facts->process_count++] = mix_text(kind, comment);
	}
	return 0;
}

void duplicates_facts_fini(struct duplicates_facts *facts)
{
	free(facts->processes);
	memset(facts, 0, sizeof(*facts));
}

/* ---- the same profile twice */

/* Equal ones follow each other, the one with the most names first. */
static int compare_copies(const void *left, const void *right, void *context)
{
	const struct duplicates_facts *facts = context;
	const size_t i = *(const size_t *)left, j = *(const size_t *)right;
	const struct duplicates_facts *a = &facts[i], *b = &facts[j];

	if (a->measurement != b->measurement)
		return a->measurement < b->measurement ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->names != b->names)
		return a->names > b->names ? -1 : 1;
	return (i > j) - (i < j);
}

static int find_copies(
    const struct duplicates_facts *facts, size_t count, struct duplicates_verdict *verdicts)
{
	size_t *order = calloc(count + 1, sizeof(*order)), best = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof(*order), compare_copies, (void *)facts);
	for (size_t i = 0; i < count; i++) {
		const struct duplicates_facts *own = &facts[order[i]], *first = &facts[order[best]];

		if (!own->timed || own->measurement != first->measurement || own->group != first->group)
			best = i;
		verdicts[order[i]].other = order[best];
		if (i != best)
			verdicts[order[i]].kind =
			    own->names < facts[order[best]].names ? DUPLICATES_RAW : DUPLICATES_COPY;
	}
	free(order);
	return 0;
}

/* ---- sums beside what they are made of */

/* The processes that are there: `known` grows to the number that is in it. */
struct processes {
	struct index ix;
	uint64_t *known;
	size_t count;
};

static bool is_known(const struct processes *p, uint64_t process)
{
	const uint32_t hash = index_fold(process);
	size_t cursor = index_start(hash);
	uint32_t id;

	while ((id = index_next(&p->ix, hash, &cursor)))
		if (p->known[id - 1] == process)
			return true;
	return false;
}

static int processes_add(struct processes *p, const struct duplicates_facts *facts)
{
	int err = 0;

	for (size_t i = 0; i < facts->process_count && !err; i++) {
		if (is_known(p, facts->processes[i]))
			continue;
		p->known[p->count++] = facts->processes[i];
		err = index_add(&p->ix, index_fold(facts->processes[i]), (uint32_t)p->count);
	}
	return err;
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
		size_t known = 0;

		if (!facts[i].is_sum || verdicts[i].kind != DUPLICATES_NONE)
			continue;
		for (size_t j = 0; j < facts[i].process_count; j++)
			known += is_known(&p, facts[i].processes[j]);
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
	memset(verdicts, 0, count * sizeof(*verdicts));
	const int err = find_copies(facts, count, verdicts);
	return err || !sums ? err : find_sums(facts, count, verdicts);
}
