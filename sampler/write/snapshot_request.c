/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/snapshot_request.h"

#include "pprof/text/text.h"

#include <stdio.h>
#include <string.h>

static bool is_asked(enum request_state state)
{
	return state == REQUEST_ASKED || state == REQUEST_WRITING_ASKED;
}

static bool is_writing(enum request_state state)
{
	return state == REQUEST_WRITING || state == REQUEST_WRITING_ASKED;
}

/* The drawing in the header, and nothing else. */
static enum request_state next(enum request_state state, enum request_event event)
{
	switch (event) {
	case REQUEST_ON_ASK:
		return is_writing(state) ? REQUEST_WRITING_ASKED : REQUEST_ASKED;
	case REQUEST_ON_DUE:
		return state == REQUEST_NONE ? REQUEST_DUE : state;
	case REQUEST_ON_NOT_DUE:
		return state == REQUEST_DUE ? REQUEST_NONE : state;
	case REQUEST_ON_TAKE:
		return state == REQUEST_DUE || state == REQUEST_ASKED ? REQUEST_WRITING : state;
	case REQUEST_ON_BESIDE:
		return is_asked(state) ? REQUEST_WRITING_ASKED : REQUEST_WRITING;
	case REQUEST_ON_DROP:
		return is_writing(state) ? REQUEST_WRITING : REQUEST_NONE;
	case REQUEST_ON_WRITTEN:
		return state == REQUEST_WRITING      ? REQUEST_NONE
		    : state == REQUEST_WRITING_ASKED ? REQUEST_ASKED
		                                     : state;
	}
	return state;
}

void snapshot_request_step(struct snapshot_request *request, enum request_event event)
{
	request->state = next(request->state, event);
	if (!is_asked(request->state))
		request->by = 0;
}

bool snapshot_request_is_asked(const struct snapshot_request *request)
{
	return is_asked(request->state);
}

bool snapshot_request_ask(struct snapshot_request *request, enum snapshot_by by, const char *cause,
    const char *name, uint64_t asker)
{
	if (asker && request->asker_count == SNAPSHOT_ASKERS)
		return false;
	if (asker)
		request->askers[request->asker_count++] = asker;
	if (!snapshot_request_is_asked(request)) {
		snprintf(request->cause, sizeof(request->cause), "%s", cause);
		snprintf(request->name, sizeof(request->name), "%s", name ? name : "");
	} else if (by == SNAPSHOT_BY_THRESHOLD) {
		text_append(request->cause, sizeof(request->cause), "; %s", cause);
	}
	snapshot_request_step(request, REQUEST_ON_ASK);
	request->by |= by;
	return true;
}

uint32_t snapshot_request_take_askers(struct snapshot_request *request, uint64_t askers[SNAPSHOT_ASKERS])
{
	const uint32_t count = request->asker_count;

	memcpy(askers, request->askers, sizeof(request->askers));
	request->asker_count = 0;
	return count;
}

void snapshot_request_forget(struct snapshot_request *request, uint64_t asker)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < request->asker_count; i++)
		if (request->askers[i] != asker)
			request->askers[kept++] = request->askers[i];
	request->asker_count = kept;
}
