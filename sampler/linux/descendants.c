/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/descendants.h"

#include "pprof/table/array.h"
#include "sampler/linux/thread_facts.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static int compare(const void *one, const void *other)
{
	const struct descendants_pair *a = one, *b = other;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* The first pair whose parent is this one or has a larger pid. */
static size_t first_of(const struct descendants_pair *pairs, size_t count, pid_t parent)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (pairs[middle].parent < parent)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Appends the children of `of` to the queue, and uses up their pairs, so that no pair counts twice. */
static size_t append_children(struct descendants_pair *pairs, size_t pair_count, pid_t without,
    struct descendant of, struct descendant *queue, size_t queued)
{
	for (size_t i = first_of(pairs, pair_count, of.pid); i < pair_count && pairs[i].parent == of.pid;
	     i++) {
		if (pairs[i].pid <= 0 || pairs[i].pid == without)
			continue;
		queue[queued++] = (struct descendant){pairs[i].pid, of.pid, of.root};
		pairs[i].pid = 0;
	}
	return queued;
}

static void take_roots(
    struct descendants_pair *pairs, size_t pair_count, const pid_t *roots, size_t root_count)
{
	for (size_t i = 0; i < pair_count; i++)
		for (size_t r = 0; r < root_count; r++)
			if (pairs[i].pid == roots[r])
				pairs[i].pid = 0;
}

size_t descendants_of(struct descendants_pair *pairs, size_t pair_count, const pid_t *roots,
    size_t root_count, pid_t without, struct descendant *found, size_t most)
{
	struct descendant *queue = calloc(pair_count + 1, sizeof(*queue));
	size_t queued = 0;

	if (!queue || !pair_count) {
		free(queue);
		return 0;
	}
	take_roots(pairs, pair_count, roots, root_count);
	qsort(pairs, pair_count, sizeof(*pairs), compare);
	for (size_t i = 0; i < root_count; i++)
		queued = append_children(
		    pairs, pair_count, without, (struct descendant){roots[i], 0, i}, queue, queued);
	for (size_t i = 0; i < queued; i++)
		queued = append_children(pairs, pair_count, without, queue[i], queue, queued);
	for (size_t i = 0; i < queued && i < most; i++)
		found[i] = queue[i];
	free(queue);
	return queued;
}

size_t descendants_find(const pid_t *roots, size_t root_count, struct descendant *found, size_t most)
{
	struct descendants_pair *pairs = NULL;
	size_t count = 0, capacity = 0;
	const struct dirent *entry;
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		const struct thread_facts facts = pid > 0 ? thread_facts_read(pid) : (struct thread_facts){0};

		if (facts.pid != pid || pid <= 0)
			continue;
		if (array_reserve(&pairs, &capacity, count + 1, sizeof(*pairs)) != 0)
			break;
		pairs[count++] = (struct descendants_pair){pid, facts.parent};
	}
	if (proc)
		closedir(proc);
	const size_t all = descendants_of(pairs, count, roots, root_count, getpid(), found, most);
	free(pairs);
	return all;
}
