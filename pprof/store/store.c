/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store.h"

#include "pprof/codec/file.h"
#include "pprof/store/store_folder.h"
#include "pprof/store/store_plan.h"
#include "pprof/store/store_state.h"
#include "pprof/text/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
	THIN_S = 60,          /* least time between two looks at the whole store */
	THIN_COST_PART = 200, /* and at least so many times the CPU time of the last look */
	IDLE_S = 600,         /* while nothing is published: as long as the shortest slot of thinning */
	SHORT_S = 10,         /* time until the next try after a look that made no room */
	LOCK_WAIT_MS = 30000, /* far longer than any of us holds the lock */
	ROOM_TRIES = 3, /* a profile needs room for its service's folder, its day's folder and the file */
};

/* ---- looking at the whole store */

/* How many bytes a file system with less than `free` left wants back. need: bytes that are to be written. */
static uint64_t wanted_bytes(const struct store *store, int fd, uint64_t need)
{
	struct statvfs fs;
	uint64_t block, reserve, left;

	if (!store->free_percent || fstatvfs(fd, &fs) != 0)
		return 0;
	block = fs.f_frsize ? fs.f_frsize : fs.f_bsize;
	reserve = fs.f_blocks * block / 100 * store->free_percent + need;
	left = fs.f_bavail * block;
	return left < reserve ? reserve - left : 0;
}

static bool is_known(const struct store *store, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && store->shared->looked_s && store->shared->device == st.st_dev &&
	    store->shared->inode == st.st_ino;
}

static bool is_due(const struct store *store, int64_t now_s)
{
	return store->shared->limits != store->limits || now_s >= store->shared->look_s ||
	    now_s < store->shared->looked_s; /* the clock was set back */
}

/* Under the lock. *free_bytes: what the file system wants back, less what it has got. */
static int look(struct store *store, int fd, uint64_t need, uint64_t free_bytes)
{
	struct store_shared *shared = store->shared;
	struct store_sweep sweep = {
	    .now_s = time(NULL),
	    .days = store->days,
	    .disk_bytes = store->disk_bytes,
	    .need_bytes = need,
	    .free_bytes = free_bytes,
	};
	uint64_t began_ns = clock_thread_cpu_ns();
	struct stat st;
	int err = store_sweep_run(&sweep, fd);

	if (err)
		return err;
	shared->used_bytes = sweep.used_bytes;
	shared->thinned += sweep.thinned;
	shared->thinned_bytes += sweep.thinned_bytes;
	shared->evicted += sweep.evicted;
	shared->evicted_bytes += sweep.evicted_bytes;
	shared->stuck = sweep.stuck;
	shared->limits = store->limits;
	shared->looked_s = sweep.now_s;
	shared->look_s = sweep.now_s + THIN_S +
	    (int64_t)((clock_thread_cpu_ns() - began_ns) * THIN_COST_PART / CLOCK_NS_PER_S);
	if (fstat(fd, &st) == 0) {
		shared->device = st.st_dev;
		shared->inode = st.st_ino;
	}
	return 0;
}

static int is_short(const struct store *store, int fd, uint64_t need, uint64_t *wanted)
{
	*wanted = wanted_bytes(store, fd, need);
	if (store->shared->used_bytes + need > store->disk_bytes)
		return -EDQUOT;
	return *wanted ? -ENOSPC : 0;
}

/* Under the lock: makes room for so many bytes. While there is no room, not every profile costs a look. */
static int make_room(struct store *store, int fd, uint64_t need)
{
	struct store_shared *shared = store->shared;
	bool known = is_known(store, fd);
	int64_t now_s = time(NULL);
	uint64_t wanted;
	int err = is_short(store, fd, need, &wanted), look_err;

	if (known && !is_due(store, now_s) &&
	    (!err || (now_s >= shared->short_s && now_s < shared->short_s + SHORT_S)))
		return err;
	look_err = look(store, fd, need, wanted ? wanted + store->disk_bytes / 64 : 0);
	if (look_err)
		return look_err;
	err = is_short(store, fd, need, &wanted);
	shared->short_s = err ? now_s : 0;
	return err;
}

/* ---- publishing */

/* The place of a path that store_claim() has made. */
struct location {
	char root[PATH_MAX];
	char service[SERVICE_NAME_BYTES], day[STORE_NAME_DAY_BYTES], file[STORE_NAME_FILE_BYTES];
};

/* Cuts the last part off. False if the rest does not fit, or if there is no other part. */
static bool cut(char *path, char *part, size_t part_bytes)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path || strlen(slash + 1) >= part_bytes)
		return false;
	strcpy(part, slash + 1);
	*slash = '\0';
	return true;
}

static bool locate(struct location *location, const char *path)
{
	struct store_name name;

	if (strlen(path) >= sizeof(location->root))
		return false;
	strcpy(location->root, path);
	return cut(location->root, location->file, sizeof(location->file)) &&
	    cut(location->root, location->day, sizeof(location->day)) &&
	    cut(location->root, location->service, sizeof(location->service)) &&
	    service_name_is_good(location->service) && store_name_parse(location->day, location->file, &name);
}

static uint64_t size_of(int folder_fd, const char *name)
{
	struct stat st;

	return fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
	    ? store_plan_charge((uint64_t)st.st_size)
	    : 0;
}

/* Publishes the file in the folder of its day. *added: the bytes that it adds. */
static int write_file(struct store *store, int day_fd, const struct location *at, const void *data,
    size_t bytes, uint64_t *added)
{
	uint64_t before = size_of(day_fd, at->file);
	int err = file_publish_at(day_fd, at->file, data, bytes, STORE_FOLDER_FILE_MODE, store->group, 0);

	if (!err)
		*added += store_plan_charge(bytes) - before;
	return err;
}

/* Makes the folders that are missing. *added: the bytes that folders and file take; it may be negative. */
static int write_below(struct store *store, int root_fd, const struct location *at, const void *data,
    size_t bytes, uint64_t *added)
{
	bool made[2] = {false, false};
	int service_fd = store_folder_open(root_fd, at->service, store->group, &made[0]), day_fd, err;

	if (service_fd < 0)
		return service_fd;
	day_fd = store_folder_open(service_fd, at->day, store->group, &made[1]);
	close(service_fd);
	*added = (made[0] + made[1]) * (uint64_t)STORE_FOLDER_CHARGE;
	if (day_fd < 0)
		return day_fd;
	err = write_file(store, day_fd, at, data, bytes, added);
	close(day_fd);
	return err;
}

/* Has the file system no room: no blocks, no inodes, or a quota? */
static bool is_full(int err)
{
	return err == -ENOSPC || err == -EDQUOT;
}

/* The disk is full although `free` allowed the file, or without `free`: old snapshots make room. Where inodes
 * are missing, one removed file may not be enough for the folders: so it is tried again as long as a file was
 * removed. *added: the bytes since the last look. */
static int write_again(struct store *store, int root_fd, const struct location *at, const void *data,
    size_t bytes, uint64_t *added)
{
	uint64_t need = store_plan_charge(bytes) + 2 * (uint64_t)STORE_FOLDER_CHARGE, before;
	int err, tries = 0;

	do {
		before = store->shared->evicted;
		err = look(store, root_fd, need, need);
		if (err)
			break;
		*added = 0;
		err = write_below(store, root_fd, at, data, bytes, added);
	} while (is_full(err) && store->shared->evicted > before && ++tries < ROOM_TRIES);
	return err;
}

static int write_locked(
    struct store *store, int root_fd, const struct location *at, bool is_own, const void *data, size_t bytes)
{
	uint64_t need = store_plan_charge(bytes) + 2 * (uint64_t)STORE_FOLDER_CHARGE, added = 0;
	int err = is_own ? make_room(store, root_fd, need) : 0;

	if (err)
		return err;
	err = write_below(store, root_fd, at, data, bytes, &added);
	if (is_full(err) && is_own)
		err = write_again(store, root_fd, at, data, bytes, &added);
	if (is_own)
		store->shared->used_bytes += added;
	return err;
}

/* A path in another store was named before the configuration was read again. */
static int publish(const struct sink *sink, const char *path, const void *data, size_t bytes)
{
	struct store *store = (struct store *)sink;
	struct location at;
	bool made, is_own;
	struct store_lock lock;
	int err;

	if (!locate(&at, path))
		return -EINVAL;
	is_own = strcmp(at.root, store->path) == 0;
	err = store_folder_lock(&lock, at.root, LOCK_WAIT_MS, store->group, &made);
	if (is_own && made)
		store->shared->looked_s = 0;
	if (!err) {
		err = write_locked(store, lock.root_fd, &at, is_own, data, bytes);
		store_folder_unlock(&lock);
	}
	if (err) {
		store->shared->failed++;
	} else {
		store->shared->written++;
		store->shared->written_bytes += bytes;
	}
	return err;
}

const struct sink *store_sink(struct store *store)
{
	return &store->sink;
}

/* ---- the whole */

bool store_is_overdue(const struct store *store, int64_t now_s)
{
	const struct store_shared *shared = store->shared;

	return is_due(store, now_s) &&
	    (shared->limits != store->limits || now_s >= shared->looked_s + IDLE_S ||
	        now_s < shared->looked_s);
}

int store_thin(struct store *store)
{
	struct store_lock lock;
	int err;

	if (!is_due(store, time(NULL)))
		return 0;
	err = store_folder_lock(&lock, store->path, 0, store->group, NULL);
	if (err)
		return err == -EWOULDBLOCK ? 0
		                           : err; /* the process that has the lock looks after the store */
	if (is_due(store, time(NULL)))
		err = look(store, lock.root_fd, 0, wanted_bytes(store, lock.root_fd, 0));
	store_folder_unlock(&lock);
	return err;
}

void store_count(const struct store *store, struct store_counters *counters)
{
	const struct store_shared *shared = store->shared;

	*counters = (struct store_counters){
	    .disk_bytes = shared->used_bytes,
	    .written = shared->written,
	    .written_bytes = shared->written_bytes,
	    .thinned = shared->thinned,
	    .thinned_bytes = shared->thinned_bytes,
	    .evicted = shared->evicted,
	    .evicted_bytes = shared->evicted_bytes,
	    .failed = shared->failed,
	    .stuck = shared->stuck,
	};
}

int store_change(struct store *store, const struct store_settings *settings)
{
	char *path = strdup(settings->path);
	size_t length = path ? strlen(path) : 0;

	if (!path)
		return -ENOMEM;
	while (length > 1 && path[length - 1] == '/')
		path[--length] = '\0';
	free(store->path);
	store->path = path;
	store->disk_bytes = settings->disk_bytes;
	store->days = settings->days;
	store->free_percent = settings->free_percent;
	store->limits++;
	return 0;
}

int store_open(struct store **made, const struct store_settings *settings)
{
	struct store *store = calloc(1, sizeof(*store));
	struct store_lock lock;
	bool folder_made;
	int err;

	*made = NULL;
	if (!store)
		return -ENOMEM;
	store->sink.publish = publish;
	store->group = store_folder_group();
	store->shared =
	    mmap(NULL, sizeof(*store->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (store->shared == MAP_FAILED || store_change(store, settings)) {
		store->shared = store->shared == MAP_FAILED ? NULL : store->shared;
		store_close(store);
		return -ENOMEM;
	}
	*made = store;
	err = store_folder_lock(&lock, store->path, LOCK_WAIT_MS, store->group, &folder_made);
	if (err)
		return err;
	err = look(store, lock.root_fd, 0, 0);
	if (!err)
		err = file_check_folder(lock.root_fd);
	store_folder_unlock(&lock);
	return err;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	if (store->shared)
		munmap(store->shared, sizeof(*store->shared));
	store_claims_fini(&store->claims);
	free(store->path);
	free(store);
}
