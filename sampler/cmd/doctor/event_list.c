/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap events: lists the perf events, and whether `record -e` can sample them on this machine. */
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "pprof/text/pattern.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/perf/event_attr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel takes 40 ms to open and close a tracepoint, and there are thousands. */
enum { TRACEPOINTS_TRIED = 32, NAME_COLUMN = 40, REASONS_MAX = 16 };

struct entry {
	char name[EVENT_TEXT_BYTES], group[32];
};

struct listing {
	struct pattern *pattern; /* NULL: all events */
	struct entry *entries;
	size_t count, capacity, tracepoints;
	const char *fixes[REASONS_MAX]; /* printed once each */
	size_t fix_count;
	bool failed;
};

static void collect(void *context, const char *name, const char *group)
{
	struct listing *l = context;

	if (l->pattern && !pattern_matches(l->pattern, name) && !pattern_matches(l->pattern, group))
		return;
	if (l->count == l->capacity) {
		size_t capacity = l->capacity ? l->capacity * 2 : 256;
		struct entry *grown = reallocarray(l->entries, capacity, sizeof(*grown));

		if (!grown) {
			l->failed = true;
			return;
		}
		l->entries = grown;
		l->capacity = capacity;
	}
	struct entry *entry = &l->entries[l->count++];
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	snprintf(entry->group, sizeof(entry->group), "%.31s", group);
	l->tracepoints += strcmp(group, "tracepoint") == 0;
}

static size_t fix_number(struct listing *l, const char *fix)
{
	for (size_t i = 0; i < l->fix_count; i++)
		if (strcmp(l->fixes[i], fix) == 0)
			return i + 1;
	if (l->fix_count == REASONS_MAX)
		return 0;
	l->fixes[l->fix_count++] = fix;
	return l->fix_count;
}

static void print_entry(struct listing *l, const struct entry *entry)
{
	struct event event;
	char line[1024], verdict[320];
	const char *fix = "";

	if (event_parse(entry->name, &event, line, sizeof(line)) != 0) {
		const char *colon = strstr(line, "': ");

		snprintf(verdict, sizeof(verdict), "no   %.300s", colon ? colon + 3 : line);
	} else if (event_try(&event, line, sizeof(line), &fix) != 0) {
		size_t number = fix[0] ? fix_number(l, fix) : 0;
		int at = snprintf(verdict, sizeof(verdict), "no   %.280s", line);

		if (number && at < (int)sizeof(verdict))
			snprintf(verdict + at, sizeof(verdict) - (size_t)at, " [%zu]", number);
	} else {
		snprintf(verdict, sizeof(verdict), "%s",
		    event.kernel_refused ? "ok   the program's side only" : "ok");
	}
	printf("%-*s %-10.10s %s\n", NAME_COLUMN, entry->name, entry->group, verdict);
}

static void print_all(struct listing *l)
{
	size_t tried = 0;
	bool few = l->tracepoints <= TRACEPOINTS_TRIED;

	for (size_t i = 0; i < l->count; i++) {
		const struct entry *entry = &l->entries[i];
		bool tracepoint = strcmp(entry->group, "tracepoint") == 0;

		if (!tracepoint || few || tried++ == 0)
			print_entry(l, entry);
		else
			printf("%-*s %-10.10s not tried\n", NAME_COLUMN, entry->name, entry->group);
	}
	if (!few)
		printf("\nonly one of %zu tracepoints was tried, since each takes long; `heaptap events "
		       "REGEX` tries "
		       "up to %d\n",
		    l->tracepoints, TRACEPOINTS_TRIED);
	for (size_t i = 0; i < l->fix_count; i++)
		printf("%s[%zu] fix: %s\n", i ? "" : "\n", i + 1, l->fixes[i]);
}

static const char *why_not_all(int error)
{
	switch (-error) {
	case ELIBACC:
		return "libpfm4 cannot be loaded: only tracepoints are known by name; fix: install "
		       "libpfm4";
	case EACCES:
		return "only root may read tracefs: no tracepoint can be looked up; fix: run as root, or "
		       "sudo mount -o remount,mode=755 /sys/kernel/tracing";
	case ENODEV:
		return "no tracefs is mounted: no tracepoint can be looked up; fix: sudo mount -t tracefs "
		       "tracefs "
		       "/sys/kernel/tracing";
	default:
		return strerror(-error);
	}
}

int event_list_run(struct options *options)
{
	struct listing l = {0};
	char why[256];

	if (options->operand_count > 1) {
		log_line("events takes one expression; usage: heaptap events [REGEX]");
		return STATUS_USAGE;
	}
	int error =
	    options->operand_count ? pattern_new(options->operands[0], 0, &l.pattern, why, sizeof(why)) : 0;
	if (error == -EINVAL)
		log_line("'%s' is %s", options->operands[0], why);
	else if (error)
		log_line("not enough memory");
	if (error)
		return error == -EINVAL ? STATUS_USAGE : 1;
	int closed = event_each(collect, &l);
	print_all(&l);
	if (closed)
		printf("\n%s\n", why_not_all(closed));
	if (!l.count && options->operand_count)
		log_line("no event matches '%s'", options->operands[0]);
	int status = l.failed || (!l.count && options->operand_count);
	free(l.entries);
	pattern_free(l.pattern);
	return status;
}
