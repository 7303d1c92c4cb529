/* SPDX-License-Identifier: Apache-2.0 */
/* The options of perf events. */
#include "sampler/cli/options.h"

#include "sampler/cli/command.h"
#include "sampler/cli/options_rows.h"
#include "sampler/perf/event.h"
#include "pprof/text/text.h"

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
    {COMMAND_RECORD, 'P', "pid", OPTION_COUNT, OPTION_FIELD(pid), .least = 1, .most = 1 << 22, .value = "PID",
        .allowed = "the process id of a running process",
        .help = "sample a running process and its threads instead\n"
                "of COMMAND, until it ends or Ctrl-C; only\nwith --no-heap"},
};

const struct option_table options_events = {rows, sizeof(rows) / sizeof(rows[0])};

/* With --pid there is no COMMAND, and our library is not preloaded. */
int options_events_check(const struct options *options, char *error, size_t error_bytes)
{
	if (options->on_count) {
		text_append(
		    error, error_bytes, "--on is about heaps: it goes with neither --no-heap nor --pid");
		return -EINVAL;
	}
	if (!options->pid && options->event_count)
		return 0;
	if (!options->pid)
		text_append(error, error_bytes, "--no-heap leaves nothing to record without --event NAME");
	else if (!options->no_heap || !options->event_count)
		text_append(error, error_bytes,
		    "the heap of a process that runs already cannot be recorded: start it with 'heaptap "
		    "record "
		    "COMMAND'; for its CPU time or page faults: heaptap record --no-heap -e cpu-clock --pid "
		    "%d",
		    (int)options->pid);
	else if (options->operand_count)
		text_append(error, error_bytes, "--pid and a COMMAND ('%s') exclude each other",
		    options->operands[0]);
	else
		return 0;
	return -EINVAL;
}
