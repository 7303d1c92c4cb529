/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "serve/catalog_files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FRESH_MS = 1000,
	SCAN_MS = 3000,   /* between looks through folders */
	POINTS_MS = 5000, /* between looks that nobody has asked for */
	SPOOLS_BYTES_MAX = SPOOL_LIST_MAX * 512,
};

struct catalog {
	struct catalog_setup setup;
	struct catalog_files *files;
	struct catalog_histories histories;
	struct catalog_lists lists, new_lists; /* of the last look, and of the present one */
	unsigned int pending;
	uint64_t began_ns;              /* when the present look began, or the last one */
	uint64_t looked_ns, scanned_ns; /* when the last finished look and scan began */
	struct catalog_waiter *waiters;

	struct spool_list spools;
	struct catalog_process *processes;
	size_t process_count, process_room;
	const struct catalog_file **sorted;
	size_t sorted_room;
};

/* ---- waiters */

void catalog_leave(struct catalog_waiter *waiter)
{
	if (!waiter->link)
		return;
	*waiter->link = waiter->next;
	if (waiter->next)
		waiter->next->link = waiter->link;
	waiter->link = NULL;
}

static void join(struct catalog_waiter **list, struct catalog_waiter *waiter)
{
	waiter->next = *list;
	waiter->link = list;
	if (waiter->next)
		waiter->next->link = &waiter->next;
	*list = waiter;
}

/* Wakes those for whom the look is new enough. ready() may wait again at once. */
static void wake(struct catalog *catalog)
{
	struct catalog_waiter *served = NULL;

	for (struct catalog_waiter *waiter = catalog->waiters, *next; waiter; waiter = next) {
		next = waiter->next;
		if (waiter->not_before_ns > catalog->looked_ns)
			continue;
		catalog_leave(waiter);
		join(&served, waiter);
	}
	while (served) {
		struct catalog_waiter *waiter = served;

		catalog_leave(waiter);
		waiter->ready(waiter);
	}
}

/* ---- the processes */

static void set_name(char to[CATALOG_NAME_BYTES], const char *from)
{
	snprintf(to, CATALOG_NAME_BYTES, "%s", from && *from ? from : "unknown");
}

static struct catalog_process *add_process(struct catalog *catalog)
{
	struct catalog_process *process;

	if (array_reserve(
	        &catalog->processes, &catalog->process_room, catalog->process_count + 1, sizeof(*process)))
		return NULL;
	process = &catalog->processes[catalog->process_count++];
	*process = (struct catalog_process){.host = "", .session = ""};
	return process;
}

/* Services of other users get names of their own, so that nobody is in the sums of another user's service. */
static void set_service(struct catalog_process *process, const struct control_process *listed,
    const struct catalog_lists_item *by)
{
	set_name(process->service, listed->service[0] ? listed->service : process->program);
	if (by->foreign)
		snprintf(process->service, sizeof(process->service), "%.*s@%u", CATALOG_NAME_BYTES - 12,
		    listed->service[0] ? listed->service : process->program, (unsigned int)by->user);
}

static void add_listed(
    struct catalog *catalog, const struct catalog_lists_item *by, const struct control_process *listed)
{
	struct control_process noted = *listed;
	const char *slash = strrchr(listed->exe, '/');
	struct catalog_process *process = listed->profiled ? add_process(catalog) : NULL;

	if (!process)
		return;
	/* Every daemon sees the same start of the process; the time since when it is profiled differs. */
	process->start_ns = listed->start_unix_ns ? listed->start_unix_ns : listed->since_unix_ns;
	process->key = (struct process_key){by->server, process->start_ns, listed->pid, by->foreign};
	process->listed = listed;
	set_name(process->program, listed->comm[0] ? listed->comm : slash ? slash + 1 : listed->exe);
	set_name(process->name, listed->name[0] ? listed->name : process->program);
	set_service(process, listed, by);
	if (by->said_ns != catalog->began_ns)
		noted.inuse_bytes = NAN; /* the number is an old one */
	process->history = catalog_histories_note(
	    &catalog->histories, &process->key, &noted, catalog->began_ns, clock_unix_ns());
	counters_note(catalog->setup.counters, process->service, listed, by->foreign, catalog->began_ns);
}

/* Sorts the files of one process next to each other, by time. */
static int compare_files(const void *left, const void *right)
{
	const struct catalog_file *a = *(const struct catalog_file *const *)left;
	const struct catalog_file *b = *(const struct catalog_file *const *)right;
	int order;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	order = strcmp(a->session, b->session);
	if (!order)
		order = strcmp(a->program, b->program);
	if (order)
		return order;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* A file of an unknown process is a process of its own. */
static bool is_one_process(const struct catalog_file *a, const struct catalog_file *b)
{
	return a->pid && a->pid == b->pid && a->start_ns == b->start_ns &&
	    strcmp(a->session, b->session) == 0 && strcmp(a->program, b->program) == 0;
}

static struct catalog_process *process_of(struct catalog *catalog, const struct catalog_file *file)
{
	struct catalog_process *process;

	/* Live processes come first. Files are sorted, so they need no search among each other. */
	for (size_t i = 0; i < catalog->process_count && catalog->processes[i].listed && file->pid; i++) {
		process = &catalog->processes[i];
		if (process->key.pid == file->pid && process->start_ns == file->start_ns)
			return process;
	}
	process = add_process(catalog);
	if (!process)
		return NULL;
	process->key = (struct process_key){0, file->start_ns, file->pid, false};
	process->start_ns = file->start_ns;
	set_name(process->program, file->program);
	set_name(process->name, file->name);
	set_name(process->service, file->service[0] ? file->service : file->program);
	return process;
}

static int add_files(struct catalog *catalog)
{
	struct catalog_file *const *files;
	size_t count = catalog_files_all(catalog->files, &files), read = 0;

	if (array_reserve(&catalog->sorted, &catalog->sorted_room, count + 1, sizeof(*catalog->sorted)))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (files[i]->state == CATALOG_FILE_READ && files[i]->there)
			catalog->sorted[read++] = files[i];
	if (read)
		qsort(catalog->sorted, read, sizeof(*catalog->sorted), compare_files);
	for (size_t first = 0, next; first < read; first = next) {
		struct catalog_process *process = process_of(catalog, catalog->sorted[first]);

		for (next = first + 1;
		     next < read && is_one_process(catalog->sorted[first], catalog->sorted[next]);)
			next++;
		if (!process)
			return -ENOMEM;
		process->files = catalog->sorted + first;
		process->file_count = next - first;
		process->host = catalog->sorted[first]->host;
		process->session = catalog->sorted[first]->session;
	}
	return 0;
}

static bool is_there(const void *context, const struct process_key *key)
{
	const struct catalog *catalog = context;

	for (size_t i = 0; i < catalog->process_count; i++) {
		const struct process_key *other = &catalog->processes[i].key;

		if (other->server == key->server && other->pid == key->pid &&
		    other->start_unix_ns == key->start_unix_ns)
			return true;
	}
	return false;
}

static void look(struct catalog *catalog);

static void rebuild(struct catalog *catalog)
{
	struct catalog_lists *lists = &catalog->lists;
	int err;

	catalog_lists_renew(lists, &catalog->new_lists);
	catalog->process_count = 0;
	err = catalog_lists_settle(lists);
	for (size_t i = 0; i < lists->count; i++) {
		const struct catalog_lists_item *by = &lists->items[i];

		counters_note_sampler(catalog->setup.counters, &by->list->daemon, catalog->began_ns);
		for (size_t p = 0; p < by->list->process_count && !(err && by->foreign); p++)
			add_listed(catalog, by, &by->list->processes[p]);
	}
	counters_sweep(catalog->setup.counters, catalog->began_ns);
	(void)add_files(catalog);
	catalog_files_drop_gone(catalog->files); /* no process refers to them any more */
	catalog_histories_sweep(&catalog->histories, catalog->began_ns);
	snapshots_sweep(catalog->setup.snapshots, is_there, catalog, catalog->began_ns);
	catalog->looked_ns = catalog->began_ns;
	wake(catalog);
	if (catalog->waiters)
		look(catalog);
}

/* ---- looking */

static void finish_part(struct catalog *catalog)
{
	if (--catalog->pending == 0)
		rebuild(catalog);
}

static void on_scanned(void *context)
{
	finish_part(context);
}

/* Called after the lists, which say where samplers write. Looks for files only if somebody waits for them. */
static void begin_scan(struct catalog *catalog)
{
	bool wanted = false;

	for (const struct catalog_waiter *waiter = catalog->waiters; waiter; waiter = waiter->next)
		wanted = wanted || waiter->needs_files || catalog->setup.with_files;
	if (!wanted ||
	    (catalog->scanned_ns &&
	        catalog->began_ns - catalog->scanned_ns <= (uint64_t)SCAN_MS * CLOCK_NS_PER_MS) ||
	    !catalog_files_begin(catalog->files))
		return;
	catalog->scanned_ns = catalog->began_ns;
	catalog->pending++;
}

static void on_list(void *context, const struct broker_reply *reply, int fd)
{
	struct catalog *catalog = context;

	if (fd >= 0)
		catalog_lists_take(&catalog->new_lists, reply, fd, catalog->began_ns);
	else if (reply->error && reply->server)
		catalog_lists_keep(&catalog->new_lists, &catalog->lists, reply->server, catalog->began_ns);
	if (!reply->last)
		return;
	begin_scan(catalog);
	finish_part(catalog);
}

/* What cannot be read stays as it was. */
static void take_spools(struct catalog *catalog, const struct broker_reply *reply, int fd)
{
	struct spool_list spools;
	struct blob *blob;
	int err = 0;

	if (!reply->bytes || reply->bytes > SPOOLS_BYTES_MAX) {
		close(fd);
		if (!reply->bytes)
			spool_list_fini(&catalog->spools);
		return;
	}
	blob = blob_read(fd, reply->bytes, &err);
	if (!blob)
		return;
	err = spool_list_parse(&spools, (const char *)blob->bytes, blob->length);
	blob_drop(blob);
	if (err) {
		spool_list_fini(&spools);
		return;
	}
	spool_list_fini(&catalog->spools);
	catalog->spools = spools;
}

static void on_spools(void *context, const struct broker_reply *reply, int fd)
{
	if (fd >= 0)
		take_spools(context, reply, fd);
	finish_part(context);
}

static void look(struct catalog *catalog)
{
	const struct broker_question question = {.verb = BROKER_LIST}, spools = {.verb = BROKER_SPOOLS};
	uint64_t now_ns = clock_now_ns();

	if (catalog->pending)
		return;
	catalog->began_ns = now_ns;
	catalog->pending = 1; /* this function itself, so that the look is not finished before its end */
	if (catalog->setup.with_samplers) {
		if (broker_client_ask(catalog->setup.broker, &question, on_list, catalog))
			catalog->pending++;
		else
			catalog_lists_keep(&catalog->new_lists, &catalog->lists, 0, now_ns);
	}
	if (broker_client_ask(catalog->setup.broker, &spools, on_spools, catalog))
		catalog->pending++;
	if (!catalog->setup.with_samplers)
		begin_scan(catalog);
	finish_part(catalog);
}

void catalog_want(struct catalog *catalog, struct catalog_waiter *waiter, uint64_t not_before_ns)
{
	uint64_t now_ns = clock_now_ns(), fresh_ns = (uint64_t)FRESH_MS * CLOCK_NS_PER_MS;

	waiter->link = NULL;
	waiter->not_before_ns = not_before_ns ? not_before_ns : now_ns > fresh_ns ? now_ns - fresh_ns : 0;
	if (catalog->looked_ns && catalog->looked_ns >= waiter->not_before_ns) {
		waiter->ready(waiter);
		return;
	}
	join(&catalog->waiters, waiter);
	look(catalog);
}

void catalog_tend(struct catalog *catalog, uint64_t now_ns)
{
	catalog_files_tend(catalog->files, now_ns);
	if (catalog->setup.with_samplers &&
	    now_ns - catalog->looked_ns > (uint64_t)POINTS_MS * CLOCK_NS_PER_MS)
		look(catalog);
}

/* ---- what there is */

bool catalog_has_files(const struct catalog *catalog)
{
	return catalog->setup.with_files;
}

bool catalog_has_samplers(const struct catalog *catalog)
{
	return catalog->setup.with_samplers;
}

const struct catalog_process *catalog_processes(const struct catalog *catalog, size_t *count)
{
	*count = catalog->process_count;
	return catalog->processes;
}

bool catalog_is_meant(const struct catalog_process *process, const struct route *route)
{
	switch (route->scope) {
	case ROUTE_PID:
		return process->key.pid == route->pid && route->pid;
	case ROUTE_SERVICE:
		return strcmp(process->service, route->service) == 0;
	case ROUTE_ANY:
		break;
	}
	return true;
}

static bool is_meant(const struct catalog_process *process, const struct route *route, bool foreign)
{
	return catalog_is_meant(process, route) && (foreign || !process->key.foreign);
}

/* foreign: choose among processes of other users' samplers too. */
static size_t choose(const struct catalog *catalog, const struct route *route, bool foreign,
    const struct catalog_process **chosen, size_t room)
{
	size_t count = 0;
	bool live = false;

	for (size_t i = 0; i < catalog->process_count; i++)
		live = live ||
		    (catalog->processes[i].listed && is_meant(&catalog->processes[i], route, foreign));
	for (size_t i = 0; i < catalog->process_count; i++) {
		const struct catalog_process *process = &catalog->processes[i];

		/* If there are live processes, ended ones are history. */
		if (!is_meant(process, route, foreign) || (live && !process->listed))
			continue;
		if (count < room)
			chosen[count] = process;
		count++;
	}
	return count;
}

size_t catalog_choose(const struct catalog *catalog, const struct route *route,
    const struct catalog_process **chosen, size_t room)
{
	/* A client that asks for the only process gets it, whatever other users profile. */
	if (route->scope == ROUTE_ANY && choose(catalog, route, false, chosen, room) == 1)
		return 1;
	return choose(catalog, route, true, chosen, room);
}

const struct catalog_file *catalog_file(const struct catalog *catalog, uint64_t number)
{
	struct catalog_file *const *files;
	size_t count = catalog_files_all(catalog->files, &files);

	for (size_t i = 0; i < count; i++)
		if (files[i]->number == number && files[i]->state == CATALOG_FILE_READ && files[i]->there)
			return files[i];
	return NULL;
}

const struct catalog_lists *catalog_lists(const struct catalog *catalog)
{
	return &catalog->lists;
}

const struct spool_list *catalog_spools(const struct catalog *catalog)
{
	return &catalog->spools;
}

struct catalog *catalog_new(const struct catalog_setup *setup)
{
	struct catalog *catalog = calloc(1, sizeof(*catalog));

	if (!catalog)
		return NULL;
	catalog->setup = *setup;
	catalog->files = catalog_files_new(setup->broker, setup->jobs, on_scanned, catalog);
	if (catalog->files)
		return catalog;
	free(catalog);
	return NULL;
}
