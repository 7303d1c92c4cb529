/* SPDX-License-Identifier: Apache-2.0 */
/* /debug/pprof: the endpoints of Go's net/http/pprof, and what delta_heap adds to them. */
#include "pprof/text/clock.h"
#include "pprof/text/utf8.h"
#include "serve/debug_answer.h"
#include "serve/endpoint_list.h"
#include "serve/process_profiles.h"
#include "serve/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CMDLINE_BYTES_MAX (UINT64_C(1) << 20)

_Static_assert((int)BROKER_CLIENT_CPU_AT_ONCE == 8, "the number is said to users");

/* Each process has one item: the profile that is asked for, or the first of a difference. The last profiles
 * of a difference are behind these, in the same order. */
struct debug_task {
	struct task base;
	struct debug_plan plan;
	size_t process_count;
	struct debug_input *inputs; /* what the answer is made of */
	size_t input_count;
	char *query;
	char client[CLIENT_NAME_BYTES]; /* that asks for delta_heap */
};

static void free_data(struct task *base)
{
	struct debug_task *task = (struct debug_task *)base;

	for (size_t i = 0; i < task->input_count; i++) {
		blob_drop(task->inputs[i].first);
		blob_drop(task->inputs[i].last);
	}
	free(task->inputs);
	free(task->query);
}

/* ---- which process */

/* A sampler of another user may have made the name. */
static void print_name(FILE *out, const char *name)
{
	while (*name)
		name = utf8_put(out, name, '?');
}

static void print_paths(FILE *out, const struct catalog_process *processes, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (processes[i].key.pid) {
			fprintf(out, "/pid/%d/debug/pprof/%s\t", (int)processes[i].key.pid, name);
			print_name(out, processes[i].service);
			putc('\n', out);
		}
	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		while (same < i && strcmp(processes[same].service, processes[i].service) != 0)
			same++;
		if (same == i) {
			fputs("/service/", out);
			print_name(out, processes[i].service);
			fprintf(out, "/debug/pprof/%s\n", name);
		}
	}
}

/* Lists the paths that there are: no process was chosen, or none of several. */
static void refuse_choice(struct request *request, size_t chosen)
{
	size_t count, length = 0;
	const struct catalog_process *processes = catalog_processes(request->server->catalog, &count);
	char *text = NULL;
	FILE *out = open_memstream(&text, &length);

	if (out) {
		if (chosen)
			fprintf(out, "%zu processes are profiled here; choose one:\n", chosen);
		else if (!count)
			fputs("no process is profiled here", out);
		else
			fputs("no such process is profiled here; choose one of these:\n", out);
		print_paths(out, processes, count, request_name(request));
	}
	if (out && fclose(out) == 0 && length) {
		text[length - 1] = text[length - 1] == '\n' ? '\0' : text[length - 1];
		request_refuse(request, 404, text);
	} else {
		request_refuse(request, 500, "out of memory");
	}
	free(text);
}

/* Returns how many there are; 0: the request was refused. */
static size_t choose(struct request *request, const struct catalog_process *chosen[REQUEST_PROCESSES_MAX])
{
	size_t kept = 0;
	const size_t count =
	    catalog_choose(request->server->catalog, &request->route, chosen, REQUEST_PROCESSES_MAX);

	if (count == 0 || (count > 1 && request->route.scope == ROUTE_ANY)) {
		refuse_choice(request, count);
		return 0;
	}
	if (count > REQUEST_PROCESSES_MAX) {
		request_refuse(request, 503, "too many processes for one request");
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		if (chosen[i]->listed || process_profiles_newest(chosen[i]))
			chosen[kept++] = chosen[i];
	if (!kept)
		request_refuse(request, 404, "there is no profile of what is in use");
	return kept;
}

/* ---- how many may wait for `seconds` */

static unsigned int waits_of(const struct server *server, const struct client_key *client)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < server->waits; i++)
		count += server->waiting[i]->client.key.family == client->family &&
		    server->waiting[i]->client.key.number == client->number;
	return count;
}

/* The client with most waits loses its newest one, if it still has more than `client` after that. */
static bool make_room(const struct server *server, const struct client_key *client)
{
	struct request *newest = NULL;
	unsigned int most = waits_of(server, client) + 2;

	for (unsigned int i = 0; i < server->waits; i++) {
		unsigned int count = waits_of(server, &server->waiting[i]->client.key);

		if (count < most)
			continue;
		most = count;
		newest = server->waiting[i];
	}
	if (!newest)
		return false;
	request_stop(newest);
	request_refuse(newest, 503, "requests of other clients wait for their seconds too: try again later");
	return true;
}

/* False: the request was refused. */
static bool begin_wait(struct request *request)
{
	struct server *server = request->server;

	if (server->waits == SERVER_WAITS_MAX && !make_room(server, &request->client.key)) {
		request_refuse(request, 503, "8 other requests wait for their seconds: try again later");
		return false;
	}
	server->waiting[server->waits++] = request;
	return true;
}

/* ---- the profiles, and the answer that is made of them */

/* In the thread of jobs. */
static void make(struct task *base)
{
	struct debug_task *task = (struct debug_task *)base;

	debug_answer_make(&base->reply, &task->plan, task->inputs, task->input_count, task->query);
}

/* The client of delta_heap has these profiles now. */
static void note_client(struct task *base)
{
	const struct debug_task *task = (const struct debug_task *)base;

	for (size_t i = 0; i < task->input_count && base->reply.status == 200; i++)
		delta_clients_note(base->request->server->delta_clients, task->client, &base->items[i].key,
		    task->inputs[i].last);
}

/* Leaves out processes that have ended meanwhile. For the others, input and item have the same number. */
static void fill_inputs(struct debug_task *task)
{
	const bool is_difference = task->plan.kind == DEBUG_DIFFERENCE;
	struct task_item *items = task->base.items;

	for (size_t i = 0; i < task->process_count; i++) {
		const struct task_item *first = &items[i],
		                       *last = is_difference ? &items[task->process_count + i] : first;
		struct debug_input *input = &task->inputs[task->input_count];

		if (first->error || last->error)
			continue;
		input->last = blob_hold(last->profile);
		if (is_difference)
			input->first = blob_hold(first->profile);
		else if (task->plan.kind == DEBUG_DELTA)
			input->first = delta_clients_last(task->base.request->server->delta_clients,
			    task->client, &first->key, &input->unknown);
		items[task->input_count++].key = first->key;
	}
}

static void on_fetched(struct task *base)
{
	struct debug_task *task = (struct debug_task *)base;
	struct request *request = base->request;
	const struct task_item *failure = task_failure_of_sum(base);

	if (failure) {
		request_refuse(request, task_failure_status(failure), failure->why);
		return;
	}
	fill_inputs(task);
	if (task->input_count)
		request_make_reply(request);
	else
		request_refuse(request, 404, "the processes have ended");
}

/* `seconds` are over: the last profiles of a difference. */
static void fetch_last(struct request *request)
{
	struct debug_task *task = (struct debug_task *)request->task;

	task->base.count = 2 * task->process_count;
	for (size_t i = 0; i < task->process_count; i++)
		task->base.items[task->process_count + i] =
		    (struct task_item){.kind = TASK_NOW, .key = task->base.items[i].key};
	task->base.fetched = on_fetched;
	task_fetch(request->task, task->process_count, clock_now_ns());
}

/* The first profiles of a difference are there: the time begins. */
static void begin_seconds(struct task *base)
{
	const struct debug_task *task = (const struct debug_task *)base;
	const struct task_item *failure = task_failure_of_sum(base);

	if (failure) {
		request_refuse(base->request, task_failure_status(failure), failure->why);
		return;
	}
	base->request->wake = fetch_last;
	base->request->wake_ns = clock_now_ns() + (uint64_t)task->plan.seconds * CLOCK_NS_PER_S;
}

static void fill_items(
    struct debug_task *task, const struct catalog_process *const *processes, size_t process_count)
{
	task->process_count = task->base.count = process_count;
	for (size_t i = 0; i < process_count; i++) {
		struct task_item *item = &task->base.items[i];

		item->key = processes[i]->key;
		item->duration_ms = task->plan.seconds * 1000;
		item->kind = task->plan.kind == DEBUG_CPU ? TASK_CPU : TASK_NOW;
		if (processes[i]->listed)
			continue;
		item->kind = TASK_FILE;
		item->file = process_profiles_newest(processes[i])->number;
	}
}

static void answer_profiles_of(struct request *request, const struct debug_plan *plan,
    const struct catalog_process *const *processes, size_t process_count)
{
	const bool is_difference = plan->kind == DEBUG_DIFFERENCE;
	const char *query = request->is_post ? request->body : request->route.query;
	struct debug_task *task = request_new_task(request, sizeof(*task), 2 * process_count);

	if (!task)
		return;
	task->base.make = make;
	task->base.free_data = free_data;
	task->base.made = plan->kind == DEBUG_DELTA ? note_client : NULL;
	task->base.fetched = is_difference ? begin_seconds : on_fetched;
	task->plan = *plan;
	task->inputs = calloc(process_count, sizeof(*task->inputs));
	task->query = strdup(query ? query : "");
	if (!task->inputs || !task->query) {
		request_refuse(request, 500, "out of memory");
		return;
	}
	client_name(&request->client, &request->route.parameters, task->client);
	fill_items(task, processes, process_count);
	task_fetch(&task->base, 0, is_difference ? clock_now_ns() : 0);
}

/* ---- answers without a profile */

static void on_cmdline(void *context, const struct broker_reply *reply, int fd)
{
	struct request *request = context;
	int error = reply->error;
	struct blob *blob = NULL;

	request->broker_id = 0;
	if (!error && fd >= 0 && reply->bytes <= CMDLINE_BYTES_MAX)
		blob = blob_read(fd, reply->bytes, &error);
	else if (fd >= 0)
		close(fd);
	if (!blob) {
		request_refuse(request, 404, "the process has ended");
		return;
	}
	if (blob->length && !blob->bytes[blob->length - 1])
		blob->length--; /* Go joins the words by NUL; the kernel ends each with one */
	reply_bytes(&request->reply, 200, REPLY_TEXT, blob);
	request_finish(request);
}

static void answer_cmdline(struct request *request, const struct catalog_process *process)
{
	const struct broker_question question = {
	    .verb = BROKER_CMDLINE, .server = process->key.server, .pid = process->key.pid};

	if (!process->listed) { /* its files know the name alone */
		reply_text(&request->reply, 200, REPLY_TEXT, "%s", process->program);
		request_finish(request);
		return;
	}
	request->broker_id = broker_client_ask(request->server->broker, &question, on_cmdline, request);
	if (!request->broker_id)
		request_refuse(request, 503, "too many other requests are waiting");
}

static void answer_index(struct request *request, size_t process_count)
{
	char title[64] = "of the one process that is profiled here";

	if (request->route.scope == ROUTE_PID)
		snprintf(title, sizeof(title), "of process %d", (int)request->route.pid);
	else if (request->route.scope == ROUTE_SERVICE)
		snprintf(title, sizeof(title), "of %zu process%s of a service", process_count,
		    process_count == 1 ? "" : "es");
	debug_answer_index(&request->reply, title);
	request_finish(request);
}

/* ---- all of them */

static bool has_files(const struct catalog_process *const *processes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!processes[i]->listed)
			return true;
	return false;
}

/* CPU time is sampled of all processes at once. One sampler takes a limited number. */
static bool is_too_much(const struct catalog_process *const *processes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		for (size_t j = 0; j < count; j++)
			same += processes[j]->key.server == processes[i]->key.server;
		if (same > BROKER_CLIENT_CPU_AT_ONCE)
			return true;
	}
	return false;
}

void answer_debug(struct request *request)
{
	const struct catalog_process *chosen[REQUEST_PROCESSES_MAX];
	struct debug_plan plan;
	size_t count;
	bool waits;

	if (!debug_answer_plan(&plan, request_name(request), &request->route.parameters, &request->reply)) {
		request_finish(request);
		return;
	}
	count = choose(request, chosen);
	if (!count)
		return;
	waits = plan.kind == DEBUG_CPU || plan.kind == DEBUG_DIFFERENCE;
	if (waits && has_files(chosen, count))
		request_refuse(request, 400, "\"seconds\" parameter is not supported for this profile type");
	else if (plan.kind == DEBUG_CPU && is_too_much(chosen, count))
		request_refuse(
		    request, 503, "a CPU profile is of at most 8 processes; choose one by /pid/PID");
	else if (plan.kind == DEBUG_INDEX)
		answer_index(request, count);
	else if (plan.kind == DEBUG_CMDLINE)
		answer_cmdline(request, chosen[0]);
	else if (!waits || begin_wait(request))
		answer_profiles_of(request, &plan, chosen, count);
}
