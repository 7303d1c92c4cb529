/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap ls: which sessions, processes and profiles are in a folder. */
#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/json.h"
#include "pprof/text/log_line.h"
#include "pprof/text/utf8.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/report/ls_store.h"
#include "sampler/cmd/report/profile_files.h"
#include "sampler/cmd/report/sessions.h"
#include "sampler/linux/screen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAM_COLUMNS_MOST = 24, FACTS_COLUMNS = 47 }; /* before the program's name */

struct list {
	const struct screen *screen;
	const struct profile_files *files;
	struct sessions sessions;
	size_t first, end;   /* the sessions that are listed */
	bool all;            /* every file, too */
	int program_columns; /* of the session's longest name, with the gap behind it */
};

/* ---- what is known of a process */

struct facts {
	const struct origin *origin; /* of its newest file */
	size_t newest;
	int64_t inuse_bytes, peak_bytes; /* -1: unknown */
	char end[512];                   /* "exited with status 0", "last seen in 0003" */
};

static void describe_end(const struct origin *o, char *text, size_t text_bytes)
{
	static const char exited[] = "exit, the process ", ended[] = "exit, ", detached[] = "detach, ";

	if (strncmp(o->cause, exited, strlen(exited)) == 0)
		snprintf(text, text_bytes, "%s", o->cause + strlen(exited));
	else if (strncmp(o->cause, ended, strlen(ended)) == 0)
		snprintf(text, text_bytes, "%s", o->cause + strlen(ended));
	else if (strncmp(o->cause, detached, strlen(detached)) == 0)
		snprintf(text, text_bytes, "%s", o->cause + strlen(detached));
	else if (*o->merged)
		snprintf(text, text_bytes, "merged: %.400s", o->merged);
	else if (*o->cause)
		snprintf(text, text_bytes, "no end; last seen: %.*s", (int)strcspn(o->cause, ","), o->cause);
	else
		text[0] = '\0';
	text[utf8_valid_prefix(text, strlen(text))] = '\0'; /* it may be cut */
}

/* Its peak is the peak profile's, or that of its largest state. */
static void facts_find(const struct list *list, size_t process, struct facts *facts)
{
	const struct sessions *g = &list->sessions;
	const struct sessions_process *p = &g->processes[process];

	facts->newest = p->newest == SESSIONS_NONE ? g->order[p->first + p->count - 1] : (size_t)p->newest;
	facts->origin = g->origins[facts->newest];
	facts->inuse_bytes = p->newest == SESSIONS_NONE ? -1 : list->files->files[p->newest].inuse_bytes;
	facts->peak_bytes = p->peak == SESSIONS_NONE ? -1 : list->files->files[p->peak].inuse_bytes;
	for (size_t i = 0; i < p->state_count && p->peak == SESSIONS_NONE; i++) {
		const int64_t bytes = list->files->files[g->order[p->first + i]].inuse_bytes;

		facts->peak_bytes = bytes > facts->peak_bytes ? bytes : facts->peak_bytes;
	}
	describe_end(facts->origin, facts->end, sizeof(facts->end));
}

/* A sum is of several processes, whatever pid one of them had. */
static bool is_process(const struct facts *facts)
{
	return !*facts->origin->merged;
}

static const struct origin *first_of(const struct list *list, const struct sessions_process *process)
{
	return list->sessions.origins[list->sessions.order[process->first]];
}

static const char *name_of(const struct origin *o)
{
	return *o->name ? o->name : "unknown program";
}

static const char *kind_of(const struct origin *o)
{
	if (*o->event)
		return o->event;
	return o->kind == ORIGIN_PEAK ? "peak" : o->kind == ORIGIN_DELTA ? "delta" : "heap";
}

/* ---- text */

static void print_time(FILE *out, int64_t time_ns, const char *format, int columns)
{
	char text[64];

	fprintf(out, "%-*s", columns, clock_text(time_ns, format, text, sizeof(text)));
}

static void print_bytes(FILE *out, int64_t bytes)
{
	char text[AMOUNT_BYTES];

	fprintf(out, " %10s", bytes < 0 ? "" : amount_bytes((double)bytes, text));
}

static void print_path(const struct list *list, const struct profile_file *file, const char *kind)
{
	print_time(list->screen->out, 0, "%T", 17);
	print_bytes(list->screen->out, file->inuse_bytes);
	fprintf(list->screen->out, "  %-10.24s ", kind);
	screen_text(list->screen, file->path, 0);
	putc('\n', list->screen->out);
}

/* A file and its duplicates. */
static void print_file(const struct list *list, const struct profile_file *file)
{
	const struct profile_file *same = list->files->files + list->files->count;

	print_path(list, file, kind_of(&file->origin));
	for (size_t i = 0; i < list->files->duplicate_count; i++)
		if (strcmp(same[i].same_as, file->path) == 0)
			print_path(list, &same[i], same[i].is_copy ? "copy" : "raw");
}

static void print_process(const struct list *list, size_t process)
{
	const struct sessions_process *p = &list->sessions.processes[process];
	const struct screen *screen = list->screen;
	FILE *out = screen->out;
	struct facts facts;
	int columns;

	facts_find(list, process, &facts);
	if (facts.origin->pid && is_process(&facts))
		fprintf(out, "%7d  ", (int)facts.origin->pid);
	else
		fprintf(out, "%7s  ", "");
	print_time(out, p->start_ns, "%H:%M:%S", 8);
	print_bytes(out, facts.inuse_bytes);
	print_bytes(out, facts.peak_bytes);
	fprintf(out, " %5zu  ", p->count);
	columns = screen_text(screen, name_of(facts.origin), list->program_columns - 2);
	if (*facts.end) {
		fprintf(out, "%*s", list->program_columns - columns, "");
		screen_text(screen, facts.end, screen_room(screen, FACTS_COLUMNS + list->program_columns));
	}
	putc('\n', out);
	for (size_t i = 0; list->all && i < p->count; i++)
		print_file(list, &list->files->files[list->sessions.order[p->first + i]]);
}

static void columns_find(struct list *list, size_t session)
{
	const struct sessions_item *s = &list->sessions.sessions[session];
	int most = (int)sizeof("program") - 1;

	for (size_t i = 0; i < s->count; i++) {
		const struct sessions_process *p = &list->sessions.processes[s->first + i];
		int columns = screen_columns(name_of(first_of(list, p)));

		most = columns > most ? columns : most;
	}
	list->program_columns = most + 2 < PROGRAM_COLUMNS_MOST ? most + 2 : PROGRAM_COLUMNS_MOST;
}

static void print_session(const struct list *list, size_t session)
{
	const struct sessions_item *s = &list->sessions.sessions[session];
	const struct screen *screen = list->screen;
	const struct origin *first = first_of(list, &list->sessions.processes[s->first]);
	size_t file_count = 0, process_count = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct sessions_process *p = &list->sessions.processes[s->first + i];

		file_count += p->count;
		process_count += !*first_of(list, p)->merged;
	}
	fprintf(screen->out, "%s%sSession %zu%s  ", session > list->first ? "\n" : "",
	    screen_style(screen, SCREEN_HEAD), session + 1, screen_style(screen, SCREEN_PLAIN));
	if (*first->session)
		print_time(screen->out, first->session_ns, "%Y-%m-%d %H:%M:%S %Z", 0);
	else
		fputs("profiles that name no session", screen->out);
	if (*first->session && *first->host) {
		fputs(" on ", screen->out);
		screen_text(screen, first->host, 0);
	}
	fprintf(screen->out, ": %zu process%s, %zu profile%s\n", process_count,
	    process_count == 1 ? "" : "es", file_count, file_count == 1 ? "" : "s");
	fprintf(screen->out, "%7s  %-8s %10s %10s %5s  %-*s%s\n", "pid", "start", "in use", "peak", "files",
	    list->program_columns, "program", "end");
	for (size_t i = 0; i < s->count; i++)
		print_process(list, s->first + i);
}

/* ---- JSON */

/* A path is any bytes. */
static void write_path(struct json *json, const char *key, const char *path)
{
	size_t length = strlen(path);
	char *text = calloc(UTF8_SANITIZED_MAX(length) + 1, 1);

	if (text)
		utf8_sanitize(text, path, length);
	json_text(json, key, text ? text : "");
	free(text);
}

static void write_process(struct json *json, const struct list *list, size_t process)
{
	const struct sessions_process *p = &list->sessions.processes[process];
	struct facts facts;

	facts_find(list, process, &facts);
	json_object(json, NULL);
	json_integer(json, "pid", is_process(&facts) ? facts.origin->pid : 0);
	json_text(json, "program", facts.origin->program);
	json_text(json, "name", facts.origin->name);
	json_integer(json, "start_ns", p->start_ns);
	json_boolean(json, "ended", origin_is_last(facts.origin));
	json_text(json, "end", facts.end);
	write_path(json, "newest", list->files->files[facts.newest].path);
	if (facts.inuse_bytes >= 0)
		json_integer(json, "inuse_bytes", facts.inuse_bytes);
	if (facts.peak_bytes >= 0)
		json_integer(json, "peak_bytes", facts.peak_bytes);
	json_array(json, "files");
	for (size_t i = 0; i < p->count; i++) {
		const struct profile_file *file = &list->files->files[list->sessions.order[p->first + i]];

		json_object(json, NULL);
		write_path(json, "path", file->path);
		json_text(json, "kind", kind_of(&file->origin));
		json_text(json, "cause", file->origin.cause);
		json_integer(json, "time_ns", file->origin.time_ns);
		if (file->inuse_bytes >= 0)
			json_integer(json, "inuse_bytes", file->inuse_bytes);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

static void write_json(const struct list *list)
{
	const struct sessions *g = &list->sessions;
	struct json json = {.out = list->screen->out};

	json_object(&json, NULL);
	json_text(&json, "heaptap", HEAPTAP_VERSION);
	json_array(&json, "sessions");
	for (size_t i = list->first; i < list->end; i++) {
		json_object(&json, NULL);
		json_integer(&json, "session", (int64_t)i + 1);
		json_integer(
		    &json, "start_ns", first_of(list, &g->processes[g->sessions[i].first])->session_ns);
		json_array(&json, "processes");
		for (size_t p = 0; p < g->sessions[i].count; p++)
			write_process(&json, list, g->sessions[i].first + p);
		json_end(&json);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

/* ---- the command */

/* Returns 0 or the exit status, after a line. */
static int sessions_choose(struct list *list, int32_t number)
{
	size_t count = list->sessions.session_count;

	list->end = count;
	if (number == SESSION_DEFAULT || number == SESSION_ALL)
		return 0;
	if ((size_t)number > count)
		return profile_files_say_no_session(number, count);
	list->first = (size_t)number - 1;
	list->end = (size_t)number;
	return 0;
}

int ls_run(struct options *options)
{
	const struct read_options *read = &options->read;
	const struct profile_files_choice origins_only = {
	    .origins_only = true, .pass_unread = true, .services = STORE_MOMENT_EVERYTHING};
	struct profile_files files;
	struct screen screen;
	struct list list = {.screen = &screen, .files = &files, .all = options->verbosity > 0};
	char store[DAEMON_SECTION_PATH_BYTES];
	int status;

	if (ls_store_wanted(options, store))
		return ls_store_run(options, store);
	status = profile_files_read(&files, options, &origins_only);
	if (!status && sessions_make(&list.sessions, files.origins, files.count, NULL)) {
		log_line("not enough memory");
		status = 1;
	}
	if (!status)
		status = sessions_choose(&list, read->session);
	if (!status && screen_open(&screen, options->output, !read->no_pager, read->memory_max_bytes) == 0) {
		if (read->json)
			write_json(&list);
		for (size_t i = list.first; !read->json && i < list.end; i++) {
			columns_find(&list, i);
			print_session(&list, i);
		}
		status = screen_close(&screen, 0);
		if (!status && files.unread_count)
			status = 1;
	}
	sessions_fini(&list.sessions);
	profile_files_fini(&files);
	return status;
}
