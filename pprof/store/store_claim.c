/* SPDX-License-Identifier: Apache-2.0 */
/* Which path a new file of the store gets, and in which service's folder. */
#include "pprof/store/store.h"

#include "pprof/store/store_name.h"
#include "pprof/store/store_state.h"
#include "pprof/table/array.h"
#include "pprof/table/index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAMES_MOST = 64,     /* names of one owner */
	NAMES_LEAST = 4,     /* the same in a small store */
	NAMES_DISK_PART = 4, /* the folders of an owner's names take at most this part of the budget */
	ROWS_MOST = 1 << 16, /* of all owners; owners are users, units and containers, not processes */
	DAY_S = 24 * 3600,
	LATELY_S = 60,
	FORGET_COUNT = 1024,
};

void store_claims_fini(struct store_claims *claims)
{
	free(claims->names);
	free(claims->paths);
	*claims = (struct store_claims){0};
}

static uint64_t hash_of(const char *text)
{
	return index_mix_bytes(index_seed(), text, strlen(text));
}

/*
 * ---- names and their owners
 *
 * A process chooses its name for free, but each name is a folder and has a share of the budget. So each owner
 * may bring in only so many names. A name belongs to its first owner until no file was named so for long
 * enough. A name that a daemon finds in the store when it starts belongs to nobody until a file is named so.
 */

static struct store_name_owner *find_name(const struct store_claims *claims, uint64_t name)
{
	for (size_t i = 0; i < claims->name_count; i++)
		if (claims->names[i].name == name)
			return &claims->names[i];
	return NULL;
}

static void forget_names(struct store_claims *claims, int64_t before_s)
{
	size_t kept = 0;

	for (size_t i = 0; i < claims->name_count; i++)
		if (claims->names[i].time_s >= before_s)
			claims->names[kept++] = claims->names[i];
	claims->name_count = kept;
}

static size_t count_names(const struct store_claims *claims, uint64_t owner)
{
	size_t count = 0;

	for (size_t i = 0; i < claims->name_count; i++)
		count += claims->names[i].owner == owner;
	return count;
}

/* May a file of now have that name? False if the owner has brought in as many names as he may, or if there is
 * no memory. */
static bool take_name(struct store *store, const char *name, const char *owner, int64_t time_s)
{
	const int64_t folders = (int64_t)store->days + 1;
	const uint64_t room = store->disk_bytes / NAMES_DISK_PART / ((uint64_t)folders * STORE_FOLDER_CHARGE);
	const size_t most = room > NAMES_MOST ? NAMES_MOST : room < NAMES_LEAST ? NAMES_LEAST : room;
	const struct store_name_owner row = {hash_of(name), hash_of(owner), time_s};
	struct store_claims *claims = &store->claims;
	struct store_name_owner *found = find_name(claims, row.name);

	if (found) {
		found->time_s = time_s;
		return true;
	}
	forget_names(claims, time_s - folders * DAY_S);
	if (count_names(claims, row.owner) >= most || claims->name_count == ROWS_MOST ||
	    array_reserve(&claims->names, &claims->name_room, claims->name_count + 1, sizeof(row)))
		return false;
	claims->names[claims->name_count++] = row;
	return true;
}

/* The folder for a name; if its owner has too many names, the folder for the rest of them. */
static void name_service(
    struct store *store, const struct store_claim *claim, char service[SERVICE_NAME_BYTES])
{
	char rest[SERVICE_NAME_BYTES];

	service_name_clean(claim->service, service);
	if (!claim->owner || !*claim->owner || take_name(store, service, claim->owner, claim->time_s))
		return;
	snprintf(rest, sizeof(rest), "others.%s", claim->owner);
	service_name_clean(rest, service);
}

/*
 * ---- paths
 *
 * No path is given out twice. A path has its second in it, so only the paths of the last seconds are kept. If
 * two paths have the same hash, the second one gets a needless number in its name.
 */

/* A path that is claimed with its time is not claimed again a minute later. */
static void forget_paths(struct store_claims *claims, int64_t time_s)
{
	size_t kept = 0;

	for (size_t i = 0; i < claims->path_count; i++)
		if (claims->paths[i].time_s > time_s - LATELY_S)
			claims->paths[kept++] = claims->paths[i];
	claims->path_count = kept;
}

/* Keeps the path. False if it was given out before. True without memory. */
static bool take_path(struct store_claims *claims, const char *path, int64_t time_s)
{
	uint64_t hash = hash_of(path);

	for (size_t i = claims->path_count; i-- > 0;)
		if (claims->paths[i].hash == hash)
			return false;
	if (claims->path_count >= FORGET_COUNT && claims->path_count % FORGET_COUNT == 0)
		forget_paths(claims, time_s);
	if (!array_reserve(
	        &claims->paths, &claims->path_room, claims->path_count + 1, sizeof(*claims->paths)))
		claims->paths[claims->path_count++] = (struct store_claimed_path){hash, time_s};
	return true;
}

int store_claim(struct store *store, const struct store_claim *claim, char *path, size_t path_bytes)
{
	struct store_name name = {.time_s = claim->time_s, .pid = claim->pid};
	char service[SERVICE_NAME_BYTES], day[STORE_NAME_DAY_BYTES], file[STORE_NAME_FILE_BYTES];
	char plain[STORE_NAME_KIND_BYTES];
	int length;

	name_service(store, claim, service);
	store_name_of_snapshot(claim->snapshot, claim->oom, &name);
	memcpy(plain, name.kind, sizeof(plain));
	for (unsigned int number = 1;; number++) {
		if (number > 1)
			snprintf(name.kind, sizeof(name.kind), "%.84s-%u", plain, number);
		if (store_name_format(&name, day, file) != 0)
			return -EINVAL;
		length = snprintf(path, path_bytes, "%s/%s/%s/%s", store->path, service, day, file);
		if (length < 0 || (size_t)length >= path_bytes)
			return -ENAMETOOLONG;
		if (take_path(&store->claims, path, claim->time_s))
			return 0;
	}
}
