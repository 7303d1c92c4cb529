/* SPDX-License-Identifier: Apache-2.0 */
#include "push/fold_rank.h"

#include "pprof/analysis/stack_key.h"
#include "pprof/profile/profile.h"
#include "push/fold_input.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void fold_rank_fini(struct fold_rank *rank)
{
	free(rank->order);
	free(rank->groups);
	*rank = (struct fold_rank){0};
}

static int compare_entries(const void *a, const void *b)
{
	const struct fold_entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Equal shares stay in the order of their keys, so that equal profiles are folded alike. */
static int compare_groups(const void *a, const void *b)
{
	const struct fold_group *x = a, *y = b;

	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static bool any_value(const struct fold_input *input, size_t types, size_t sample)
{
	for (size_t t = 0; t < types; t++)
		if (input->types[t] && input->values[sample * types + t])
			return true;
	return false;
}

static int make_order(struct fold_rank *rank, const struct fold_input *input, size_t types, size_t *count)
{
	size_t samples = profile_sample_count(input->profile);
	struct stack_keys keys;

	if (samples >= UINT32_MAX)
		return -EOVERFLOW;
	rank->order = malloc((samples + 1) * sizeof(*rank->order));
	if (!rank->order || stack_keys_init(&keys, input->profile))
		return -ENOMEM;
	*count = 0;
	for (size_t i = 0; i < samples; i++) {
		if (!any_value(input, types, i))
			continue;
		/* Where numbers are kept each sample is a group: its key is its place. */
		rank->order[(*count)++] = (struct fold_entry){
		    input->limits->drop_numbers ? stack_key_without_numbers(&keys, i) : i, (uint32_t)i};
	}
	stack_keys_fini(&keys);
	qsort(rank->order, *count, sizeof(*rank->order), compare_entries);
	return 0;
}

static void add_totals(const struct fold_input *input, size_t types, size_t samples, double *totals)
{
	for (size_t i = 0; i < samples; i++)
		for (size_t t = 0; t < types; t++)
			totals[t] += input->types[t] ? fabs((double)input->values[i * types + t]) : 0;
}

static double group_share(const struct fold_rank *rank, const struct fold_input *input,
    const struct fold_group *group, const double *totals, size_t types)
{
	double largest = 0;

	for (size_t t = 0; t < types; t++) {
		double sum = 0;

		for (uint32_t i = 0; input->types[t] && totals[t] > 0 && i < group->count; i++)
			sum += (double)input->values[rank->order[group->first + i].sample * types + t];
		if (totals[t] > 0 && fabs(sum) / totals[t] > largest)
			largest = fabs(sum) / totals[t];
	}
	return largest;
}

int fold_rank_make(struct fold_rank *rank, const struct fold_input *input)
{
	size_t types = profile_sample_type_count(input->profile), count;
	double *totals = calloc(types + 1, sizeof(*totals));
	int err;

	*rank = (struct fold_rank){0};
	err = totals ? make_order(rank, input, types, &count) : -ENOMEM;
	if (!err) {
		rank->groups = malloc((count + 1) * sizeof(*rank->groups));
		err = rank->groups ? 0 : -ENOMEM;
	}
	if (err) {
		free(totals);
		fold_rank_fini(rank);
		return err;
	}
	add_totals(input, types, profile_sample_count(input->profile), totals);
	for (uint32_t i = 0; i < count; i++) {
		if (i && rank->order[i].key == rank->order[i - 1].key)
			rank->groups[rank->count - 1].count++;
		else
			rank->groups[rank->count++] = (struct fold_group){.first = i, .count = 1};
	}
	for (size_t i = 0; i < rank->count; i++)
		rank->groups[i].share = group_share(rank, input, &rank->groups[i], totals, types);
	if (rank->count)
		qsort(rank->groups, rank->count, sizeof(*rank->groups), compare_groups);
	free(totals);
	return 0;
}
