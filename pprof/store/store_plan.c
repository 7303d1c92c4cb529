/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_BYTES = 4096,
	NAME_BYTES = 64, /* in its folder */
	TEN_MINUTES_S = 600,
	HOUR_S = 3600,
	DAY_S = 24 * 3600,
	LATE_S = 5, /* a last peak may be named so long after the end of its process */
};

/* What a file is worth: the least goes first if there is no room. */
enum worth { ORDINARY, LASTING, OOM, WORTHS };

struct plan {
	const struct store_list *list;
	const struct store_plan_limits *limits;
	uint8_t *fates;
	uint64_t left_bytes[WORTHS];
};

uint64_t store_plan_charge(uint64_t bytes)
{
	return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES + NAME_BYTES;
}

static enum worth worth_of(const struct store_file *file)
{
	if (file->class == STORE_OOM)
		return OOM;
	return file->class == STORE_PEAK || file->class == STORE_EXIT ? LASTING : ORDINARY;
}

static void drop(struct plan *plan, size_t number, enum store_plan_fate fate)
{
	const struct store_file *file = &plan->list->files[number];

	if (plan->fates[number] != STORE_PLAN_KEEP)
		return;
	plan->fates[number] = (uint8_t)fate;
	plan->left_bytes[worth_of(file)] -= store_plan_charge(file->bytes);
}

static uint64_t left_bytes(const struct plan *plan)
{
	return plan->left_bytes[ORDINARY] + plan->left_bytes[LASTING] + plan->left_bytes[OOM];
}

/* ---- by age */

static bool is_end(const struct store_file *file)
{
	return file->class == STORE_EXIT || file->class == STORE_OOM;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By process, class and time; ends first, because the other files of the process are judged by them. */
static int compare_series(const void *a, const void *b, void *context)
{
	const struct store_list *list = context;
	size_t i = *(const size_t *)a, j = *(const size_t *)b;
	const struct store_file *x = &list->files[i], *y = &list->files[j];
	int order = compare(x->service, y->service);

	if (!order)
		order = compare((uint64_t)x->pid, (uint64_t)y->pid);
	if (!order)
		order = is_end(y) - is_end(x);
	if (!order && !is_end(x))
		order = compare(x->class, y->class);
	if (!order && x->class == STORE_EVENT)
		order = compare(x->kind, y->kind);
	/* Files of a list are in the order of time. */
	return order ? order : compare(i, j);
}

static bool same_process(const struct store_file *x, const struct store_file *y)
{
	return x->service == y->service && x->pid == y->pid;
}

static bool same_series(const struct store_file *x, const struct store_file *y)
{
	return same_process(x, y) && x->class == y->class && (x->class != STORE_EVENT || x->kind == y->kind);
}

/* The length of the slots of which one file stays; 0: all files stay. */
static int64_t slot_s(int64_t age_s)
{
	if (age_s <= HOUR_S)
		return 0;
	return age_s <= DAY_S ? TEN_MINUTES_S : HOUR_S;
}

/* Of the snapshots of one series, by time, the first of each slot stays. */
static void thin_snapshots(struct plan *plan, const size_t *order, size_t count)
{
	const struct store_file *kept = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct store_file *file = &plan->list->files[order[i]];
		int64_t slot = slot_s(plan->limits->now_s - file->time_s);

		if (plan->fates[order[i]] != STORE_PLAN_KEEP)
			continue;
		if (slot && kept && kept->time_s / slot == file->time_s / slot)
			drop(plan, order[i], STORE_PLAN_THIN);
		else
			kept = file;
	}
}

/* Of files that replace each other all but the last go. After an end the pid belongs to another process. */
static void thin_standing(
    struct plan *plan, const size_t *order, size_t count, const size_t *ends, size_t end_count)
{
	const struct store_file *files = plan->list->files;
	size_t end = 0;

	for (size_t i = 0; i + 1 < count; i++) {
		const struct store_file *file = &files[order[i]], *next = &files[order[i + 1]];

		while (end < end_count && files[ends[end]].time_s + LATE_S < file->time_s)
			end++;
		if (end == end_count || files[ends[end]].time_s + LATE_S >= next->time_s)
			drop(plan, order[i], STORE_PLAN_THIN);
	}
}

/* One process: its ends, then one series after the other. */
static void thin_process(struct plan *plan, const size_t *order, size_t count)
{
	const struct store_file *files = plan->list->files;
	size_t end_count = 0;

	while (end_count < count && is_end(&files[order[end_count]]))
		end_count++;
	for (size_t i = end_count, length; i < count; i += length) {
		for (length = 1;
		     i + length < count && same_series(&files[order[i]], &files[order[i + length]]);)
			length++;
		if (files[order[i]].class == STORE_PEAK)
			thin_standing(plan, order + i, length, order, end_count);
		else
			thin_snapshots(plan, order + i, length);
	}
}

static int thin(struct plan *plan)
{
	const struct store_list *list = plan->list;
	size_t *order = calloc(list->file_count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < list->file_count; i++)
		order[i] = i;
	qsort_r(order, list->file_count, sizeof(*order), compare_series, (void *)list);
	for (size_t i = 0, length; i < list->file_count; i += length) {
		for (length = 1; i + length < list->file_count &&
		     same_process(&list->files[order[i]], &list->files[order[i + length]]);)
			length++;
		thin_process(plan, order + i, length);
	}
	free(order);
	return 0;
}

/* ---- by budget */

static int compare_sums(const void *a, const void *b)
{
	return compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* The level to which the largest sums must come down so that all sums together are at most `most`. sums:
 * sorted. */
static uint64_t level_find(const uint64_t *sums, size_t count, uint64_t most)
{
	for (size_t i = 0; i < count; i++) {
		if (sums[i] > most / (count - i))
			return most / (count - i);
		most -= sums[i];
	}
	return UINT64_MAX;
}

/* Removes files of that worth, the oldest of each service first, until the rest is at most `most`. */
static int evict(struct plan *plan, enum worth worth, uint64_t most)
{
	const struct store_list *list = plan->list;
	uint64_t *sums, *sorted, level;

	if (plan->left_bytes[worth] <= most)
		return 0;
	sums = calloc(list->service_count + 1, sizeof(*sums));
	sorted = calloc(list->service_count + 1, sizeof(*sorted));
	if (!sums || !sorted) {
		free(sums);
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < list->file_count; i++)
		if (plan->fates[i] == STORE_PLAN_KEEP && worth_of(&list->files[i]) == worth)
			sums[list->files[i].service] += store_plan_charge(list->files[i].bytes);
	memcpy(sorted, sums, list->service_count * sizeof(*sums));
	qsort(sorted, list->service_count, sizeof(*sorted), compare_sums);
	level = level_find(sorted, list->service_count, most);
	for (size_t i = 0; i < list->file_count; i++) {
		const struct store_file *file = &list->files[i];

		if (plan->fates[i] != STORE_PLAN_KEEP || worth_of(file) != worth ||
		    sums[file->service] <= level)
			continue;
		sums[file->service] -= store_plan_charge(file->bytes);
		drop(plan, i, STORE_PLAN_EVICT);
	}
	free(sums);
	free(sorted);
	return 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static int keep_budget(struct plan *plan)
{
	const struct store_plan_limits *limits = plan->limits;
	uint64_t to = limits->evict_to_bytes;
	int err;

	if (left_bytes(plan) <= limits->most_bytes)
		return 0;
	err = evict(plan, LASTING, less(to / 2, plan->left_bytes[OOM]));
	if (!err)
		err = evict(plan, OOM, to / 2);
	if (!err)
		err = evict(plan, ORDINARY, less(to, plan->left_bytes[LASTING] + plan->left_bytes[OOM]));
	if (!err)
		err = evict(plan, LASTING, less(to, plan->left_bytes[ORDINARY] + plan->left_bytes[OOM]));
	return err ? err : evict(plan, OOM, to);
}

int store_plan_make(
    const struct store_list *list, const struct store_plan_limits *limits, uint8_t *fates, uint64_t *left)
{
	struct plan plan = {list, limits, fates, {0}};
	uint64_t before, freed;
	int err;

	memset(fates, STORE_PLAN_KEEP, list->file_count);
	for (size_t i = 0; i < list->file_count; i++)
		plan.left_bytes[worth_of(&list->files[i])] += store_plan_charge(list->files[i].bytes);
	before = left_bytes(&plan);
	for (size_t i = 0; i < list->file_count; i++)
		if (list->files[i].time_s < limits->now_s - (int64_t)limits->days * DAY_S)
			drop(&plan, i, STORE_PLAN_EXPIRED);
	err = thin(&plan);
	if (!err)
		err = keep_budget(&plan);
	freed = before - left_bytes(&plan);
	if (!err && freed < limits->free_bytes)
		err = evict(&plan, ORDINARY, less(plan.left_bytes[ORDINARY], limits->free_bytes - freed));
	*left = left_bytes(&plan);
	return err;
}
