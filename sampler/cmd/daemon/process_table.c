/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/process_table.h"

#include "pprof/table/array.h"
#include "sampler/linux/epoll_set.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A child that writes a profile has a copy of the pidfd. So closing it is not enough: it must be taken out of
 * the epoll set. */
static void entry_free(const struct process_table *table, struct process_entry *entry)
{
	char *const texts[] = {entry->service, entry->exe, entry->comm, entry->container, entry->labels,
	    entry->library, entry->reason};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	if (entry->pidfd >= 0)
		epoll_set_close(table->epoll_fd, entry->pidfd);
	free(entry);
}

void process_table_fini(struct process_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		entry_free(table, table->entries[i]);
	free(table->entries);
	*table = (struct process_table){0};
}

/* The index of the pid, or the index at which to insert it. */
static size_t place_of(const struct process_table *table, pid_t pid)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->entries[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct process_entry *process_table_find(const struct process_table *table, pid_t pid)
{
	size_t at = place_of(table, pid);

	return at < table->count && table->entries[at]->pid == pid ? table->entries[at] : NULL;
}

void process_table_remove(struct process_table *table, pid_t pid)
{
	size_t at = place_of(table, pid);

	if (at >= table->count || table->entries[at]->pid != pid)
		return;
	entry_free(table, table->entries[at]);
	memmove(
	    &table->entries[at], &table->entries[at + 1], (--table->count - at) * sizeof(table->entries[0]));
}

struct process_entry *process_table_enter(
    struct process_table *table, pid_t pid, const struct thread_birth *identity, bool *is_new)
{
	struct process_entry *entry = process_table_find(table, pid);

	*is_new = !entry || !thread_facts_same_birth(&entry->identity, identity);
	if (!*is_new)
		return entry;
	if (entry)
		process_table_remove(table, pid);
	entry = calloc(1, sizeof(*entry));
	if (!entry ||
	    array_reserve(&table->entries, &table->room, table->count + 1, sizeof(*table->entries)) != 0) {
		free(entry);
		return NULL;
	}
	*entry = (struct process_entry){.pid = pid, .identity = *identity, .pidfd = -1};
	size_t at = place_of(table, pid);
	memmove(
	    &table->entries[at + 1], &table->entries[at], (table->count++ - at) * sizeof(table->entries[0]));
	table->entries[at] = entry;
	return entry;
}

void process_table_forget(struct process_table *table, uint64_t round)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->count; i++)
		if (table->entries[i]->round >= round)
			table->entries[kept++] = table->entries[i];
		else
			entry_free(table, table->entries[i]);
	table->count = kept;
}

void process_entry_set(char **text, const char *value)
{
	free(*text);
	*text = value ? strdup(value) : NULL;
}

bool process_entry_refuse(struct process_entry *entry, const char *format, ...)
{
	char text[PROCESS_ENTRY_REASON_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	process_entry_set(&entry->reason, text);
	entry->state = PROCESS_REFUSED;
	return true;
}
