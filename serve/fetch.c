/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/fetch.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX (UINT64_C(256) << 20)

int fetch_init(struct fetch *fetch, size_t count)
{
	fetch->items = calloc(count + 1, sizeof(*fetch->items));
	fetch->count = fetch->items ? count : 0;
	fetch->pending = 0;
	fetch->bytes = 0;
	return fetch->items ? 0 : -ENOMEM;
}

static void settle(struct fetch_item *item, struct blob *profile, int error, const char *why)
{
	struct fetch *fetch = item->fetch;

	fetch->bytes += profile ? profile->length : 0;
	if (fetch->bytes > FETCH_BYTES_MAX) {
		blob_drop(profile);
		profile = NULL;
		error = -EFBIG;
		why = "the profiles together are too large";
	}
	item->pending = false;
	item->profile = profile;
	item->error = error;
	snprintf(item->why, sizeof(item->why), "%.255s", error ? why : "");
	if (--fetch->pending == 0)
		fetch->done(fetch);
}

static void on_snapshot(struct snapshots_waiter *waiter, struct blob *profile, int error, const char *why)
{
	struct fetch_item *item = (struct fetch_item *)((char *)waiter - offsetof(struct fetch_item, waiter));

	settle(item, profile, error, why);
}

static void on_reply(void *context, const struct broker_reply *reply, int fd)
{
	struct fetch_item *item = context;
	int error = reply->error ? reply->error : fd < 0 ? -EPROTO : 0;
	struct blob *profile = NULL;

	item->request = 0;
	if (!error && reply->bytes > FILE_BYTES_MAX)
		error = -EFBIG;
	if (!error)
		profile = blob_read(fd, reply->bytes, &error);
	else if (fd >= 0)
		close(fd);
	if (profile)
		profile->foreign = item->key.foreign;
	settle(item, profile, error, reply->text[0] ? reply->text : strerror(-error));
}

static void begin_one(struct fetch_item *item)
{
	struct fetch *fetch = item->fetch;
	struct broker_request request = {.server = item->key.server,
	    .pid = item->key.pid,
	    .file = item->file,
	    .duration_ms = item->duration_ms,
	    .verb = item->kind == FETCH_CPU ? BROKER_CPU : BROKER_OPEN};

	if (item->kind == FETCH_READY) {
		settle(item, item->profile, 0, "");
	} else if (item->kind == FETCH_NOW) {
		item->waiter.got = on_snapshot;
		snapshots_want(fetch->snapshots, &item->key, &item->waiter, fetch->not_before_ns);
	} else {
		item->request = broker_client_ask(fetch->broker, &request, on_reply, item);
		if (!item->request)
			settle(item, NULL, -EBUSY, "too many others are waiting");
	}
}

/* What cannot wait for its turn was refused: the others' time would be for nothing. */
static bool is_refused(const struct fetch *fetch)
{
	for (size_t i = 0; i < fetch->count; i++)
		if (fetch->items[i].kind == FETCH_CPU && fetch->items[i].error)
			return true;
	return false;
}

static void cancel(struct fetch *fetch)
{
	for (size_t i = 0; i < fetch->count; i++) {
		struct fetch_item *item = &fetch->items[i];

		if (item->pending && item->kind == FETCH_NOW)
			snapshots_leave(&item->waiter);
		if (item->pending && item->request)
			broker_client_cancel(fetch->broker, item->request);
		item->pending = false;
		item->request = 0;
	}
}

void fetch_begin(struct fetch *fetch)
{
	/* One more than there are, so that nothing is done before all have begun. */
	fetch->pending = fetch->count + 1;
	for (size_t i = 0; i < fetch->count; i++) {
		fetch->items[i].fetch = fetch;
		fetch->items[i].pending = true;
		begin_one(&fetch->items[i]);
	}
	fetch->pending--;
	if (is_refused(fetch)) {
		cancel(fetch);
		fetch->pending = 0;
	}
	if (fetch->pending == 0)
		fetch->done(fetch);
}

void fetch_fini(struct fetch *fetch)
{
	cancel(fetch);
	for (size_t i = 0; i < fetch->count; i++)
		blob_drop(fetch->items[i].profile);
	free(fetch->items);
	fetch->items = NULL;
	fetch->count = fetch->pending = 0;
}

const struct fetch_item *fetch_failure(const struct fetch *fetch)
{
	for (size_t i = 0; i < fetch->count; i++)
		if (fetch->items[i].error)
			return &fetch->items[i];
	return NULL;
}

bool fetch_is_gone(const struct fetch_item *item)
{
	return item->error == -ESRCH || item->error == -ENOENT;
}

const struct fetch_item *fetch_failure_of_sum(const struct fetch *fetch)
{
	size_t gone = 0;

	for (size_t i = 0; i < fetch->count; i++) {
		if (fetch->items[i].error && !fetch_is_gone(&fetch->items[i]))
			return &fetch->items[i];
		gone += fetch->items[i].error != 0;
	}
	return gone == fetch->count ? fetch_failure(fetch) : NULL;
}

unsigned int fetch_status(const struct fetch_item *failure)
{
	switch (failure->error) {
	case -EBUSY:
		return 503;
	case -ESRCH:
	case -ENOENT:
		return 404;
	case -EFBIG:
		return 413;
	default:
		return 500;
	}
}
