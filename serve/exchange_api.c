/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_api.h"

#include "serve/api_answer.h"
#include "serve/api_openapi.h"
#include "serve/debug_answer.h"
#include "serve/exchange.h"
#include "serve/exchange_lists.h"
#include "serve/profile_choice.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERIES_MAX = 48 /* profiles of a time line or of growth */ };

static void refuse(struct exchange *exchange, unsigned int status, const char *text)
{
	exchange->server->refused += status == 503;
	reply_json_error(&exchange->reply, status, text);
	exchange_finish(exchange);
}

static const char *parameter(const struct exchange *exchange, const char *name)
{
	const char *value = parameters_get(&exchange->route.parameters, name);

	return value && *value ? value : NULL;
}

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

/* ---- the answer */

struct api_work {
	struct exchange_work base;
	struct api_question question;
	bool is_file; /* a profile is the answer, no view of it */
	char *query, *title;
	struct blob *blobs[EXCHANGE_PROCESSES_MAX];
	size_t columns[EXCHANGE_PROCESSES_MAX];
	char ids[SERIES_MAX][PROFILE_CHOICE_ID_BYTES], id[PROFILE_CHOICE_ID_BYTES];
	struct api_process process;
	char program[CATALOG_NAME_BYTES], service[CATALOG_NAME_BYTES], host[65], session[64];
	struct api_point *points;
};

/* Of several processes their sum. */
static void answer_file(struct reply *reply, const struct api_question *question)
{
	const struct debug_plan plan = {.kind = DEBUG_HEAP, .name = "profile.pb.gz"};
	struct debug_input *inputs = calloc(question->count, sizeof(*inputs));

	for (size_t i = 0; i < question->count && inputs; i++)
		inputs[i].last = question->blobs[i];
	if (inputs)
		debug_answer_make(reply, &plan, inputs, question->count, "");
	else
		reply_json_error(reply, 500, "out of memory");
	free(inputs);
}

static void run(struct exchange_work *base)
{
	struct api_work *work = (struct api_work *)base;

	if (work->is_file)
		answer_file(&base->reply, &work->question);
	else
		api_answer_make(&base->reply, &work->question);
}

static void free_data(struct exchange_work *base)
{
	struct api_work *work = (struct api_work *)base;

	for (size_t i = 0; i < work->question.count; i++)
		blob_drop(work->blobs[i]);
	free(work->query);
	free(work->title);
	free(work->points);
}

static struct api_work *work_new(const struct exchange *exchange, const char *title)
{
	struct api_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->query = strdup(exchange->route.query);
	work->title = strdup(title);
	if (!work->query || !work->title) {
		free_data(&work->base);
		free(work);
		return NULL;
	}
	work->base.run = run;
	work->base.free_data = free_data;
	work->question = (struct api_question){.query = work->query,
	    .title = work->title,
	    .blobs = work->blobs,
	    .columns = work->columns,
	    .ids = work->ids,
	    .process = &work->process};
	return work;
}

static void on_gathered(struct gather *gather)
{
	struct exchange *exchange = gather->context;
	const struct gather_item *failure = gather_failure(gather);
	struct api_work *work = (struct api_work *)exchange->planned;

	if (failure) {
		refuse(exchange, gather_status(failure), failure->why);
		return;
	}
	exchange->planned = NULL;
	for (size_t i = 0; i < gather->count; i++)
		work->blobs[i] = blob_hold(gather->items[i].profile);
	work->question.count = gather->count;
	exchange_submit(exchange, &work->base);
}

/* ---- which profiles */

/* at=: "1795348560.25" -> ns since 1970; 0: not given. False: it is no time, and the reply says so. */
static bool take_at(struct exchange *exchange, int64_t *at_ns)
{
	const char *text = parameter(exchange, "at");
	char *end = NULL;
	double seconds = text ? strtod(text, &end) : 0;

	*at_ns = 0;
	if (!text)
		return true;
	if (*end || !(seconds > 0 && seconds < 9e9)) {
		refuse(exchange, 400, "at: not a time; allowed: seconds since 1970, with decimals if wanted");
		return false;
	}
	*at_ns = (int64_t)llround(seconds * 1e9);
	return true;
}

/* state=: which of a process' profiles, by its kind. */
static bool take_state(struct exchange *exchange, bool *peak)
{
	const char *text = parameter(exchange, "state");

	*peak = text && strcmp(text, "peak") == 0;
	if (!text || *peak || strcmp(text, "newest") == 0)
		return true;
	refuse(exchange, 400, "state: allowed: newest, peak");
	return false;
}

static bool take_id(struct exchange *exchange, const char *name, struct gather_item *item)
{
	const char *id = parameter(exchange, name);
	char text[160];

	if (!id) {
		snprintf(text, sizeof(text),
		    "%s= is missing: the id of a profile, as /api/v1/profiles has it", name);
		refuse(exchange, 400, text);
		return false;
	}
	if (profile_choice_by_id(exchange->server->catalog, exchange->server->snapshots, id, item))
		return true;
	refuse(exchange, 404, "there is no profile of that id, any more");
	return false;
}

/* Those of pid= or service=, or the one that there is. 0: a reply was made. */
static size_t choose(struct exchange *exchange, const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX])
{
	size_t count =
	    catalog_choose(exchange->server->catalog, &exchange->route, chosen, EXCHANGE_PROCESSES_MAX);

	if (!count)
		refuse(exchange, 404, "there is no such process");
	else if (count > 1 && exchange->route.scope == ROUTE_ANY)
		refuse(exchange, 400, "there are several: choose by id=, pid= or service=");
	else if (count > EXCHANGE_PROCESSES_MAX)
		refuse(exchange, 413, "too many processes for one answer");
	else
		return count;
	return 0;
}

/* The one process that is meant, or whose profile id= is. NULL: a reply was made. */
static const struct catalog_process *choose_one(struct exchange *exchange)
{
	const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX], *owner;
	const char *id = parameter(exchange, "id");
	size_t count;

	if (id) {
		owner = profile_choice_owner(exchange->server->catalog, id);
		if (!owner)
			refuse(exchange, 404, "there is no profile of that id, any more");
		return owner;
	}
	count = choose(exchange, chosen);
	if (count < 2)
		return count ? chosen[0] : NULL;
	refuse(exchange, 400,
	    exchange->route.scope == ROUTE_PID
	        ? "several processes had this pid: choose by id=, of a profile of it"
	        : "the service has several processes: choose one by pid=");
	return NULL;
}

static void begin(struct exchange *exchange, struct api_work *work)
{
	exchange->planned = &work->base;
	exchange->last.done = on_gathered;
	exchange->last.context = exchange;
	exchange->last.broker = exchange->server->broker;
	exchange->last.snapshots = exchange->server->snapshots;
	gather_begin(&exchange->last);
}

static void abandon(struct api_work *work)
{
	free_data(&work->base);
	free(work);
}

static bool prepare(struct exchange *exchange, size_t count, const char *title, struct api_work **work)
{
	*work = work_new(exchange, title);
	if (*work && gather_init(&exchange->last, count) == 0)
		return true;
	if (*work)
		abandon(*work);
	refuse(exchange, 500, "out of memory");
	return false;
}

/* One column: a profile by its id, or those of the processes that are meant. */
static void view_one(struct exchange *exchange, enum api_view view)
{
	const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX];
	bool by_id = parameter(exchange, "id") != NULL, peak;
	size_t count, kept = 0;
	struct api_work *work;
	int64_t at_ns;

	if (!take_at(exchange, &at_ns) || !take_state(exchange, &peak))
		return;
	count = by_id ? 1 : choose(exchange, chosen);
	if (!count || !prepare(exchange, count, by_id ? "" : chosen[0]->service, &work))
		return;
	work->question.view = view;
	work->question.column_count = 1;
	work->is_file = is_called(exchange, "profile");
	if (by_id && !take_id(exchange, "id", &exchange->last.items[0])) {
		abandon(work);
		return;
	}
	for (size_t i = 0; i < count && !by_id; i++)
		kept += profile_choice_of(
		    chosen[i], exchange->server->snapshots, at_ns, peak, &exchange->last.items[kept]);
	exchange->last.count = by_id ? 1 : kept;
	if (exchange->last.count) {
		begin(exchange, work);
		return;
	}
	abandon(work);
	refuse(exchange, 404, "there is no such profile");
}

static void view_diff(struct exchange *exchange)
{
	struct api_work *work;

	if (!prepare(exchange, 2, "", &work))
		return;
	work->question.view = API_DIFF;
	work->question.column_count = 2;
	work->columns[1] = 1;
	if (take_id(exchange, "base", &exchange->last.items[0]) &&
	    take_id(exchange, "new", &exchange->last.items[1]))
		begin(exchange, work);
	else
		abandon(work);
}

/* The states of a process by time, with the present one at the end. */
static size_t fill_series(
    struct exchange *exchange, const struct catalog_process *process, struct api_work *work, bool with_now)
{
	struct gather_item *items = exchange->last.items;
	size_t count =
	    profile_choice_series(process, exchange->server->snapshots, items, work->ids, SERIES_MAX - 1);

	if (with_now && process->listed) {
		items[count].kind = GATHER_NOW;
		items[count].key = process->key;
		snprintf(work->ids[count], sizeof(work->ids[count]), "now-%d", (int)process->key.pid);
		count++;
	}
	exchange->last.count = count;
	return count;
}

static void view_growth(struct exchange *exchange)
{
	const struct catalog_process *process = choose_one(exchange);
	struct api_work *work;
	size_t count;

	if (!process || !prepare(exchange, SERIES_MAX, process->service, &work))
		return;
	count = fill_series(exchange, process, work, true);
	for (size_t i = 0; i < count; i++)
		work->columns[i] = i;
	work->question.view = API_GROWTH;
	work->question.column_count = count;
	if (count) {
		begin(exchange, work);
		return;
	}
	abandon(work);
	refuse(exchange, 404, "there is no profile of this process");
}

static void timeline(struct exchange *exchange)
{
	const struct catalog_process *process = choose_one(exchange);
	struct api_work *work;

	if (!process || !prepare(exchange, SERIES_MAX, process->service, &work))
		return;
	fill_series(exchange, process, work, false);
	work->question.kind = API_ANSWER_TIMELINE;
	work->question.points = work->points = exchange_lists_points(process, &work->question.point_count, 0);
	snprintf(work->program, sizeof(work->program), "%s", process->program);
	snprintf(work->service, sizeof(work->service), "%s", process->service);
	snprintf(work->host, sizeof(work->host), "%s", process->host);
	snprintf(work->session, sizeof(work->session), "%s", process->session);
	exchange_lists_id(process, work->id);
	work->process = (struct api_process){.id = work->id,
	    .pid = process->key.pid,
	    .program = work->program,
	    .service = work->service,
	    .host = work->host,
	    .session = work->session,
	    .start_ns = process->start_ns,
	    .running = process->listed != NULL,
	    .rss_bytes = process->listed ? (int64_t)process->listed->rss_bytes : -1,
	    .profile_count = process->file_count};
	begin(exchange, work);
}

/* ---- a snapshot as a file */

static void on_snapshot(void *context, const struct broker_reply *reply, int fd)
{
	struct exchange *exchange = context;

	exchange->request = 0;
	if (fd >= 0)
		close(fd);
	if (reply->error) {
		refuse(exchange, reply->error == -EBUSY ? 503 : 500, reply->text);
		return;
	}
	exchange_lists_written(&exchange->reply, reply->text);
	exchange_finish(exchange);
}

static void snapshot(struct exchange *exchange)
{
	const struct catalog_process *process = choose_one(exchange);

	if (!process)
		return;
	if (!process->listed) {
		refuse(exchange, 404, "the process is not profiled any more");
		return;
	}
	const struct broker_request request = {
	    .verb = BROKER_SNAPSHOT, .server = process->key.server, .pid = process->key.pid};
	exchange->request = broker_client_ask(exchange->server->broker, &request, on_snapshot, exchange);
	if (!exchange->request)
		refuse(exchange, 503, "too many others are waiting");
}

void exchange_api(struct exchange *exchange)
{
	enum api_view view = API_TOP;

	if (is_called(exchange, "processes") || is_called(exchange, "profiles")) {
		exchange_lists(exchange);
		exchange_finish(exchange);
	} else if (is_called(exchange, "timeline")) {
		timeline(exchange);
	} else if (is_called(exchange, "snapshot")) {
		snapshot(exchange);
	} else if (!is_called(exchange, "profile") && api_view_find(exchange->route.name, &view)) {
		refuse(exchange, 404, "there is no such view");
	} else if (view == API_DIFF) {
		view_diff(exchange);
	} else if (view == API_GROWTH) {
		view_growth(exchange);
	} else {
		view_one(exchange, view);
	}
}
