/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_debug.h"

#include "sampler/linux/clock.h"
#include "serve/debug_answer.h"
#include "serve/exchange.h"
#include "serve/profile_choice.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CMDLINE_BYTES_MAX (UINT64_C(1) << 20)

_Static_assert((int)BROKER_CLIENT_CPU_AT_ONCE == 8, "the number is said to users");

static void refuse(struct exchange *exchange, unsigned int status, const char *text)
{
	exchange->server->refused += status == 503;
	reply_go_error(&exchange->reply, status, text);
	exchange_finish(exchange);
}

/* ---- which process */

static void print_paths(FILE *out, const struct catalog_process *processes, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (processes[i].key.pid)
			fprintf(out, "/pid/%d/debug/pprof/%s\t%s\n", (int)processes[i].key.pid, name,
			    processes[i].service);
	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		while (same < i && strcmp(processes[same].service, processes[i].service) != 0)
			same++;
		if (same == i)
			fprintf(out, "/service/%s/debug/pprof/%s\n", processes[i].service, name);
	}
}

/* None, or many without a choice: the paths that there are. */
static void refuse_choice(struct exchange *exchange, size_t chosen)
{
	size_t count, length = 0;
	const struct catalog_process *processes = catalog_processes(exchange->server->catalog, &count);
	char *text = NULL;
	FILE *out = open_memstream(&text, &length);

	if (out) {
		if (chosen)
			fprintf(out, "%zu processes are profiled here; choose one:\n", chosen);
		else if (!count)
			fputs("no process is profiled here", out);
		else
			fputs("no such process is profiled here; there are:\n", out);
		print_paths(out, processes, count, exchange->plan.name);
	}
	if (out && fclose(out) == 0 && length) {
		text[length - 1] = text[length - 1] == '\n' ? '\0' : text[length - 1];
		refuse(exchange, 404, text);
	} else {
		refuse(exchange, 500, "out of memory");
	}
	free(text);
}

/* True: keys are filled in. */
static bool choose(struct exchange *exchange)
{
	const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX];
	size_t count =
	    catalog_choose(exchange->server->catalog, &exchange->route, chosen, EXCHANGE_PROCESSES_MAX);
	bool many = count > 1 && exchange->route.scope == ROUTE_ANY;

	if (count == 0 || many) {
		refuse_choice(exchange, count);
		return false;
	}
	if (count > EXCHANGE_PROCESSES_MAX) {
		refuse(exchange, 503, "too many processes for one request");
		return false;
	}
	exchange->process_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct catalog_file *file = profile_choice_newest(chosen[i]);

		if (!chosen[i]->listed && !file)
			continue; /* nothing is left of it */
		exchange->keys[exchange->process_count] = chosen[i]->key;
		exchange->files[exchange->process_count++] = chosen[i]->listed ? 0 : file->number;
	}
	if (!exchange->process_count)
		refuse(exchange, 404, "there is no profile of what is in use");
	return exchange->process_count > 0;
}

/* ---- the answer */

struct debug_work {
	struct exchange_work base;
	struct debug_plan plan;
	struct debug_input *inputs;
	size_t count;
	char *query;
};

static void run(struct exchange_work *base)
{
	struct debug_work *work = (struct debug_work *)base;

	debug_answer_make(&base->reply, &work->plan, work->inputs, work->count, work->query);
}

static void free_data(struct exchange_work *base)
{
	struct debug_work *work = (struct debug_work *)base;

	for (size_t i = 0; i < work->count && work->inputs; i++) {
		blob_drop(work->inputs[i].first);
		blob_drop(work->inputs[i].last);
	}
	free(work->inputs);
	free(work->query);
}

/* The caller has what it was sent, once that is made. */
static void note_caller(struct exchange *exchange, struct exchange_work *base)
{
	const struct debug_work *work = (const struct debug_work *)base;

	for (size_t i = 0; i < work->count && base->reply.status == 200; i++)
		delta_clients_note(exchange->server->delta_clients, exchange->caller, &exchange->keys[i],
		    work->inputs[i].last);
}

static void fill_inputs(struct exchange *exchange, struct debug_work *work)
{
	const bool is_difference = work->plan.kind == DEBUG_DIFFERENCE;

	for (size_t i = 0; i < exchange->process_count; i++) {
		struct debug_input *input = &work->inputs[work->count];

		if (exchange->last.items[i].error || (is_difference && exchange->first.items[i].error))
			continue; /* it has ended meanwhile */
		exchange->keys[work->count++] = exchange->keys[i];
		input->last = blob_hold(exchange->last.items[i].profile);
		if (is_difference)
			input->first = blob_hold(exchange->first.items[i].profile);
		else if (work->plan.kind == DEBUG_DELTA)
			input->first = delta_clients_last(exchange->server->delta_clients, exchange->caller,
			    &exchange->keys[i], &input->unknown);
	}
	exchange->process_count = work->count;
}

static void answer(struct fetch *fetch)
{
	struct exchange *exchange = fetch->context;
	const struct fetch_item *failure = fetch_failure_of_sum(fetch);
	const char *query = exchange->post ? exchange->body : exchange->route.query;
	struct debug_work *work;

	if (failure) {
		refuse(exchange, fetch_status(failure), failure->why);
		return;
	}
	work = calloc(1, sizeof(*work));
	if (work) {
		work->inputs = calloc(fetch->count, sizeof(*work->inputs));
		work->query = strdup(query ? query : "");
	}
	if (!work || !work->inputs || !work->query) {
		if (work)
			free_data(&work->base);
		free(work);
		refuse(exchange, 500, "out of memory");
		return;
	}
	work->base.run = run;
	work->base.free_data = free_data;
	work->base.done = exchange->plan.kind == DEBUG_DELTA ? note_caller : NULL;
	work->plan = exchange->plan;
	fill_inputs(exchange, work);
	if (!work->count) {
		free_data(&work->base);
		free(work);
		refuse(exchange, 404, "the processes have ended");
		return;
	}
	exchange_submit(exchange, &work->base);
}

/* ---- profiles */

static void fetch(
    struct exchange *exchange, struct fetch *fetch, void (*done)(struct fetch *), uint64_t not_before_ns)
{
	fetch->broker = exchange->server->broker;
	fetch->snapshots = exchange->server->snapshots;
	fetch->not_before_ns = not_before_ns;
	fetch->done = done;
	fetch->context = exchange;
	if (fetch_init(fetch, exchange->process_count)) {
		refuse(exchange, 500, "out of memory");
		return;
	}
	for (size_t i = 0; i < fetch->count; i++) {
		struct fetch_item *item = &fetch->items[i];

		item->key = exchange->keys[i];
		item->file = exchange->files[i];
		item->duration_ms = exchange->plan.seconds * 1000;
		item->kind = item->file                ? FETCH_FILE
		    : exchange->plan.kind == DEBUG_CPU ? FETCH_CPU
		                                       : FETCH_NOW;
	}
	fetch_begin(fetch);
}

/* The first ones of a difference are there: the time begins. */
static void begin_waiting(struct fetch *first)
{
	struct exchange *exchange = first->context;
	const struct fetch_item *failure = fetch_failure_of_sum(first);

	if (failure)
		refuse(exchange, fetch_status(failure), failure->why);
	else
		exchange->wake_ns = clock_now_ns() + (uint64_t)exchange->plan.seconds * CLOCK_NS_PER_S;
}

void exchange_debug_wake(struct exchange *exchange)
{
	fetch(exchange, &exchange->last, answer, clock_now_ns());
}

/* ---- the rest */

static void on_cmdline(void *context, const struct broker_reply *reply, int fd)
{
	struct exchange *exchange = context;
	int error = reply->error;
	struct blob *blob = NULL;

	exchange->request = 0;
	if (!error && fd >= 0 && reply->bytes <= CMDLINE_BYTES_MAX)
		blob = blob_read(fd, reply->bytes, &error);
	else if (fd >= 0)
		close(fd);
	if (!blob) {
		refuse(exchange, 404, "the process has ended");
		return;
	}
	if (blob->length && !blob->bytes[blob->length - 1])
		blob->length--; /* Go joins the words by NUL; the kernel ends each with one */
	reply_bytes(&exchange->reply, 200, REPLY_TEXT, blob);
	exchange_finish(exchange);
}

static void answer_cmdline(struct exchange *exchange)
{
	const struct broker_request request = {
	    .verb = BROKER_CMDLINE, .server = exchange->keys[0].server, .pid = exchange->keys[0].pid};
	const struct catalog_process *process = catalog_find(exchange->server->catalog, &exchange->keys[0]);

	if (exchange->files[0]) { /* its file knows the name alone */
		reply_text(&exchange->reply, 200, REPLY_TEXT, "%s", process ? process->program : "");
		exchange_finish(exchange);
		return;
	}
	exchange->request = broker_client_ask(exchange->server->broker, &request, on_cmdline, exchange);
	if (!exchange->request)
		refuse(exchange, 503, "too many others are waiting");
}

static void answer_index(struct exchange *exchange)
{
	char title[64] = "of the one process that is profiled here";

	if (exchange->route.scope == ROUTE_PID)
		snprintf(title, sizeof(title), "of process %d", (int)exchange->route.pid);
	else if (exchange->route.scope == ROUTE_SERVICE)
		snprintf(title, sizeof(title), "of %zu process%s of a service", exchange->process_count,
		    exchange->process_count == 1 ? "" : "es");
	debug_answer_index(&exchange->reply, title);
	exchange_finish(exchange);
}

static unsigned int waits_of(const struct server *server, const struct client_key *client)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < server->waits; i++)
		count += server->waiting[i]->client.family == client->family &&
		    server->waiting[i]->client.number == client->number;
	return count;
}

/* The newest wait of the client with most makes room, if that client has more even then. */
static bool make_room(const struct server *server, const struct client_key *client)
{
	struct exchange *newest = NULL;
	unsigned int most = waits_of(server, client) + 2;

	for (unsigned int i = 0; i < server->waits; i++) {
		unsigned int count = waits_of(server, &server->waiting[i]->client);

		if (count < most)
			continue;
		most = count;
		newest = server->waiting[i];
	}
	if (!newest)
		return false;
	exchange_stop(newest);
	newest->wake_ns = 0;
	refuse(newest, 503, "the requests of others wait for their seconds, too: try again later");
	return true;
}

/* A wait of `seconds`: only so many at once. */
static bool count_wait(struct exchange *exchange)
{
	struct server *server = exchange->server;

	if (server->waits == SERVER_WAITS_MAX && !make_room(server, &exchange->client)) {
		refuse(exchange, 503, "8 other requests wait for their seconds: try again later");
		return false;
	}
	server->waiting[server->waits++] = exchange;
	return true;
}

static bool has_files(const struct exchange *exchange)
{
	for (size_t i = 0; i < exchange->process_count; i++)
		if (exchange->files[i])
			return true;
	return false;
}

/* Time on a CPU is sampled of all at once, and a sampler samples so many. */
static bool is_too_much(const struct exchange *exchange)
{
	for (size_t i = 0; i < exchange->process_count; i++) {
		size_t same = 0;

		for (size_t j = 0; j < exchange->process_count; j++)
			same += exchange->keys[j].server == exchange->keys[i].server;
		if (same > BROKER_CLIENT_CPU_AT_ONCE)
			return true;
	}
	return false;
}

void exchange_debug(struct exchange *exchange)
{
	enum debug_kind kind = exchange->plan.kind;
	bool waits = kind == DEBUG_CPU || kind == DEBUG_DIFFERENCE;

	if (!choose(exchange))
		return;
	if (waits && has_files(exchange))
		refuse(exchange, 400, "\"seconds\" parameter is not supported for this profile type");
	else if (kind == DEBUG_CPU && is_too_much(exchange))
		refuse(exchange, 503, "a CPU profile is of at most 8 processes; choose one by /pid/PID");
	else if (kind == DEBUG_INDEX)
		answer_index(exchange);
	else if (kind == DEBUG_CMDLINE)
		answer_cmdline(exchange);
	else if (waits && !count_wait(exchange))
		return;
	else if (kind == DEBUG_DIFFERENCE)
		fetch(exchange, &exchange->first, begin_waiting, clock_now_ns());
	else
		fetch(exchange, &exchange->last, answer, 0);
}
