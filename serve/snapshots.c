/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/snapshots.h"

#include "pprof/text/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
	struct entry *next;
	struct snapshots *all;
	struct process_key key;
	uint64_t question; /* to the broker; 0: none is being made */
	uint64_t asked_ns; /* when the sampler was asked */
	uint64_t seen_ns;  /* when a list had the process, or a client asked for it */
	struct snapshots_waiter *waiters;
	struct kept_snapshot kept[SNAPSHOTS_KEPT]; /* oldest first */
	size_t count;
};

struct snapshots {
	struct broker_client *broker;
	struct entry *entries;
	size_t count, bytes;
	uint64_t last_ns;
};

struct snapshots *snapshots_new(struct broker_client *broker)
{
	struct snapshots *snapshots = calloc(1, sizeof(*snapshots));

	if (snapshots)
		snapshots->broker = broker;
	return snapshots;
}

static void drop_kept(struct entry *entry, size_t index)
{
	entry->all->bytes -= entry->kept[index].profile->length;
	blob_drop(entry->kept[index].profile);
	memmove(&entry->kept[index], &entry->kept[index + 1],
	    (entry->count - index - 1) * sizeof(entry->kept[0]));
	entry->count--;
}

static void entry_free(struct entry *entry)
{
	while (entry->count)
		drop_kept(entry, entry->count - 1);
	broker_client_cancel(entry->all->broker, entry->question);
	entry->all->count--;
	free(entry);
}

void snapshots_free(struct snapshots *snapshots)
{
	while (snapshots && snapshots->entries) {
		struct entry *entry = snapshots->entries;

		snapshots->entries = entry->next;
		entry_free(entry);
	}
	free(snapshots);
}

static bool is_same(const struct process_key *a, const struct process_key *b)
{
	return a->server == b->server && a->pid == b->pid && a->start_unix_ns == b->start_unix_ns;
}

static struct entry *find(const struct snapshots *snapshots, const struct process_key *key)
{
	struct entry *entry = snapshots->entries;

	while (entry && !is_same(&entry->key, key))
		entry = entry->next;
	return entry;
}

static struct entry *find_or_make(struct snapshots *snapshots, const struct process_key *key)
{
	struct entry *entry = find(snapshots, key);

	if (entry || snapshots->count >= (key->foreign ? SNAPSHOTS_PROCESSES / 2 : SNAPSHOTS_PROCESSES))
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = *key;
	entry->all = snapshots;
	entry->next = snapshots->entries;
	snapshots->entries = entry;
	snapshots->count++;
	return entry;
}

/* ---- waiters */

void snapshots_leave(struct snapshots_waiter *waiter)
{
	if (!waiter->link)
		return;
	*waiter->link = waiter->next;
	if (waiter->next)
		waiter->next->link = waiter->link;
	waiter->link = NULL;
}

static void join(struct entry *entry, struct snapshots_waiter *waiter)
{
	waiter->next = entry->waiters;
	waiter->link = &entry->waiters;
	if (waiter->next)
		waiter->next->link = &waiter->next;
	entry->waiters = waiter;
}

/* Gives the profile to those for whom it is new enough. got() may wait for the next one. */
static void give(struct entry *entry, struct blob *profile, int error, const char *why)
{
	uint64_t asked_ns = entry->asked_ns;
	struct snapshots_waiter *served = NULL;

	for (struct snapshots_waiter *waiter = entry->waiters, *next; waiter; waiter = next) {
		next = waiter->next;
		if (!error && waiter->not_before_ns > asked_ns)
			continue;
		snapshots_leave(waiter);
		waiter->next = served;
		waiter->link = &served;
		if (served)
			served->link = &waiter->next;
		served = waiter;
	}
	while (served) {
		struct snapshots_waiter *waiter = served;

		snapshots_leave(waiter);
		waiter->got(waiter, blob_hold(profile), error, why);
	}
}

/* ---- making */

/* Drops the least missed snapshot of the process with most, but not its first and not its last. foreign: only
 * of other users' samplers. */
static bool drop_least_missed(struct snapshots *snapshots, bool foreign)
{
	struct entry *largest = NULL;
	size_t least = 0;

	for (struct entry *entry = snapshots->entries; entry; entry = entry->next)
		if (entry->count > 1 && entry->key.foreign == foreign &&
		    (!largest || entry->count > largest->count))
			largest = entry;
	if (!largest)
		return false;
	for (size_t i = 1; i + 1 < largest->count; i++) {
		int64_t gap = largest->kept[i + 1].unix_ns - largest->kept[i - 1].unix_ns;

		if (!least || gap < largest->kept[least + 1].unix_ns - largest->kept[least - 1].unix_ns)
			least = i;
	}
	drop_kept(largest, least);
	return true;
}

/* If each process has only one: drops the oldest. */
static bool drop_oldest(struct snapshots *snapshots, bool foreign)
{
	struct entry *oldest = NULL;

	for (struct entry *entry = snapshots->entries; entry; entry = entry->next)
		if (entry->count && entry->key.foreign == foreign &&
		    (!oldest || entry->kept[0].now_ns < oldest->kept[0].now_ns))
			oldest = entry;
	if (oldest)
		drop_kept(oldest, 0);
	return oldest != NULL;
}

/* Makes room for a new snapshot. Snapshots by other users' samplers go first, and push out no others. */
static void make_room(struct snapshots *snapshots, size_t bytes, bool foreign)
{
	bool dropped = true;

	while (dropped && snapshots->bytes + bytes > SNAPSHOTS_KEPT_BYTES)
		dropped = drop_least_missed(snapshots, true) || drop_oldest(snapshots, true) ||
		    (!foreign && (drop_least_missed(snapshots, false) || drop_oldest(snapshots, false)));
}

static void keep(struct entry *entry, struct blob *profile)
{
	struct snapshots *all = entry->all;
	const bool foreign = entry->key.foreign;

	if (entry->count == SNAPSHOTS_KEPT) { /* drops every second one, as a time line does */
		for (size_t i = 1; i < entry->count; i++)
			drop_kept(entry, i);
	}
	make_room(all, profile->length, foreign);
	if (foreign && all->bytes + profile->length > SNAPSHOTS_KEPT_BYTES)
		return;
	entry->kept[entry->count++] =
	    (struct kept_snapshot){clock_unix_ns(), entry->asked_ns, blob_hold(profile)};
	all->bytes += profile->length;
}

static void begin(struct entry *entry);

static void on_profile(void *context, const struct broker_reply *reply, int fd)
{
	struct entry *entry = context;
	struct blob *profile = NULL;
	int error = reply->error ? reply->error : fd < 0 ? -EPROTO : 0;

	entry->question = 0;
	if (!error)
		profile = blob_read(fd, reply->bytes, &error);
	else if (fd >= 0)
		close(fd);
	if (profile) {
		profile->foreign = entry->key.foreign;
		entry->all->last_ns = clock_now_ns() - entry->asked_ns;
		keep(entry, profile);
	}
	give(entry, profile, error, reply->text[0] ? reply->text : strerror(-error));
	blob_drop(profile);
	if (entry->waiters && !entry->question)
		begin(entry);
}

static void begin(struct entry *entry)
{
	const struct broker_question question = {
	    .verb = BROKER_PROFILE, .server = entry->key.server, .pid = entry->key.pid};

	entry->asked_ns = clock_now_ns();
	entry->seen_ns = entry->asked_ns;
	entry->question = broker_client_ask(entry->all->broker, &question, on_profile, entry);
	if (!entry->question)
		give(entry, NULL, -EBUSY, "too many other requests are waiting");
}

void snapshots_want(struct snapshots *snapshots, const struct process_key *key,
    struct snapshots_waiter *waiter, uint64_t not_before_ns)
{
	struct entry *entry = find_or_make(snapshots, key);
	uint64_t now_ns = clock_now_ns(), fresh_ns = (uint64_t)SNAPSHOTS_FRESH_MS * CLOCK_NS_PER_MS;

	waiter->link = NULL;
	waiter->not_before_ns = not_before_ns ? not_before_ns : now_ns > fresh_ns ? now_ns - fresh_ns : 0;
	if (!entry) {
		waiter->got(waiter, NULL, -ENOMEM, "out of memory");
		return;
	}
	if (entry->count && entry->kept[entry->count - 1].now_ns >= waiter->not_before_ns) {
		waiter->got(waiter, blob_hold(entry->kept[entry->count - 1].profile), 0, "");
		return;
	}
	join(entry, waiter);
	if (!entry->question)
		begin(entry);
}

size_t snapshots_kept(
    const struct snapshots *snapshots, const struct process_key *key, const struct kept_snapshot **kept)
{
	const struct entry *entry = find(snapshots, key);

	*kept = entry ? entry->kept : NULL;
	return entry ? entry->count : 0;
}

void snapshots_sweep(struct snapshots *snapshots,
    bool (*is_there)(const void *context, const struct process_key *key), const void *context,
    uint64_t now_ns)
{
	struct entry **link = &snapshots->entries;

	while (*link) {
		struct entry *entry = *link;

		if (entry->waiters || entry->question || is_there(context, &entry->key))
			entry->seen_ns = now_ns;
		if (entry->seen_ns + SNAPSHOTS_REMEMBERED_NS >= now_ns) {
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		entry_free(entry);
	}
}

uint64_t snapshots_last_ns(const struct snapshots *snapshots)
{
	return snapshots->last_ns;
}

/* ---- what the clients of delta_heap got */

struct delta_client {
	struct delta_client *next; /* the client that has asked last comes first */
	char name[DELTA_CLIENTS_NAME_BYTES];
	struct process_key key;
	struct blob *profile;
};

struct delta_clients {
	struct delta_client *first;
	size_t count, bytes;
	int64_t since_unix_ns; /* an earlier server may have sent profiles of processes that began before */
	int64_t forgotten_unix_ns; /* when a client was last forgotten; 0: never */
};

struct delta_clients *delta_clients_new(void)
{
	struct delta_clients *clients = calloc(1, sizeof(*clients));

	if (clients)
		clients->since_unix_ns = clock_unix_ns();
	return clients;
}

static void forget_client(struct delta_clients *clients, struct delta_client **link)
{
	struct delta_client *client = *link;

	*link = client->next;
	clients->count--;
	clients->bytes -= client->profile->length;
	blob_drop(client->profile);
	free(client);
}

static struct delta_client **find_client(
    struct delta_clients *clients, const char *name, const struct process_key *key)
{
	struct delta_client **link = &clients->first;

	while (*link &&
	    ((*link)->key.pid != key->pid || (*link)->key.start_unix_ns != key->start_unix_ns ||
	        (*link)->key.server != key->server || strcmp((*link)->name, name) != 0))
		link = &(*link)->next;
	return link;
}

struct blob *delta_clients_last(
    struct delta_clients *clients, const char *name, const struct process_key *key, bool *unknown)
{
	struct delta_client **link = find_client(clients, name, key);

	*unknown = !*link &&
	    (key->start_unix_ns < clients->since_unix_ns || key->start_unix_ns < clients->forgotten_unix_ns);
	return *link ? blob_hold((*link)->profile) : NULL;
}

static void make_room_for_clients(struct delta_clients *clients)
{
	while (clients->count > DELTA_CLIENTS_MAX ||
	    (clients->bytes > DELTA_CLIENTS_BYTES && clients->count > 1)) {
		struct delta_client **link = &clients->first;

		while ((*link)->next)
			link = &(*link)->next;
		forget_client(clients, link);
		clients->forgotten_unix_ns = clock_unix_ns();
	}
}

void delta_clients_note(
    struct delta_clients *clients, const char *name, const struct process_key *key, struct blob *profile)
{
	struct delta_client **link = find_client(clients, name, key), *client;

	if (*link)
		forget_client(clients, link);
	client = calloc(1, sizeof(*client));
	if (!client) {
		clients->forgotten_unix_ns = clock_unix_ns();
		return;
	}
	snprintf(client->name, sizeof(client->name), "%s", name);
	client->key = *key;
	client->profile = blob_hold(profile);
	client->next = clients->first;
	clients->first = client;
	clients->count++;
	clients->bytes += profile->length;
	make_room_for_clients(clients);
}
