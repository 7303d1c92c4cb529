/* SPDX-License-Identifier: Apache-2.0 */
/* The option table's rows for perf events. */
#include "sampler/perf/event.h"
#include "sampler/cli/option.h"
#include "sampler/cli/option_values.h"

#include <errno.h>
#include <stdio.h>

_Static_assert(OPTION_EVENTS_MAX == EVENTS_MAX, "every -e that is taken has a place");

/* Whether there is such an event is for front_run to find out. */
static int set_event(struct options *options, const char *value)
{
	struct event_spec spec;
	char error[128];

	if (options->event_count == OPTION_EVENTS_MAX || event_split(value, &spec, error, sizeof(error)))
		return -EINVAL;
	options->event_texts[options->event_count++] = value;
	return 0;
}

static int set_no_heap(struct options *options, const char *value)
{
	options->no_heap = true;
	return 0;
}

static int set_pid(struct options *options, const char *value)
{
	uint64_t pid;

	if (option_value_count(value, 1, 1 << 22, &pid))
		return -EINVAL;
	options->pid = (pid_t)pid;
	return 0;
}

const struct option options_events_table[] = {
    {COMMAND_RECORD, 'e', "event", "NAME", NULL,
        "NAME, NAME@HZ or NAME/PERIOD, such as cpu-clock@99 or page-faults/1; at most 16", set_event,
        "sample this perf event too, a profile of its own\nbeside each of the heap's: NAME[@HZ | /PERIOD],\n"
        "cpu-clock@99, page-faults/1, cycles:u@999,\nsched:sched_switch; again for more.\n"
        "`heaptap events` lists what there is"},
    {COMMAND_RECORD, '\0', "no-heap", NULL, NULL, NULL, set_no_heap, "events only: nothing is preloaded"},
    {COMMAND_RECORD, 'P', "pid", "PID", NULL, "the number of a running process", set_pid,
        "instead of COMMAND a process that runs, with its\nthreads, until it ends or Ctrl-C; with --no-heap"},
};

const size_t options_events_count = sizeof(options_events_table) / sizeof(options_events_table[0]);

/* A process that is attached to has no COMMAND, and no library of ours in front of its allocator. */
int options_events_check(const struct options *options, char *error, size_t error_bytes)
{
	if (!options->pid && options->event_count)
		return 0;
	if (!options->pid)
		snprintf(error, error_bytes, "--no-heap leaves nothing to record without --event NAME");
	else if (!options->no_heap || !options->event_count)
		snprintf(
		    error, error_bytes, "--pid samples events only: it needs --no-heap and --event NAME");
	else if (options->operand_count)
		snprintf(error, error_bytes, "--pid and a COMMAND ('%s') exclude each other",
		    options->operands[0]);
	else
		return 0;
	return -EINVAL;
}
