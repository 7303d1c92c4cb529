/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/debuginfod.h"

#include "pprof/codec/folder.h"
#include "pprof/text/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URLS    "DEBUGINFOD_URLS"
#define SILENCE "DEBUGINFOD_TIMEOUT"
#define RETRIES "DEBUGINFOD_RETRY_LIMIT"
#define TOTAL   "DEBUGINFOD_MAXTIME"
#define CACHE   "DEBUGINFOD_CACHE_PATH"

struct client; /* libdebuginfod's */

static struct {
	bool begun;
	struct client *client;
	int (*find)(struct client *client, const unsigned char *build_id, int build_id_bytes, char **path);
	int error;          /* -errno: why no server is asked any more; 0: servers are asked */
	int64_t deadline_s; /* of CLOCK_MONOTONIC */
	unsigned asked, found;
} state;

static int64_t now_s(void)
{
	return (int64_t)(clock_now_ns() / CLOCK_NS_PER_S);
}

bool debuginfod_has_servers(void)
{
	const char *urls = getenv(URLS);

	return urls && urls[strspn(urls, " ")];
}

static long seconds_from(const char *variable, long otherwise)
{
	const char *value = getenv(variable);
	long seconds = value ? strtol(value, NULL, 10) : 0;

	return seconds > 0 ? seconds : otherwise;
}

/* Called about once a second during a download; a result other than 0 ends it. */
static int on_progress(struct client *client, long a, long b)
{
	return now_s() >= state.deadline_s;
}

/* The library makes and removes files in its cache, and follows links. */
static int choose_cache(void)
{
	struct folder folder;
	char path[PATH_MAX];

	if (folder_of_user(CACHE, NULL, "", path, sizeof(path)) == 0)
		return 0;
	if (folder_of_user("XDG_CACHE_HOME", ".cache", "/debuginfod_client", path, sizeof(path)) ||
	    folder_open(&folder, NULL, path, FOLDER_OWN | FOLDER_MAKE, 0700))
		return -EPERM;
	folder_close(&folder);
	return setenv(CACHE, path, 1);
}

/*
 * The library is loaded only when it is needed, as libdw does: it brings curl and its start-up cost. One
 * client for all files keeps the connection. Never closed: curl leaves threads' exit handlers behind, and the
 * process ends soon.
 */
static int begin(void)
{
	void *library;
	struct client *(*new_client)(void) = NULL;
	void (*set_progress)(struct client * client, int (*progress)(struct client *, long, long)) = NULL;
	char silence[16];

	if (!debuginfod_has_servers())
		return -EDESTADDRREQ;
	if (choose_cache())
		return -EPERM;
	/* The library's default is 90 s, three times for each file. */
	snprintf(silence, sizeof(silence), "%d", DEBUGINFOD_SILENCE_SECONDS);
	setenv(SILENCE, silence, 0);
	setenv(RETRIES, "0", 0);
	state.deadline_s = now_s() + seconds_from(TOTAL, DEBUGINFOD_TOTAL_SECONDS);
	library = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!library)
		return -ELIBACC;
	*(void **)&new_client = dlsym(library, "debuginfod_begin");
	*(void **)&set_progress = dlsym(library, "debuginfod_set_progressfn");
	*(void **)&state.find = dlsym(library, "debuginfod_find_debuginfo");
	if (!new_client || !set_progress || !state.find)
		return -ELIBBAD;
	state.client = new_client();
	if (!state.client)
		return -ENOMEM;
	set_progress(state.client, on_progress);
	return 0;
}

int debuginfod_open(const uint8_t *build_id, size_t build_id_bytes)
{
	int fd;

	if (!state.begun) {
		state.begun = true;
		state.error = begin();
	}
	state.asked++;
	if (!state.error && now_s() >= state.deadline_s)
		state.error = -ETIME;
	if (state.error)
		return state.error;
	fd = state.find(state.client, build_id, (int)build_id_bytes, NULL);
	if (fd >= 0)
		state.found++;
	else if (now_s() >= state.deadline_s)
		state.error = -ETIME;
	else if (fd != -ENOENT)
		state.error = fd;
	return fd;
}

bool debuginfod_describe(char *text, size_t text_bytes)
{
	const char *why = state.error == -EDESTADDRREQ ? "$" URLS " names no server"
	    : state.error == -ELIBACC                  ? "libdebuginfod.so.1 is not installed"
	    : state.error == -ETIME                    ? "no more time"
	    : state.error == -EPERM                    ? "no cache folder of our own"
	                                               : strerror(-state.error);

	if (state.asked == 0)
		return false;
	snprintf(text, text_bytes, "debuginfod: %u of %u debug files%s%s", state.found, state.asked,
	    state.error ? "; stopped asking: " : "", state.error ? why : "");
	return true;
}
