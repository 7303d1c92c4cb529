/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_api.h"

#include "serve/api_openapi.h"
#include "serve/api_work.h"
#include "serve/exchange_growth.h"
#include "serve/exchange_lists.h"
#include "serve/exchange_timeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_called(const struct exchange *exchange, const char *name)
{
	return strcmp(exchange->route.name, name) == 0;
}

bool exchange_api_is_static(struct exchange *exchange)
{
	static const char *const lists[] = {"processes", "profiles", "timeline", "profile"};
	enum api_view view;
	bool known = api_view_find(exchange->route.name, &view) == 0 || is_called(exchange, "snapshot");

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		known = known || is_called(exchange, lists[i]);
	if (is_called(exchange, "openapi.json"))
		reply_text(&exchange->reply, 200, REPLY_JSON, "%s", api_openapi());
	else if (!known)
		reply_json_error(
		    &exchange->reply, 404, "there is no such view; /api/v1/openapi.json lists all");
	else if (is_called(exchange, "snapshot") && !exchange->trusted)
		reply_json_error(&exchange->reply, 403,
		    "a snapshot may be asked for only where --token-file demands a token");
	else
		return false;
	return true;
}

/* ---- which profiles */

/* at=: "1795348560.25" -> ns since 1970; 0: not given. False: it is no time, and the reply says so. */
static bool take_at(struct exchange *exchange, int64_t *at_ns)
{
	const char *text = api_work_parameter(exchange, "at");
	char *end = NULL;
	double seconds = text ? strtod(text, &end) : 0;

	*at_ns = 0;
	if (!text)
		return true;
	if (*end || !(seconds > 0 && seconds < 9e9)) {
		api_work_refuse(
		    exchange, 400, "at: not a time; allowed: seconds since 1970, with decimals if wanted");
		return false;
	}
	*at_ns = (int64_t)llround(seconds * 1e9);
	return true;
}

/* state=: which of a process' profiles, by its kind. */
static bool take_state(struct exchange *exchange, bool *peak)
{
	const char *text = api_work_parameter(exchange, "state");

	*peak = text && strcmp(text, "peak") == 0;
	if (!text || *peak || strcmp(text, "newest") == 0)
		return true;
	api_work_refuse(exchange, 400, "state: allowed: newest, peak");
	return false;
}

static bool take_id(struct exchange *exchange, const char *name, struct fetch_item *item)
{
	const char *id = api_work_parameter(exchange, name);
	char text[160];

	if (!id) {
		snprintf(text, sizeof(text),
		    "%s= is missing: the id of a profile, as /api/v1/profiles has it", name);
		api_work_refuse(exchange, 400, text);
		return false;
	}
	if (profile_choice_by_id(exchange->server->catalog, exchange->server->snapshots, id, item))
		return true;
	api_work_refuse(exchange, 404, "there is no profile of that id, any more");
	return false;
}

/* Is the answer the page's graph, of what is in use now or was at a moment? */
static bool has_peak_beside(const struct exchange *exchange, enum api_view view)
{
	const char *layout = api_work_parameter(exchange, "layout"),
	           *state = api_work_parameter(exchange, "state");

	return view == API_TREE && layout && strcmp(layout, "columns") == 0 &&
	    (!state || strcmp(state, "peak") != 0);
}

/* The peaks of these processes, as the second column, if each has one. */
static void take_peaks(struct exchange *exchange, struct api_work *work,
    const struct catalog_process *const *processes, size_t count)
{
	struct fetch *fetch = &exchange->last;
	const size_t first = fetch->count;

	for (size_t i = 0; i < count; i++) {
		if (!profile_choice_of(
		        processes[i], exchange->server->snapshots, 0, true, &fetch->items[first + i])) {
			fetch->count = first;
			return;
		}
		work->columns[first + i] = 1;
		work->profile_owners[first + i] = count + i; /* one that is gone takes no other with it */
		fetch->count++;
	}
	work->question.column_count = 2;
}

/* One column: a profile by its id, or those of the processes that are meant. Of the page's graph a second
 * one, of their peaks. */
static void view_one(struct exchange *exchange, enum api_view view)
{
	const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX];
	bool by_id = api_work_parameter(exchange, "id") != NULL, peak;
	size_t count, kept = 0;
	struct api_work *work;
	int64_t at_ns;

	if (!take_at(exchange, &at_ns) || !take_state(exchange, &peak))
		return;
	if (by_id && exchange->route.scope == ROUTE_SERVICE && !is_called(exchange, "profile") &&
	    exchange_growth_moment(api_work_parameter(exchange, "id"), &at_ns)) {
		exchange_growth_view(exchange, view, &at_ns, 1);
		return;
	}
	if (by_id)
		chosen[0] =
		    profile_choice_owner(exchange->server->catalog, api_work_parameter(exchange, "id"));
	count = by_id ? 1 : api_work_processes(exchange, chosen);
	if (!count || !api_work_prepare(exchange, 2 * count, by_id ? "" : chosen[0]->service, &work))
		return;
	work->question.view = view;
	work->question.column_count = 1;
	work->is_file = is_called(exchange, "profile");
	if (by_id && !take_id(exchange, "id", &exchange->last.items[0])) {
		api_work_abandon(work);
		return;
	}
	for (size_t i = 0; i < count && !by_id; i++) {
		work->profile_owners[kept] = kept;
		kept += profile_choice_of(
		    chosen[i], exchange->server->snapshots, at_ns, peak, &exchange->last.items[kept]);
	}
	exchange->last.count = by_id ? 1 : kept;
	if (has_peak_beside(exchange, view) && exchange->last.count == count && chosen[0])
		take_peaks(exchange, work, chosen, count);
	if (exchange->last.count) {
		api_work_begin(exchange, work);
		return;
	}
	api_work_abandon(work);
	api_work_refuse(exchange, 404, "there is no such profile");
}

static void view_diff(struct exchange *exchange)
{
	const char *base = api_work_parameter(exchange, "base"), *new = api_work_parameter(exchange, "new");
	int64_t moments_ns[2];
	struct api_work *work;

	if (exchange->route.scope == ROUTE_SERVICE && base &&
	    new &&exchange_growth_moment(base, &moments_ns[0]) &&
	    exchange_growth_moment(new, &moments_ns[1])) {
		exchange_growth_view(exchange, API_DIFF, moments_ns, 2);
		return;
	}
	if (!api_work_prepare(exchange, 2, "", &work))
		return;
	work->question.view = API_DIFF;
	work->question.column_count = 2;
	work->columns[1] = 1;
	if (take_id(exchange, "base", &exchange->last.items[0]) &&
	    take_id(exchange, "new", &exchange->last.items[1]))
		api_work_begin(exchange, work);
	else
		api_work_abandon(work);
}

/* ---- a snapshot as a file */

static void on_snapshot(void *context, const struct broker_reply *reply, int fd)
{
	struct exchange *exchange = context;

	exchange->request = 0;
	if (fd >= 0)
		close(fd);
	if (reply->error) {
		api_work_refuse(exchange, reply->error == -EBUSY ? 503 : 500, reply->text);
		return;
	}
	exchange_lists_written(&exchange->reply, reply->text);
	exchange_finish(exchange);
}

static void snapshot(struct exchange *exchange)
{
	const struct catalog_process *process = api_work_process(exchange);

	if (!process)
		return;
	if (!process->listed) {
		api_work_refuse(exchange, 404, "the process is not profiled any more");
		return;
	}
	const struct broker_request request = {
	    .verb = BROKER_SNAPSHOT, .server = process->key.server, .pid = process->key.pid};
	exchange->request = broker_client_ask(exchange->server->broker, &request, on_snapshot, exchange);
	if (!exchange->request)
		api_work_refuse(exchange, 503, "too many others are waiting");
}

void exchange_api(struct exchange *exchange)
{
	enum api_view view = API_TOP;

	if (is_called(exchange, "processes") || is_called(exchange, "profiles")) {
		exchange_lists(exchange);
		exchange_finish(exchange);
	} else if (is_called(exchange, "timeline")) {
		exchange_timeline(exchange);
	} else if (is_called(exchange, "snapshot")) {
		snapshot(exchange);
	} else if (!is_called(exchange, "profile") && api_view_find(exchange->route.name, &view)) {
		api_work_refuse(exchange, 404, "there is no such view");
	} else if (view == API_DIFF) {
		view_diff(exchange);
	} else if (view == API_GROWTH) {
		exchange_growth(exchange);
	} else {
		view_one(exchange, view);
	}
}
