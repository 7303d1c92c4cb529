/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/loader_lock.h"

#include "preload/lookup.h"
#include "preload/thread.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

enum { GLOBAL_BYTES = 4096 }; /* of glibc's struct rtld_global, at most 4.3 KiB, the lock is in the first 3 */

static pthread_mutex_t *lock;
static int (*mutex_lock)(pthread_mutex_t *mutex);
static int (*mutex_unlock)(pthread_mutex_t *mutex);

/* The beginning of glibc's pthread_mutex_t, the same since 2003: the ABI of statically initialized ones. */
struct mutex {
	int lock;
	unsigned int count;
	int owner;
	unsigned int users;
	int kind;
};

static bool is_held(const struct mutex *mutex, uint32_t tid)
{
	return mutex->lock != 0 && mutex->count >= 1 && mutex->count < 1000 &&
	    (uint32_t)mutex->owner == tid && mutex->users == 1 && mutex->kind == PTHREAD_MUTEX_RECURSIVE;
}

/* The last of the loader's recursive mutexes that the thread holds, and how many these are. */
static pthread_mutex_t *last_held(uintptr_t start, uint32_t tid, uint32_t *count)
{
	pthread_mutex_t *found = NULL;
	uintptr_t low, high; /* of the loader */

	lookup_extent((const void *)start, &low, &high);
	const uintptr_t end = high - start < GLOBAL_BYTES ? high : start + GLOBAL_BYTES;
	*count = 0;
	for (uintptr_t at = start; at + sizeof(struct mutex) <= end; at += sizeof(void *))
		if (is_held((const struct mutex *)at, tid)) {
			found = (pthread_mutex_t *)at;
			++*count;
		}
	return found;
}

bool loader_lock_find(uint32_t tid)
{
	struct lookup wishes[] = {
	    {.name = "_rtld_global"}, {.name = "pthread_mutex_lock"}, {.name = "pthread_mutex_unlock"}};

	lookup_next(wishes, 3);
	if (!wishes[0].found || !wishes[1].found || !wishes[2].found || !tid)
		return false;
	uint32_t count;
	pthread_mutex_t *found = last_held((uintptr_t)wishes[0].found, tid, &count);
	if (count != 1)
		return false;
	mutex_lock = (int (*)(pthread_mutex_t *))(uintptr_t)wishes[1].found;
	mutex_unlock = (int (*)(pthread_mutex_t *))(uintptr_t)wishes[2].found;
	lock = found;
	return lock != NULL;
}

bool loader_lock_take(void)
{
	return lock && mutex_lock(lock) == 0;
}

void loader_lock_release(void)
{
	mutex_unlock(lock);
}

/* ---- of the list of objects: glibc's dl_load_write_lock, which stands behind dl_load_lock */

static uintptr_t global;
static pthread_mutex_t *list;
static int (*list_try)(pthread_mutex_t *mutex);
static int (*list_unlock)(pthread_mutex_t *mutex);
static _Atomic uint32_t list_holder; /* the thread that takes, has or releases the lock by these functions */

static int find_list(struct dl_phdr_info *info, size_t size, void *argument)
{
	uint32_t count; /* it has both if dlopen is running our constructor */

	list = last_held(global, thread_tid(), &count);
	return 1;
}

void loader_lock_find_list(void)
{
	struct lookup wishes[] = {
	    {.name = "_rtld_global"}, {.name = "pthread_mutex_trylock"}, {.name = "pthread_mutex_unlock"}};

	if (list || !thread_libc_is_glibc() || !thread_tid())
		return;
	lookup_next(wishes, 3);
	global = (uintptr_t)wishes[0].found;
	list_try = (int (*)(pthread_mutex_t *))(uintptr_t)wishes[1].found;
	list_unlock = (int (*)(pthread_mutex_t *))(uintptr_t)wishes[2].found;
	if (global && list_try && list_unlock)
		lookup_each(find_list, NULL);
}

bool loader_lock_try_list(void)
{
	const uint32_t tid = thread_tid();
	uint32_t nobody = 0;

	/* Without that function there are no threads. A program's own dl_iterate_phdr may take no lock. */
	if (!thread_libc_is_glibc() || !tid || (list_try && !list) ||
	    !atomic_compare_exchange_strong(&list_holder, &nobody, tid))
		return false;
	if (!list || list_try(list) == 0)
		return true;
	atomic_store(&list_holder, 0);
	return false;
}

void loader_lock_release_list(void)
{
	if (list)
		list_unlock(list);
	atomic_store(&list_holder, 0);
}

/* Whoever held it to change the list keeps it, as without us. But where it has just been taken or is about to
 * be released, no owner is noted, and nothing is changed. */
void loader_lock_forked(uint32_t parent_tid)
{
	const uint32_t holder = atomic_exchange(&list_holder, 0);

	if (!holder || holder == parent_tid || !list)
		return;
	struct mutex *mutex = (struct mutex *)(void *)list;
	if (mutex->owner != 0 && (uint32_t)mutex->owner != holder)
		return;
	mutex->lock = 0;
	mutex->count = 0;
	mutex->owner = 0;
	mutex->users = 0;
}
