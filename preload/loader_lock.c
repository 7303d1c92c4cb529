/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/loader_lock.h"

#include "preload/lookup.h"

#include <pthread.h>
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

bool loader_lock_find(uint32_t tid)
{
	struct lookup wishes[] = {
	    {.name = "_rtld_global"}, {.name = "pthread_mutex_lock"}, {.name = "pthread_mutex_unlock"}};
	lookup_next(wishes, 3);
	uintptr_t start = (uintptr_t)wishes[0].found;
	if (!start || !wishes[1].found || !wishes[2].found || !tid)
		return false;
	pthread_mutex_t *found = NULL;
	for (uintptr_t at = start; at < start + GLOBAL_BYTES; at += sizeof(void *)) {
		if (!is_held((const struct mutex *)at, tid))
			continue;
		if (found)
			return false;
		found = (pthread_mutex_t *)at;
	}
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
