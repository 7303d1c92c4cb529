/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/status/status_table.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	WIDTH_DEFAULT = 80, /* of the table without a terminal, unless a name is longer */
	FIXED_COLUMNS = 55, /* of all columns but the service's and the last, with what parts them */
	BACKEND_COLUMNS = 6,
	SERVICE_LEAST = 8,
	SERVICE_MOST = 48, /* without a terminal: a longer name moves the columns of its own row only */
	CONTAINER_CHARACTERS = 12, /* of its id, as docker and podman show it */
};

#define NS_PER_S INT64_C(1000000000)

/* All columns behind the service. */
#define PROFILED_FORMAT " %7s %6s %7s %5s %7s %8s %7s %s"

/* ---- values */

/* "1.2G": shorter than amount_bytes, for a table of many columns. */
static const char *short_bytes(double bytes, char text[AMOUNT_BYTES])
{
	char *space, *unit;

	if (!isfinite(bytes))
		return "";
	amount_bytes(bytes, text);
	space = strchr(text, ' ');
	if (space)
		memmove(space, space + 1, strlen(space));
	unit = strstr(text, "iB");
	if (unit)
		*unit = '\0';
	return text;
}

/* The standard error as a share of the estimate: "2.8%", "exact", "" if it is not known. */
static const char *error_share(const struct control_process *process, char text[AMOUNT_BYTES])
{
	double share = process->inuse_bytes_error / process->inuse_bytes * 100;

	if (!isfinite(process->inuse_bytes_error) || !(process->inuse_bytes > 0))
		return "";
	if (share <= 0)
		return "exact";
	if (share >= 999.5)
		return ">999%";
	snprintf(text, AMOUNT_BYTES, share < 9.95 ? "%.1f%%" : "%.0f%%", share);
	return text;
}

/* "+12.3M"; "" if nothing grows by more than chance; "?" if it is not known yet. */
static const char *growth(const struct control_growth *growth, char text[AMOUNT_BYTES])
{
	char bytes[AMOUNT_BYTES];

	if (!*growth->kind)
		return "?";
	if (!isfinite(growth->bytes_per_hour))
		return "";
	snprintf(text, AMOUNT_BYTES, "+%.20s", short_bytes(growth->bytes_per_hour, bytes));
	return text;
}

/* "09:14" for the last 20 hours, "Nov 21" for earlier times. */
static const char *since(int64_t unix_ns, int64_t now_unix_ns, char text[AMOUNT_BYTES])
{
	bool recent = now_unix_ns - unix_ns < 20 * 3600 * NS_PER_S;

	clock_text(unix_ns, recent ? "%H:%M" : "%b %d", text, AMOUNT_BYTES);
	return text;
}

/* "3 d 4 h", "4 h 12 min", "12 min", "12 s" */
static const char *duration(int64_t ns, char text[AMOUNT_BYTES])
{
	int64_t seconds = ns > 0 ? ns / NS_PER_S : 0, minutes = seconds / 60, hours = minutes / 60;

	if (hours >= 24)
		snprintf(text, AMOUNT_BYTES, "%" PRId64 " d %" PRId64 " h", hours / 24, hours % 24);
	else if (hours)
		snprintf(text, AMOUNT_BYTES, "%" PRId64 " h %" PRId64 " min", hours, minutes % 60);
	else if (minutes)
		snprintf(text, AMOUNT_BYTES, "%" PRId64 " min", minutes);
	else
		snprintf(text, AMOUNT_BYTES, "%" PRId64 " s", seconds);
	return text;
}

/* ---- the daemon */

static void print_fact(const struct screen *screen, const char *name, const char *text)
{
	if (!*text)
		return;
	fprintf(screen->out, "  %-8s", name);
	screen_text(screen, text, 0);
	putc('\n', screen->out);
}

/* Prints a sentence on as many lines as it needs. */
static void print_sentence(const struct screen *screen, const char *name, const char *text)
{
	char label[32];

	if (!*text)
		return;
	snprintf(label, sizeof(label), "  %s", name);
	screen_hanging(screen, label, 10, text);
}

/* why: the path of the file `off`, or a line. */
static void print_off(const struct screen *screen, const char *why)
{
	char text[1024] = "";

	if (*why == '/')
		text_append(
		    text, sizeof(text), "nothing is sampled while %s is there: heaptap enable --now", why);
	print_sentence(screen, "OFF", *text ? text : why);
}

static void print_denied(const struct screen *screen, const struct control_denied *denied)
{
	char text[1024] = "", when[AMOUNT_BYTES];

	clock_text(denied->since_unix_ns, "%Y-%m-%d %H:%M", when, sizeof(when));
	text_append(text, sizeof(text), "%s: %s", denied->exe, denied->reason);
	if (*when)
		text_append(text, sizeof(text), ", since %s", when);
	if (*denied->library_build_id)
		text_append(text, sizeof(text), " (with library %.12s)", denied->library_build_id);
	print_sentence(screen, "denied", text);
}

static void print_load(const struct screen *screen, const struct control_daemon *daemon, int64_t up_ns)
{
	char text[256] = "", amount[AMOUNT_BYTES];

	text_append(text, sizeof(text), "CPU %.1f s", (double)daemon->cpu_ns / 1e9);
	if (up_ns > 0)
		text_append(
		    text, sizeof(text), " (%.2f%% of one)", 100 * (double)daemon->cpu_ns / (double)up_ns);
	text_append(text, sizeof(text), ", memory %s", amount_bytes((double)daemon->rss_bytes, amount));
	text_append(text, sizeof(text), ", disk %s", amount_bytes((double)daemon->disk_bytes, amount));
	if (daemon->disk_budget_bytes)
		text_append(
		    text, sizeof(text), " of %s", amount_bytes((double)daemon->disk_budget_bytes, amount));
	print_fact(screen, "uses", text);
}

static void print_daemon(const struct screen *screen, const struct control_list *list, int64_t now_unix_ns)
{
	const struct control_daemon *daemon = &list->daemon;
	char when[64], up[AMOUNT_BYTES];
	int64_t up_ns = now_unix_ns - daemon->since_unix_ns;

	clock_text(daemon->since_unix_ns, "%Y-%m-%d %H:%M:%S", when, sizeof(when));
	fprintf(screen->out, "%sheaptap daemon%s  pid %d", screen_style(screen, SCREEN_HEAD),
	    screen_style(screen, SCREEN_PLAIN), (int)daemon->pid);
	if (*daemon->version)
		fprintf(screen->out, ", version %s", daemon->version);
	if (*when)
		fprintf(screen->out, ", since %s (%s)", when, duration(up_ns, up));
	putc('\n', screen->out);
	print_load(screen, daemon, *when ? up_ns : 0);
	print_fact(screen, "store", daemon->store);
	print_fact(screen, "config", daemon->config);
	print_off(screen, daemon->off);
	for (size_t i = 0; i < list->denied_count; i++)
		print_denied(screen, &list->denied[i]);
	for (size_t i = 0; i < list->note_count; i++)
		print_sentence(screen, "note", list->notes[i]);
}

/* "pyroscope: 120 sent, 3 dropped; 2 wait (1.2 MiB), the oldest for 5 min" */
static void print_spool(const struct screen *screen, const struct spool_list_row *row, int64_t now_unix_ns)
{
	const struct spool_counters *counters = &row->counters;
	char text[512] = "", amount[AMOUNT_BYTES];

	text_append(text, sizeof(text), "%s: %" PRIu64 " sent", row->target, counters->sent);
	if (counters->rejected)
		text_append(text, sizeof(text), ", %" PRIu64 " rejected", counters->rejected);
	if (counters->dropped)
		text_append(text, sizeof(text), ", %" PRIu64 " dropped", counters->dropped);
	if (counters->given_up)
		text_append(text, sizeof(text), ", %" PRIu64 " given up", counters->given_up);
	if (counters->passed_over)
		text_append(text, sizeof(text), ", %" PRIu64 " passed over", counters->passed_over);
	if (counters->denied)
		text_append(text, sizeof(text), "; the server refuses the token");
	if (row->count)
		text_append(text, sizeof(text), "; %" PRIu64 " wait (%s)", row->count,
		    amount_bytes((double)row->bytes, amount));
	if (row->count)
		text_append(text, sizeof(text), ", the oldest for %s",
		    duration((int64_t)(spool_list_age(row, now_unix_ns) * 1e9), amount));
	print_sentence(screen, "push", text);
}

/* ---- the table */

/* The service, or else the program: a process that is not profiled may have no service. */
static const char *name_of(const struct control_process *process)
{
	return *process->service ? process->service : *process->comm ? process->comm : "?";
}

/* The width of the column of services: what the other columns leave. Without a terminal, the longest name
 * fits, up to SERVICE_MOST. */
static int service_columns(const struct screen *screen, const struct control_list *list)
{
	int room = (screen->width ? screen->width : WIDTH_DEFAULT) - FIXED_COLUMNS - BACKEND_COLUMNS;

	for (size_t i = 0; !screen->width && i < list->process_count; i++) {
		int columns = screen_columns(name_of(&list->processes[i]));

		columns = columns < SERVICE_MOST ? columns : SERVICE_MOST;
		room = columns > room ? columns : room;
	}
	return room < SERVICE_LEAST ? SERVICE_LEAST : room;
}

static void print_service(const struct screen *screen, const struct control_process *process, int columns)
{
	int used = screen_text(screen, name_of(process), screen->width ? columns : 0);

	fprintf(screen->out, "%*s", columns > used ? columns - used : 0, "");
}

static uint64_t lost_samples(const struct control_process *process)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < process->loss_count; i++)
		sum += process->losses[i].count;
	return sum;
}

/* "12:26:59" for the last 20 hours; earlier times with the date. */
static void format_moment(int64_t unix_ns, int64_t now_unix_ns, char text[AMOUNT_BYTES])
{
	const bool is_recent = now_unix_ns - unix_ns < 20 * 3600 * NS_PER_S;

	clock_text(unix_ns, is_recent ? "%H:%M:%S" : "%Y-%m-%d %H:%M", text, AMOUNT_BYTES);
}

/* "grows since 12:26:59, by 4.8 GiB an hour +- 10 %", "rose by 18.6 MiB at 12:21:33 and is flat since" */
static void describe_growth(
    const struct control_growth *growth, int64_t now_unix_ns, char *text, size_t text_bytes)
{
	char since[AMOUNT_BYTES], until[AMOUNT_BYTES], amount[AMOUNT_BYTES];
	const double percent = 100 * growth->bytes_per_hour_error / growth->bytes_per_hour;

	format_moment(growth->since_unix_ns, now_unix_ns, since);
	format_moment(growth->until_unix_ns, now_unix_ns, until);
	if (isfinite(growth->bytes_per_hour)) {
		text_append(text, text_bytes, "grows since %s, by %s an hour", since,
		    amount_bytes(growth->bytes_per_hour, amount));
		if (isfinite(percent))
			text_append(text, text_bytes, " +- %.*f %%", percent < 9.5 ? 1 : 0, percent);
	} else if (isfinite(growth->bytes)) {
		text_append(text, text_bytes, "rose by %s %s%s%s %s and is flat since",
		    amount_bytes(growth->bytes, amount), strcmp(since, until) == 0 ? "" : "from ",
		    strcmp(since, until) == 0 ? "" : since, strcmp(since, until) == 0 ? "at" : " to", until);
	}
}

/* Does a row need the name of its process? It does if a service has several processes. */
static bool needs_name(const struct control_list *list, const struct control_process *process)
{
	for (size_t i = 0; i < list->process_count && *process->name; i++)
		if (&list->processes[i] != process &&
		    strcmp(name_of(&list->processes[i]), name_of(process)) == 0)
			return true;
	return false;
}

/* Prints a second line, for facts that most processes do not have. */
static void print_details(const struct screen *screen, const struct control_list *list,
    const struct control_process *process, int64_t now_unix_ns)
{
	char text[2048] = "", grows[512] = "";
	uint64_t lost = lost_samples(process);
	bool more = false;

	if (needs_name(list, process))
		text_append(text, sizeof(text), "%s", process->name);
	describe_growth(&process->growth, now_unix_ns, grows, sizeof(grows));
	if (*grows)
		text_append(text, sizeof(text), "%s%s", *text ? "; " : "", grows);
	if (*process->container_id)
		text_append(text, sizeof(text), "%sin container %.*s", *text ? "; " : "",
		    CONTAINER_CHARACTERS, process->container_id);
	if (lost)
		text_append(text, sizeof(text), "%s%" PRIu64 " sample%s lost: ", *text ? "; " : "", lost,
		    lost == 1 ? "" : "s");
	for (size_t i = 0; i < process->loss_count; i++) {
		if (!process->losses[i].count)
			continue;
		text_append(text, sizeof(text), "%s%s %" PRIu64, more ? ", " : "", process->losses[i].cause,
		    process->losses[i].count);
		more = true;
	}
	if (*text)
		screen_lines(screen, 2, text);
}

static void print_profiled(const struct screen *screen, const struct control_list *list,
    const struct control_process *process, int columns, int64_t now_unix_ns)
{
	char texts[6][AMOUNT_BYTES];
	char pid[16];

	if (isfinite(process->growth.bytes_per_hour))
		fputs(screen_style(screen, SCREEN_MORE), screen->out);
	print_service(screen, process, columns);
	snprintf(pid, sizeof(pid), "%d", (int)process->pid);
	fprintf(screen->out, PROFILED_FORMAT "\n", pid, since(process->since_unix_ns, now_unix_ns, texts[0]),
	    short_bytes(process->inuse_bytes, texts[1]), error_share(process, texts[2]),
	    process->rss_bytes ? short_bytes((double)process->rss_bytes, texts[3]) : "",
	    growth(&process->growth, texts[4]), amount_count((double)process->samples, texts[5]),
	    process->backend);
	fputs(screen_style(screen, SCREEN_PLAIN), screen->out);
	print_details(screen, list, process, now_unix_ns);
}

static void print_unprofiled(const struct screen *screen, const struct control_list *list,
    const struct control_process *process, int columns, int64_t now_unix_ns)
{
	print_service(screen, process, columns);
	fprintf(screen->out, " %7d  ", (int)process->pid);
	screen_text(screen, *process->reason ? process->reason : "?", screen_room(screen, columns + 10));
	putc('\n', screen->out);
	print_details(screen, list, process, now_unix_ns);
}

static void print_heading(const struct screen *screen, const char *first, int columns, const char *others)
{
	fprintf(screen->out, "\n%s%-*s%s%s\n", screen_style(screen, SCREEN_HEAD), columns, first, others,
	    screen_style(screen, SCREEN_PLAIN));
}

void status_table_print(const struct screen *screen, const struct control_list *list,
    const struct spool_list *spools, int64_t now_unix_ns)
{
	int columns = service_columns(screen, list);
	size_t count[2] = {0, 0};

	print_daemon(screen, list, now_unix_ns);
	for (size_t i = 0; i < spools->count; i++)
		print_spool(screen, &spools->rows[i], now_unix_ns);
	for (size_t i = 0; i < list->process_count; i++) {
		const struct control_process *process = &list->processes[i];

		if (!process->profiled)
			continue;
		if (!count[0]++) {
			char others[128];

			snprintf(others, sizeof(others), PROFILED_FORMAT, "pid", "since", "in use", "+-",
			    "RSS", "growth/h", "samples", "by");
			print_heading(screen, "service", columns, others);
		}
		print_profiled(screen, list, process, columns, now_unix_ns);
	}
	for (size_t i = 0; i < list->process_count; i++) {
		if (list->processes[i].profiled)
			continue;
		if (!count[1]++)
			print_heading(screen, "not profiled", columns, "     pid  why");
		print_unprofiled(screen, list, &list->processes[i], columns, now_unix_ns);
	}
	if (!list->process_count) {
		putc('\n', screen->out);
		screen_lines(screen, 0,
		    "no process carries the library: `heaptap enable UNIT`, and start the service again");
	}
}
