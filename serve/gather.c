/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/gather.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX (UINT64_C(256) << 20)

int gather_init(struct gather *gather, size_t count)
{
	gather->items = calloc(count + 1, sizeof(*gather->items));
	gather->count = gather->items ? count : 0;
	gather->pending = 0;
	gather->bytes = 0;
	return gather->items ? 0 : -ENOMEM;
}

static void settle(struct gather_item *item, struct blob *profile, int error, const char *why)
{
	struct gather *gather = item->gather;

	gather->bytes += profile ? profile->length : 0;
	if (gather->bytes > GATHER_BYTES_MAX) {
		blob_drop(profile);
		profile = NULL;
		error = -EFBIG;
		why = "the profiles together are too large";
	}
	item->pending = false;
	item->profile = profile;
	item->error = error;
	snprintf(item->why, sizeof(item->why), "%.255s", error ? why : "");
	if (--gather->pending == 0)
		gather->done(gather);
}

static void on_snapshot(struct snapshots_waiter *waiter, struct blob *profile, int error, const char *why)
{
	struct gather_item *item =
	    (struct gather_item *)((char *)waiter - offsetof(struct gather_item, waiter));

	settle(item, profile, error, why);
}

static void on_reply(void *context, const struct broker_reply *reply, int fd)
{
	struct gather_item *item = context;
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

static void begin_one(struct gather_item *item)
{
	struct gather *gather = item->gather;
	struct broker_request request = {.server = item->key.server,
	    .pid = item->key.pid,
	    .file = item->file,
	    .duration_ms = item->duration_ms,
	    .verb = item->kind == GATHER_CPU ? BROKER_CPU : BROKER_OPEN};

	if (item->kind == GATHER_READY) {
		settle(item, item->profile, 0, "");
	} else if (item->kind == GATHER_NOW) {
		item->waiter.got = on_snapshot;
		snapshots_want(gather->snapshots, &item->key, &item->waiter, gather->not_before_ns);
	} else {
		item->request = broker_client_ask(gather->broker, &request, on_reply, item);
		if (!item->request)
			settle(item, NULL, -EBUSY, "too many others are waiting");
	}
}

/* What cannot wait for its turn was refused: the others' time would be for nothing. */
static bool is_refused(const struct gather *gather)
{
	for (size_t i = 0; i < gather->count; i++)
		if (gather->items[i].kind == GATHER_CPU && gather->items[i].error)
			return true;
	return false;
}

static void cancel(struct gather *gather)
{
	for (size_t i = 0; i < gather->count; i++) {
		struct gather_item *item = &gather->items[i];

		if (item->pending && item->kind == GATHER_NOW)
			snapshots_leave(&item->waiter);
		if (item->pending && item->request)
			broker_client_cancel(gather->broker, item->request);
		item->pending = false;
		item->request = 0;
	}
}

void gather_begin(struct gather *gather)
{
	/* One more than there are, so that nothing is done before all have begun. */
	gather->pending = gather->count + 1;
	for (size_t i = 0; i < gather->count; i++) {
		gather->items[i].gather = gather;
		gather->items[i].pending = true;
		begin_one(&gather->items[i]);
	}
	gather->pending--;
	if (is_refused(gather)) {
		cancel(gather);
		gather->pending = 0;
	}
	if (gather->pending == 0)
		gather->done(gather);
}

void gather_fini(struct gather *gather)
{
	cancel(gather);
	for (size_t i = 0; i < gather->count; i++)
		blob_drop(gather->items[i].profile);
	free(gather->items);
	gather->items = NULL;
	gather->count = gather->pending = 0;
}

const struct gather_item *gather_failure(const struct gather *gather)
{
	for (size_t i = 0; i < gather->count; i++)
		if (gather->items[i].error)
			return &gather->items[i];
	return NULL;
}

bool gather_is_gone(const struct gather_item *item)
{
	return item->error == -ESRCH || item->error == -ENOENT;
}

const struct gather_item *gather_failure_of_sum(const struct gather *gather)
{
	size_t gone = 0;

	for (size_t i = 0; i < gather->count; i++) {
		if (gather->items[i].error && !gather_is_gone(&gather->items[i]))
			return &gather->items[i];
		gone += gather->items[i].error != 0;
	}
	return gone == gather->count ? gather_failure(gather) : NULL;
}

unsigned int gather_status(const struct gather_item *failure)
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
