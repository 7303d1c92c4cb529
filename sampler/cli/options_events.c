/* SPDX-License-Identifier: Apache-2.0 */
/* The options of perf events. */
#include "sampler/cli/options.h"

#include "pprof/text/quantity.h"
#include "pprof/text/text.h"
#include "sampler/cli/command.h"
#include "sampler/cli/options_rows.h"
#include "sampler/perf/event.h"

#include <errno.h>

_Static_assert(OPTION_EVENTS_MAX == EVENTS_MAX, "every accepted -e has room");

/* Whether the event exists is checked by front_run. */
static int set_event(struct options *options, const char *value)
{
	struct event_spec spec;
	char error[128];

	if (options->event_count == OPTION_EVENTS_MAX || event_split(value, &spec, error, sizeof(error)))
		return -EINVAL;
	options->event_texts[options->event_count++] = value;
	return 0;
}

int options_add_pids(struct options *options, const char *value)
{
	const char *suffix = value - 1;

	do {
		uint64_t pid;

		if (quantity_number(suffix + 1, &pid, &suffix) || pid < 1 || pid > 1 << 22 ||
		    (*suffix && *suffix != ',') || options->pid_count == OPTION_PIDS_MAX)
			return -EINVAL;
		size_t same = 0;
		while (same < options->pid_count && options->pids[same] != (pid_t)pid)
			same++;
		if (same == options->pid_count)
			options->pids[options->pid_count++] = (pid_t)pid;
	} while (*suffix);
	return 0;
}

static const char *const yes_or_no[] = {"yes", "no", NULL};

static const struct option rows[] = {
    {COMMAND_RECORD, 'e', "event", OPTION_SET, .set = set_event, .value = "NAME",
        .allowed = "NAME, NAME@HZ or NAME/PERIOD, such as cpu-clock@99 or page-faults/1; at most 16",
        .help = "sample this perf event too, into its own profile\n"
                "beside each heap profile: NAME[@HZ | /PERIOD],\n"
                "cpu-clock@99, page-faults/1, cycles:u@999,\n"
                "sched:sched_switch; again for more.\n"
                "`heaptap events` lists what there is"},
    {COMMAND_RECORD, '\0', "no-heap", OPTION_FLAG, OPTION_FIELD(no_heap),
        .help = "events only: nothing is preloaded"},
    {COMMAND_RECORD, 'P', "pid", OPTION_SET, .set = options_add_pids, .value = "PID[,PID...]",
        .by_name = "attach", .allowed = "process ids of running processes, separated by commas; at most 64",
        .help = "record running processes and their children\n"
                "instead of COMMAND, until they end or Ctrl-C; what\n"
                "they allocated before is not in the profile"},
    {COMMAND_RECORD, '\0', "children", OPTION_CHOICE, OPTION_FIELD(no_children), .choices = yes_or_no,
        .help = "with --pid: whether the children that are there\n"
                "are recorded too; default yes"},
    {COMMAND_RECORD, '\0', "duration", OPTION_TIME, OPTION_FIELD(duration_ns), .least = INTERVAL_NS_MIN,
        .most = INTERVAL_NS_MAX, .value = "TIME",
        .allowed = "0, or 1ms to 1000h with the unit, for example 500ms, 10s, 5m, 1h",
        .help = "with --pid: detach after that time"},
    {COMMAND_RECORD, '\0', "force", OPTION_FLAG, OPTION_FIELD(force),
        .help = "with --pid: also where a seccomp filter is in\n"
                "force, which may end the process"},
};

const struct option_table options_events = {rows, sizeof(rows) / sizeof(rows[0])};

/* With --pid there is no COMMAND. */
int options_events_check(const struct options *options, char *error, size_t error_bytes)
{
	if (options->no_heap && options->on_count)
		text_append(error, error_bytes, "--on is about heaps: it does not go with --no-heap");
	else if (!options->pid_count && (options->duration_ns || options->force || options->no_children))
		text_append(error, error_bytes, "--duration, --force and --children are for --pid");
	else if (options->pid_count && !options->no_heap && (options->only || options->exclude))
		text_append(error, error_bytes,
		    "--only and --exclude choose among what COMMAND executes: they do not go with --pid");
	else if (options->no_heap && !options->event_count)
		text_append(error, error_bytes, "--no-heap leaves nothing to record without --event NAME");
	else if (options->pid_count && options->operand_count)
		text_append(error, error_bytes, "--pid and a COMMAND ('%s') exclude each other",
		    options->operands[0]);
	else if (options->pid_count && !options->no_heap && options->paused)
		text_append(error, error_bytes,
		    "--paused waits for a call of heaptap_start, which a process that runs already "
		    "cannot make");
	else
		return 0;
	return -EINVAL;
}
