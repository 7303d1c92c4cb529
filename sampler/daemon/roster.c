/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/roster.h"

#include "pprof/table/array.h"
#include "sampler/linux/epoll_set.h"

#include <stdlib.h>
#include <string.h>

/* A child that writes a profile has a copy of the pidfd, so it must be taken out of the set. */
static void entry_free(const struct roster *roster, struct roster_entry *entry)
{
	char *const texts[] = {entry->service, entry->exe, entry->comm, entry->container, entry->labels,
	    entry->library, entry->reason};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	if (entry->pidfd >= 0)
		epoll_set_close(roster->epoll_fd, entry->pidfd);
	free(entry);
}

void roster_fini(struct roster *roster)
{
	for (size_t i = 0; i < roster->count; i++)
		entry_free(roster, roster->entries[i]);
	free(roster->entries);
	*roster = (struct roster){0};
}

/* The index of the pid, or where it belongs. */
static size_t place_of(const struct roster *roster, pid_t pid)
{
	size_t low = 0, high = roster->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (roster->entries[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct roster_entry *roster_find(const struct roster *roster, pid_t pid)
{
	size_t at = place_of(roster, pid);

	return at < roster->count && roster->entries[at]->pid == pid ? roster->entries[at] : NULL;
}

void roster_remove(struct roster *roster, pid_t pid)
{
	size_t at = place_of(roster, pid);

	if (at >= roster->count || roster->entries[at]->pid != pid)
		return;
	entry_free(roster, roster->entries[at]);
	memmove(&roster->entries[at], &roster->entries[at + 1],
	    (--roster->count - at) * sizeof(roster->entries[0]));
}

struct roster_entry *roster_enter(
    struct roster *roster, pid_t pid, const struct thread_birth *identity, bool *is_new)
{
	struct roster_entry *entry = roster_find(roster, pid);

	*is_new = !entry || !thread_facts_same_birth(&entry->identity, identity);
	if (!*is_new)
		return entry;
	if (entry)
		roster_remove(roster, pid);
	entry = calloc(1, sizeof(*entry));
	if (!entry ||
	    array_reserve(&roster->entries, &roster->room, roster->count + 1, sizeof(*roster->entries)) !=
	        0) {
		free(entry);
		return NULL;
	}
	*entry = (struct roster_entry){.pid = pid, .identity = *identity, .pidfd = -1};
	size_t at = place_of(roster, pid);
	memmove(&roster->entries[at + 1], &roster->entries[at],
	    (roster->count++ - at) * sizeof(roster->entries[0]));
	roster->entries[at] = entry;
	return entry;
}

void roster_forget(struct roster *roster, uint64_t round)
{
	size_t kept = 0;

	for (size_t i = 0; i < roster->count; i++)
		if (roster->entries[i]->round >= round)
			roster->entries[kept++] = roster->entries[i];
		else
			entry_free(roster, roster->entries[i]);
	roster->count = kept;
}

void roster_set(char **text, const char *value)
{
	free(*text);
	*text = value ? strdup(value) : NULL;
}
