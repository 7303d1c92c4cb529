/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap.h: functions with which a program controls the heap profiler, if it runs under one.
 *
 * This header is all that a program needs: there is nothing to link. Without `heaptap record` or the daemon
 * every call does nothing. The profiler's library is found when a program first calls one of these functions,
 * and only then, so they are not for signal handlers; any thread may call them. C99 and C++.
 *
 *     #include <heaptap.h>
 *
 *     load_index();
 *     heaptap_snapshot("index loaded");
 */
#ifndef PROTO_HEAPTAP_H
#define PROTO_HEAPTAP_H

#include <dlfcn.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct heaptap_api {
	unsigned int version; /* 1; later versions only add members */
	int (*snapshot)(const char *name);
	void (*start)(void);
	void (*stop)(void);
	void (*report_alloc)(const void *pointer, size_t bytes);
	void (*report_free)(void *pointer, size_t bytes);
};

/* Internal, do not call. Returns the library's table of functions; NULL if the library is not loaded. */
static inline const struct heaptap_api *heaptap_find(void)
{
	static const struct heaptap_api *api;
	static int looked;

	if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
		/* A null handle is RTLD_DEFAULT in glibc and musl; its name needs _GNU_SOURCE. */
		__atomic_store_n(
		    &api, (const struct heaptap_api *)dlsym((void *)0, "heaptap_api"), __ATOMIC_RELAXED);
		__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&api, __ATOMIC_RELAXED);
}

/*
 * Writes a snapshot of this process' heap as it is now, next to the periodic ones and numbered with them;
 * `name` (NULL: none) becomes part of the file's name. Waits until the profiler has read its books, not for
 * the file, but for that of the snapshot before: up to 2 s, usually a few milliseconds; and not at all as
 * long as the profiler has not answered an earlier call that has waited in vain. Returns 1 if they were read,
 * 0 if not: not profiled, the profiler is busy or gone, or it refuses, because beyond the first 16 a process
 * gets one in a second.
 */
static inline int heaptap_snapshot(const char *name)
{
	const struct heaptap_api *api = heaptap_find();

	return api ? api->snapshot(name) : 0;
}

/*
 * heaptap_stop stops the sampling of allocations in this process and in the children that it forks from then
 * on; heaptap_start starts it (again). What is allocated while it is stopped is not in the profile; frees are
 * always recorded. `heaptap record --paused` starts programs stopped.
 */
static inline void heaptap_start(void)
{
	const struct heaptap_api *api = heaptap_find();

	if (api)
		api->start();
}

static inline void heaptap_stop(void)
{
	const struct heaptap_api *api = heaptap_find();

	if (api)
		api->stop();
}

/*
 * For allocators inside the program (pools, arenas, slabs), of which the profiler would see only the few
 * large blocks that they allocate: reports each block that they give out and get back. `pointer` is that
 * block's address, and no two blocks may be live at the same one. If the pool's memory comes from malloc,
 * call heaptap_report_free on it right after it is allocated, so that its bytes are not counted twice.
 */
static inline void heaptap_report_alloc(const void *pointer, size_t bytes)
{
	const struct heaptap_api *api = heaptap_find();

	if (api)
		api->report_alloc(pointer, bytes);
}

static inline void heaptap_report_free(void *pointer, size_t bytes)
{
	const struct heaptap_api *api = heaptap_find();

	if (api)
		api->report_free(pointer, bytes);
}

#ifdef __cplusplus
}
#endif

#endif
