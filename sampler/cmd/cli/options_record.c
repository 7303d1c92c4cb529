/* SPDX-License-Identifier: Apache-2.0 */
/* The options of record, attach and adopt. Those of its --push and --listen are in options.c. */
#include "sampler/cmd/cli/options.h"

#include "pprof/table/array.h"
#include "pprof/text/quantity.h"
#include "pprof/text/text.h"
#include "sampler/books/heap.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options_rows.h"
#include "sampler/perf/event.h"
#include "sampler/write/output.h"

#include <errno.h>
#include <string.h>

static const char *const symbol_names[] = {"full", "raw", NULL};

static int set_output(struct options *options, const char *value)
{
	options->output = value;
	return output_check(value, NULL, 0);
}

static int set_signal(struct options *options, const char *value)
{
	return option_value_signal(
	    value, &options->record.heap.signal, &options->record.heap.signal_everywhere);
}

/* "thread,age" */
static int set_labels(struct options *options, const char *value)
{
	static const struct {
		const char *name;
		unsigned int bit;
	} names[] = {{"thread", HEAP_LABEL_THREAD}, {"age", HEAP_LABEL_AGE}, {"size", HEAP_LABEL_SIZE},
	    {"lifetime", HEAP_LABEL_LIFETIME}, {"backend", HEAP_LABEL_BACKEND}};

	options->record.heap.labels = 0;
	while (true) {
		size_t length = strcspn(value, ",");
		unsigned int bit = 0;

		for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
			if (strlen(names[i].name) == length && memcmp(names[i].name, value, length) == 0)
				bit = names[i].bit;
		}
		if (!bit)
			return -EINVAL;
		options->record.heap.labels |= bit;
		if (!value[length])
			return 0;
		value += length + 1;
	}
}

static int set_symbols(struct options *options, const char *value)
{
	options->record.symbols = strcmp(value, "raw") == 0 ? SYMBOL_RAW : SYMBOL_FULL;
	return option_value_choice(symbol_names, value) < 0 ? -EINVAL : 0;
}

static int set_cpu_max(struct options *options, const char *value)
{
	const char *suffix;
	uint64_t percent;

	if (quantity_number(value, &percent, &suffix) || (*suffix && strcmp(suffix, "%") != 0) ||
	    percent < 1 || percent > 100)
		return -EINVAL;
	options->record.cpu_max_percent = (uint32_t)percent;
	return 0;
}

/* A threshold that is given twice counts once. */
static int set_on(struct options *options, const char *value)
{
	struct threshold threshold;

	if (option_value_threshold(value, &threshold))
		return -EINVAL;
	for (size_t i = 0; i < options->record.on_count; i++) {
		const struct threshold *other = &options->record.on[i];

		if (other->measure == threshold.measure && other->growth == threshold.growth &&
		    other->bytes == threshold.bytes)
			return 0;
	}
	if (options->record.on_count == THRESHOLDS_MAX)
		return -EINVAL;
	options->record.on[options->record.on_count++] = threshold;
	return 0;
}

_Static_assert(OPTION_EVENTS_MAX == EVENTS_MAX, "every accepted -e has room");

/* front_run checks whether the event exists. */
static int set_event(struct options *options, const char *value)
{
	struct event_spec spec;
	char error[128];

	if (options->record.event_count == OPTION_EVENTS_MAX ||
	    event_split(value, &spec, error, sizeof(error)))
		return -EINVAL;
	options->record.event_texts[options->record.event_count++] = value;
	options->record.heap.beside_events = true;
	return 0;
}

int options_add_pids(struct options *options, const char *value)
{
	const char *suffix = value - 1;

	do {
		uint64_t pid;

		if (quantity_number(suffix + 1, &pid, &suffix) || pid < 1 || pid > 1 << 22 ||
		    (*suffix && *suffix != ',') || options->record.pid_count == OPTION_PIDS_MAX)
			return -EINVAL;
		size_t same = 0;
		while (same < options->record.pid_count && options->record.pids[same] != (pid_t)pid)
			same++;
		if (same == options->record.pid_count)
			options->record.pids[options->record.pid_count++] = (pid_t)pid;
	} while (*suffix);
	return 0;
}

#define OFTEN (COMMAND_RECORD | COMMAND_ATTACH)

static const char *const yes_or_no[] = {"yes", "no", NULL};

static const struct option rows[] = {
    OPTION_HEADING("profiles"),
    {COMMAND_RECORD | COMMAND_ADOPT, 'o', "output", OPTION_SET, .set = set_output, .value = "PATTERN",
        .allowed = "a path in which % begins one of " OUTPUT_DIRECTIVES, .common = OFTEN,
        .help = "name of profiles, default in the current folder\n" OUTPUT_DEFAULT ": %e executable,\n"
                "%p pid, %n snapshot, %h host, %t unix seconds;\n"
                "in a folder (DIR/) they have the default name"},
    {COMMAND_RECORD, 'p', "period", OPTION_BYTES, OPTION_FIELD(record.heap.period_bytes), .least = 1,
        .most = PERIOD_BYTES_MAX, .value = "BYTES", .allowed = "1 to 1024G, for example 512K",
        .common = OFTEN,
        .help = "mean bytes between samples, default 512K;\n"
                "1 records every allocation; K, M, G work"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "labels", OPTION_SET, .set = set_labels, .value = "LIST",
        .allowed = "thread, age, size, lifetime and backend, separated by commas", .common = OFTEN,
        .help = "distinguish blocks by thread, age, size, lifetime\n"
                "(temporary or not) or backend (how the stack was\n"
                "captured)"},
    {COMMAND_RECORD, '\0', "temporary", OPTION_TIME, OPTION_FIELD(record.heap.temporary_ns), .least = 1,
        .most = INTERVAL_NS_MAX, .value = "TIME", .allowed = "a whole number with its unit, for example 1ms",
        .help = "a block that is freed sooner, by the thread that\n"
                "allocated it, is called temporary; default 1ms"},
    {COMMAND_RECORD, '\0', "mmap", OPTION_FLAG, OPTION_FIELD(record.heap.record_mmap), .common = OFTEN,
        .help = "record anonymous mappings too, in rows below\n"
                "[mmap]: these show who makes a pool grow, such as\n"
                "python's, V8's, or that of the program's allocator"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "delta", OPTION_FLAG, OPTION_FIELD(record.heap.delta),
        .help = "beside each periodic snapshot, what was allocated\n"
                "since the one before (NNNN-delta)"},
    {COMMAND_RECORD, '\0', "no-peak", OPTION_FLAG, OPTION_FIELD(record.heap.no_peak),
        .help = "do not record the heap's peak"},
    {COMMAND_RECORD, '\0', "min-samples", OPTION_COUNT, OPTION_FIELD(record.min_samples), .least = 1,
        .most = MIN_SAMPLES_MAX, .value = "N", .allowed = "1 to 1000000000",
        .help = "a process with fewer samples is counted and leaves\n"
                "no profile, unless it is COMMAND, or no sample\n"
                "explains 16 MiB of its memory; default 16, or 1\n"
                "with -p 1"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "symbols", OPTION_SET, .set = set_symbols, .choices = symbol_names,
        .help = "what stands in the profile. full, the default:\n"
                "functions, inlined calls and lines; raw: only\n"
                "addresses, for heaptap symbolize or pprof"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "debuginfod", OPTION_FLAG, OPTION_FIELD(record.debuginfod),
        .help = "fetch missing debug files from the servers in\n"
                "$DEBUGINFOD_URLS"},
    OPTION_HEADING("snapshots"),
    {COMMAND_RECORD | COMMAND_ADOPT, 'i', "interval", OPTION_TIME, OPTION_FIELD(record.interval_ns),
        .least = INTERVAL_NS_MIN, .most = INTERVAL_NS_MAX, .value = "TIME",
        .allowed = "0, or 1ms to 1000h with the unit, for example 500ms, 10s, 5m, 1h", .common = OFTEN,
        .help = "time between snapshots, such as 500ms, 5m or 1h;\n"
                "0: no snapshots; default: after 5, 10, 20 and\n"
                "40 s, then each 60 s.\n"
                "`heaptap snapshot PID` writes one now"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "on", OPTION_SET, .set = set_on, .value = "WHAT",
        .allowed =
            "rss=2G, inuse=2G (a level), rss=+256M, inuse=+256M (growth), alloc=10G or memory.high; at "
            "most 16",
        .common = OFTEN,
        .help = "a snapshot of each process whose resident memory\n"
                "or heap in use reaches a level (rss=2G, inuse=2G)\n"
                "or grows by that much (rss=+256M, inuse=+256M),\n"
                "for each 10G it allocates (alloc=10G), or when its\n"
                "cgroup passes its limit (memory.high); repeatable"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "on-limit", OPTION_TIME, OPTION_FIELD(record.on_limit_ns),
        .least = INTERVAL_NS_MIN, .most = INTERVAL_NS_MAX, .value = "TIME",
        .allowed = "0, or 1ms to 1000h with the unit, for example 500ms, 10s, 5m, 1h",
        .help = "least time between two snapshots of one process\n"
                "for the same --on, default 10s; 0 means none"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "keep", OPTION_COUNT, OPTION_FIELD(record.keep), .least = 1,
        .most = KEEP_MAX, .value = "N", .allowed = "1 to 1000000", .common = COMMAND_RECORD,
        .help = "keep the newest N snapshots of each process, and\n"
                "the newest N that --on took; default: all. Those\n"
                "that a user asked for are not counted, and stay"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "signal", OPTION_SET, .set = set_signal, .value = "SIG",
        .allowed = "USR1, USR2 or RTMIN+N, with :all appended if wanted, or none",
        .help = "signal that requests a snapshot, default USR1.\n"
                "Sent to heaptap: of all processes. To COMMAND: of\n"
                "COMMAND, unless COMMAND handles the signal itself.\n"
                "USR1:all: also of any other process that gets it.\n"
                "none: no signal"},
    {COMMAND_RECORD, '\0', "paused", OPTION_FLAG, OPTION_FIELD(record.heap.paused),
        .help = "take no samples until the program asks for them\n"
                "(heaptap_start in heaptap.h)"},
    OPTION_HEADING("which programs"),
    {COMMAND_RECORD, '\0', "only", OPTION_TEXT, OPTION_FIELD(record.heap.only), .value = "RE",
        .allowed = "a regular expression", .common = COMMAND_RECORD,
        .help = "record only the heaps of programs whose name, or\n"
                "command line from the name on, matches: 'nginx',\n"
                "'^python3 .*manage.py'; COMMAND too must match"},
    {COMMAND_RECORD, '\0', "exclude", OPTION_TEXT, OPTION_FIELD(record.heap.exclude), .value = "RE",
        .allowed = "a regular expression", .help = "do not record the heaps of programs that match"},
    OPTION_HEADING("running processes"),
    {COMMAND_RECORD, 'P', "pid", OPTION_SET, .set = options_add_pids, .value = "PID[,PID...]",
        .by_name = "attach", .allowed = "process ids of running processes, separated by commas; at most 64",
        .help = "record running processes and their children\n"
                "instead of COMMAND, until they end or Ctrl-C; what\n"
                "they allocated before is not in the profile"},
    {COMMAND_RECORD, '\0', "duration", OPTION_TIME, OPTION_FIELD(record.duration_ns),
        .least = INTERVAL_NS_MIN, .most = INTERVAL_NS_MAX, .value = "TIME",
        .allowed = "0, or 1ms to 1000h with the unit, for example 500ms, 10s, 5m, 1h",
        .common = COMMAND_ATTACH, .help = "detach from running processes after that time"},
    {COMMAND_RECORD, '\0', "children", OPTION_CHOICE, OPTION_FIELD(record.no_children), .choices = yes_or_no,
        .common = COMMAND_ATTACH,
        .help = "record the children of running processes, too;\n"
                "default yes"},
    {COMMAND_RECORD, '\0', "force", OPTION_FLAG, OPTION_FIELD(record.force), .common = COMMAND_ATTACH,
        .help = "attach to a running process with a seccomp filter\n"
                "too; the filter may end the process"},
    OPTION_HEADING("perf events"),
    {COMMAND_RECORD, 'e', "event", OPTION_SET, .set = set_event, .value = "NAME",
        .allowed = "NAME, NAME@HZ or NAME/PERIOD, such as cpu-clock@99 or page-faults/1; at most 16",
        .common = OFTEN,
        .help = "sample this perf event too, into its own profile\n"
                "beside each heap profile: NAME[@HZ | /PERIOD],\n"
                "cpu-clock@99, page-faults/1, cycles:u@999,\n"
                "sched:sched_switch; repeatable.\n"
                "`heaptap events` lists what there is"},
    {COMMAND_RECORD, '\0', "no-heap", OPTION_FLAG, OPTION_FIELD(record.no_heap),
        .help = "events only: nothing is preloaded"},
    OPTION_HEADING("how stacks are taken"),
    {COMMAND_RECORD, 'b', "backend", OPTION_CHOICE, OPTION_FIELD(record.heap.backend),
        .choices = backend_names,
        .help = "how stacks are captured. auto, the default: the\n"
                "program walks stacks that are known; it copies\n"
                "new stacks at periods of 16K and less, while\n"
                "buffers are free; else a uprobe takes them, if\n"
                "permitted (-v says what is used, and why).\n"
                "walk: as auto, without a uprobe"},
    {COMMAND_RECORD | COMMAND_ADOPT, 's', "stack-bytes", OPTION_BYTES, OPTION_FIELD(record.heap.stack_bytes),
        .least = STACK_BYTES_MIN, .most = STACK_BYTES_MAX, .value = "BYTES",
        .allowed = "256 to 64K, for example 16K", .help = "most stack bytes per sample, default 32K"},
    {COMMAND_RECORD, '\0', "compare-walks", OPTION_COUNT, OPTION_FIELD(record.heap.compare_walks), .least = 1,
        .most = COMPARE_WALKS_MAX, .value = "N", .allowed = "1 to 1000000000",
        .help = "of N stacks that the program walks, capture one\n"
                "in another way too, and compare both; default 256;\n"
                "1: all; N becomes the next power of two"},
    OPTION_HEADING("what heaptap itself may take and say"),
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "max-rss", OPTION_BYTES, OPTION_FIELD(record.rss_max_bytes),
        .least = 1 << 20, .most = PERIOD_BYTES_MAX, .value = "BYTES",
        .allowed = "1M to 1024G, for example 256M",
        .help = "when the sampler uses more memory, the period\n"
                "doubles. Half of BYTES is for stacks (default: 1\n"
                "GiB); stacks for which there is no room are lost"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "max-cpu", OPTION_SET, .set = set_cpu_max, .value = "PERCENT",
        .allowed = "1 to 100",
        .help = "when the sampler takes more of one CPU, the period\n"
                "doubles; the writing of profiles does not count;\n"
                "default: no limit"},
    {COMMAND_RECORD | COMMAND_ADOPT, 'q', "quiet", OPTION_SET, .set = options_set_quiet,
        .help = "no line at the start, no summary at the end"},
    {COMMAND_RECORD | COMMAND_ADOPT, 'v', "verbose", OPTION_SET, .set = options_set_verbose,
        .help = "report what is done and why; twice for more"},
};

const struct option_table options_record = {rows, ARRAY_COUNT(rows)};

/* With --pid there is no COMMAND. */
int options_record_check(const struct options *options, char *error, size_t error_bytes)
{
	if (options->record.no_heap && options->record.on_count)
		text_append(error, error_bytes, "--on is about heaps: it does not go with --no-heap");
	else if (!options->record.pid_count &&
	    (options->record.duration_ns || options->record.force || options->record.no_children))
		text_append(error, error_bytes, "--duration, --force and --children are for --pid");
	else if (options->record.pid_count && !options->record.no_heap &&
	    (options->record.heap.only || options->record.heap.exclude))
		text_append(error, error_bytes,
		    "--only and --exclude choose among what COMMAND executes: they do not go with --pid");
	else if (options->record.no_heap && !options->record.event_count)
		text_append(error, error_bytes, "--no-heap leaves nothing to record without --event NAME");
	else if (options->record.pid_count && options->operand_count)
		text_append(error, error_bytes, "--pid and a COMMAND ('%s') exclude each other",
		    options->operands[0]);
	else if (options->record.pid_count && !options->record.no_heap && options->record.heap.paused)
		text_append(error, error_bytes,
		    "--paused waits for a call of heaptap_start, which a process that runs already "
		    "cannot make");
	else
		return 0;
	return -EINVAL;
}
