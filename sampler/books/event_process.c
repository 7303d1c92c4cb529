/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/event_process.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the book of an event */

struct event_book {
	struct event_row *rows;
	size_t count, capacity;
	struct index index; /* of rows, ids from 1 */
	struct event_row total;
	bool full;
};

struct event_book *event_book_new(void)
{
	return calloc(1, sizeof(struct event_book));
}

void event_book_free(struct event_book *b)
{
	if (!b)
		return;
	free(b->rows);
	index_fini(&b->index);
	free(b);
}

void event_row_add(struct event_row *sum, const struct event_row *row)
{
	sum->samples += row->samples;
	sum->value += row->value;
	sum->bytes += row->bytes;
}

/* NULL if memory is short. */
static struct event_row *row_for(struct event_book *b, uint32_t stack, uint32_t tid)
{
	uint32_t hash = index_fold(index_mix(index_seed(), (uint64_t)tid << 32 | stack)), id;
	size_t cursor = index_start(hash);

	while ((id = index_next(&b->index, hash, &cursor)))
		if (b->rows[id - 1].stack == stack && b->rows[id - 1].tid == tid)
			return &b->rows[id - 1];
	if (b->full || b->count >= UINT32_MAX / 4 ||
	    array_reserve(&b->rows, &b->capacity, b->count + 1, sizeof(*b->rows)) != 0 ||
	    index_add(&b->index, hash, (uint32_t)b->count + 1) != 0)
		return NULL;
	b->rows[b->count] = (struct event_row){.stack = stack, .tid = tid};
	return &b->rows[b->count++];
}

bool event_book_add(struct event_book *b, const struct event_row *row)
{
	struct event_row *known = row_for(b, row->stack, row->tid);

	if (!known)
		return false;
	event_row_add(known, row);
	event_row_add(&b->total, row);
	return true;
}

void event_book_set_full(struct event_book *b, bool full)
{
	b->full = full;
}

uint64_t event_book_bytes(const struct event_book *b)
{
	return sizeof(*b) + b->capacity * sizeof(*b->rows) + index_bytes(&b->index);
}

size_t event_book_count(const struct event_book *b)
{
	return b->count;
}

const struct event_row *event_book_rows(const struct event_book *b)
{
	return b->rows;
}

struct event_row event_book_total(const struct event_book *b)
{
	return b->total;
}

/* ---- all subjects */

struct event_process *event_processes_find(const struct event_processes *subjects, pid_t pid)
{
	struct event_process *s;
	size_t cursor = 0;

	while ((s = table_next(&subjects->by_pid, (uint64_t)pid, &cursor)) && s->target.closed)
		continue;
	return s;
}

static void discard(struct event_process *s)
{
	target_fini(&s->target);
	for (size_t i = 0; i < EVENTS_MAX; i++)
		event_book_free(s->books[i]);
	free(s);
}

struct event_process *event_processes_add(
    struct event_processes *subjects, pid_t pid, const struct event_process *parent, uint64_t first_ns)
{
	struct event_process *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	bool ready = target_init(&s->target, pid, first_ns);
	s->target.readable = true;
	s->target.reading.retry_ns = maps_retry_ns(0, false);
	s->target.maps =
	    parent ? maps_copy(parent->target.maps, pid, 0) : maps_new(subjects->modules, pid, true);
	if (!ready || !s->target.maps || table_add(&subjects->by_pid, (uint64_t)pid, s) != 0) {
		discard(s);
		return NULL;
	}
	if (parent) {
		memcpy(s->target.title, parent->target.title, sizeof(s->target.title));
		memcpy(s->target.name, parent->target.name, sizeof(s->target.name));
		memcpy(s->comm, parent->comm, sizeof(s->comm));
		s->target.code_address = parent->target.code_address;
	}
	s->share.account = parent ? parent->share.account : 0;
	if (!s->share.account)
		s->share.account = target_account_of_user(thread_facts_read(pid).user);
	s->next = subjects->list;
	subjects->list = s;
	subjects->count++;
	return s;
}

void event_processes_remove(struct event_processes *subjects, struct event_process *subject)
{
	struct event_process **link = &subjects->list;

	while (*link != subject)
		link = &(*link)->next;
	*link = subject->next;
	subjects->count--;
	table_remove(&subjects->by_pid, (uint64_t)subject->target.pid, subject);
	memory_share_note(&subject->share, subjects->memory, 0);
	discard(subject);
}

void event_processes_fini(struct event_processes *subjects)
{
	while (subjects->list)
		event_processes_remove(subjects, subjects->list);
	table_fini(&subjects->by_pid);
}

/* ---- who it is */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool leads_to(const char *path, const struct stat *file)
{
	struct stat status;

	return stat(path, &status) == 0 && status.st_dev == file->st_dev && status.st_ino == file->st_ino;
}

/* Whether a file of that name, beside the executable or in a folder of PATH, is the executable. */
static bool is_called(
    const struct event_process *s, const char *called, const struct stat *file, char path[PATH_MAX + 64])
{
	char list[4096];
	const char *search = getenv("PATH");

	snprintf(path, PATH_MAX + 64, "%.*s%s", (int)(last_part(s->target.name) - s->target.name),
	    s->target.name, called);
	if (leads_to(path, file))
		return true;
	snprintf(list, sizeof(list), "%s", search ? search : "/usr/local/bin:/usr/bin:/bin");
	for (char *rest = list, *folder; (folder = strsep(&rest, ":"));) {
		snprintf(path, PATH_MAX + 64, "%s/%s", folder, called);
		if (leads_to(path, file))
			return true;
	}
	return false;
}

/* A program with several names gets the name by which it was executed; a script gets its interpreter's.
 * The kernel keeps 15 characters of that name. */
static void find_title(struct event_process *s, const char *exe)
{
	struct stat file;
	const char *title = last_part(s->target.name);
	char path[PATH_MAX + 64];

	/* The process may have ended since its name was read. */
	if (s->comm[0] && strncmp(s->comm, title, sizeof(s->comm) - 1) != 0 &&
	    (stat(exe, &file) == 0 || stat(s->target.name, &file) == 0) &&
	    is_called(s, s->comm, &file, path)) {
		title = s->comm;
		if (path[0] == '/' && strlen(path) < sizeof(s->target.called))
			strcpy(s->target.called, path);
	}
	target_set_title(&s->target, title);
}

/* The file that was mapped first when the program was executed. For a process that ran before us: the
 * first of its maps whose name is not that of a library. */
static const struct map *program_map(const struct event_process *s)
{
	const struct map *map = maps_find(s->target.maps, s->target.code_address);

	if (map && map->kind == MAP_KIND_FILE)
		return map;
	for (size_t i = 0; i < maps_count(s->target.maps); i++) {
		map = maps_at(s->target.maps, i);
		if (map->kind == MAP_KIND_FILE && !strstr(last_part(map_path(map)), ".so"))
			return map;
	}
	return NULL;
}

/* For a process that has ended. */
static void name_from_maps(struct event_process *s)
{
	const struct map *map = program_map(s);

	if (map && !s->target.name[0])
		snprintf(s->target.name, sizeof(s->target.name), "%s", map_path(map));
	find_title(s, s->target.name);
	if (!s->target.title[0])
		target_set_title(&s->target, s->comm);
}

/* Needed because the process may already execute another program when its samples are read. */
static bool maps_file(const struct event_process *s, const char *path)
{
	for (size_t i = 0; i < maps_count(s->target.maps); i++)
		if (strcmp(map_path(maps_at(s->target.maps, i)), path) == 0)
			return true;
	return false;
}

/* For a process that was running before us: for others a COMM record has the name. */
static void read_comm(struct event_process *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)s->target.pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(s->comm, sizeof(s->comm), file))
		s->comm[strcspn(s->comm, "\n")] = '\0';
	fclose(file);
}

void event_process_look(struct event_process *s)
{
	char path[64];

	if (s->looked)
		return;
	s->looked = true;
	s->target.pidfd = pidfd_open_process(s->target.pid);
	target_note_perf_map(&s->target);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)s->target.pid);
	char name[TARGET_NAME_BYTES];
	bool known = target_read_executable(&s->target, name), mapped = maps_file(s, name);
	proc_strip_deleted(name);
	if (!known || !(mapped || maps_file(s, name))) {
		name_from_maps(s);
		return;
	}
	memcpy(s->target.name, name, sizeof(name));
	if (!s->comm[0])
		read_comm(s);
	find_title(s, path);
	char full_name[PROCESS_NAME_BYTES], again[TARGET_NAME_BYTES];
	/* The process has executed no other program during the reading. */
	if (target_read_full_name(&s->target, full_name) && target_read_executable(&s->target, again) &&
	    proc_undeleted_length(again) == strlen(s->target.name) &&
	    memcmp(again, s->target.name, strlen(s->target.name)) == 0)
		target_set_full_name(&s->target, full_name);
}

void event_process_look_for_room(struct event_process *s, const struct memory_bound *memory)
{
	bool full = !memory_bound_allows(memory, &s->share);

	stacks_set_full(s->target.stacks, full);
	for (size_t i = 0; i < EVENTS_MAX; i++)
		if (s->books[i])
			event_book_set_full(s->books[i], full);
}

void event_process_weigh(struct event_process *s, struct memory_bound *memory)
{
	uint64_t bytes = stacks_bytes(s->target.stacks);

	for (size_t i = 0; i < EVENTS_MAX; i++)
		if (s->books[i])
			bytes += event_book_bytes(s->books[i]);
	memory_share_note(&s->share, memory, bytes);
}

bool event_process_has_samples(const struct event_process *s)
{
	for (size_t i = 0; i < EVENTS_MAX; i++)
		if (s->books[i])
			return true;
	return false;
}
