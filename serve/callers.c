/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/callers.h"

#include "sampler/linux/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct caller {
	struct caller *next; /* who has asked last comes first */
	char name[CALLERS_NAME_BYTES];
	struct process_key key;
	struct blob *profile;
};

struct callers {
	struct caller *first;
	size_t count, bytes;
	int64_t since_unix_ns;     /* processes that began before may have been asked for before */
	int64_t forgotten_unix_ns; /* likewise: somebody was forgotten then; 0: nobody */
};

struct callers *callers_new(void)
{
	struct callers *callers = calloc(1, sizeof(*callers));

	if (callers)
		callers->since_unix_ns = clock_unix_ns();
	return callers;
}

static void forget(struct callers *callers, struct caller **link)
{
	struct caller *caller = *link;

	*link = caller->next;
	callers->count--;
	callers->bytes -= caller->profile->length;
	blob_drop(caller->profile);
	free(caller);
}

void callers_free(struct callers *callers)
{
	while (callers && callers->first)
		forget(callers, &callers->first);
	free(callers);
}

static struct caller **find(struct callers *callers, const char *name, const struct process_key *key)
{
	struct caller **link = &callers->first;

	while (*link &&
	    ((*link)->key.pid != key->pid || (*link)->key.start_unix_ns != key->start_unix_ns ||
	        (*link)->key.server != key->server || strcmp((*link)->name, name) != 0))
		link = &(*link)->next;
	return link;
}

struct blob *callers_last(
    struct callers *callers, const char *name, const struct process_key *key, bool *unknown)
{
	struct caller **link = find(callers, name, key);

	*unknown = !*link &&
	    (key->start_unix_ns < callers->since_unix_ns || key->start_unix_ns < callers->forgotten_unix_ns);
	return *link ? blob_hold((*link)->profile) : NULL;
}

static void make_room(struct callers *callers)
{
	while (callers->count > CALLERS_MAX || (callers->bytes > CALLERS_BYTES && callers->count > 1)) {
		struct caller **link = &callers->first;

		while ((*link)->next)
			link = &(*link)->next;
		forget(callers, link);
		callers->forgotten_unix_ns = clock_unix_ns();
	}
}

void callers_note(
    struct callers *callers, const char *name, const struct process_key *key, struct blob *profile)
{
	struct caller **link = find(callers, name, key), *caller;

	if (*link)
		forget(callers, link);
	caller = calloc(1, sizeof(*caller));
	if (!caller) {
		callers->forgotten_unix_ns = clock_unix_ns();
		return;
	}
	snprintf(caller->name, sizeof(caller->name), "%s", name);
	caller->key = *key;
	caller->profile = blob_hold(profile);
	caller->next = callers->first;
	callers->first = caller;
	callers->count++;
	callers->bytes += profile->length;
	make_room(callers);
}
