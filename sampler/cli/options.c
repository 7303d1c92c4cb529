/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cli/options.h"

#include "sampler/cli/option.h"
#include "sampler/snapshot/output.h"
#include "sampler/cli/option_values.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HELP_COLUMN        30

static const char *const symbol_names[] = {"full", "functions", "raw", NULL};

static int set_period(struct options *options, const char *value)
{
	return option_value_bytes(value, 1, PERIOD_BYTES_MAX, &options->period_bytes);
}

static int set_output(struct options *options, const char *value)
{
	options->output = value;
	return output_check(value, NULL, 0);
}

static int set_backend(struct options *options, const char *value)
{
	int choice = option_value_choice(backend_names, value);

	options->backend = (enum backend)choice;
	return choice < 0 ? -EINVAL : 0;
}

static int set_stack_bytes(struct options *options, const char *value)
{
	uint64_t bytes;

	if (option_value_bytes(value, STACK_BYTES_MIN, STACK_BYTES_MAX, &bytes))
		return -EINVAL;
	options->stack_bytes = (uint32_t)bytes;
	return 0;
}

static int set_interval(struct options *options, const char *value)
{
	return option_value_time(value, INTERVAL_NS_MIN, INTERVAL_NS_MAX, &options->interval_ns);
}

static int set_keep(struct options *options, const char *value)
{
	return option_value_count(value, 1, KEEP_MAX, &options->keep);
}

static int set_signal(struct options *options, const char *value)
{
	return option_value_signal(value, &options->signal);
}

static int set_labels(struct options *options, const char *value)
{
	return option_value_labels(value, &options->labels);
}

static int set_temporary(struct options *options, const char *value)
{
	return option_value_time(value, 1, INTERVAL_NS_MAX, &options->temporary_ns);
}

static int set_paused(struct options *options, const char *value)
{
	options->paused = true;
	return 0;
}

static int set_mmap(struct options *options, const char *value)
{
	options->record_mmap = true;
	return 0;
}

static int set_delta(struct options *options, const char *value)
{
	options->delta = true;
	return 0;
}

static int set_no_peak(struct options *options, const char *value)
{
	options->no_peak = true;
	return 0;
}

static int set_timeline(struct options *options, const char *value)
{
	options->timeline = true;
	return 0;
}

static int set_lifetimes(struct options *options, const char *value)
{
	options->lifetimes = true;
	return 0;
}

static int set_sync(struct options *options, const char *value)
{
	options->sync = true;
	return 0;
}

static int set_all(struct options *options, const char *value)
{
	options->all = true;
	return 0;
}

static int set_symbols(struct options *options, const char *value)
{
	int choice = option_value_choice(symbol_names, value);

	options->symbols = (enum symbol_detail)choice;
	return choice < 0 ? -EINVAL : 0;
}

static int set_debuginfod(struct options *options, const char *value)
{
	options->debuginfod = true;
	return 0;
}

static int set_rss_max(struct options *options, const char *value)
{
	return option_value_bytes(value, 1 << 20, PERIOD_BYTES_MAX, &options->rss_max_bytes);
}

static int set_cpu_max(struct options *options, const char *value)
{
	const char *suffix;
	uint64_t percent;

	if (option_value_number(value, &percent, &suffix) || (*suffix && strcmp(suffix, "%") != 0) ||
	    percent < 1 || percent > 100)
		return -EINVAL;
	options->cpu_max_percent = (uint32_t)percent;
	return 0;
}

static int set_quiet(struct options *options, const char *value)
{
	options->verbosity = -1;
	return 0;
}

static int set_verbose(struct options *options, const char *value)
{
	options->verbosity = options->verbosity < 0 ? 1 : options->verbosity + 1;
	return 0;
}

static int set_help(struct options *options, const char *value)
{
	options->help = true;
	return 0;
}

static int set_version(struct options *options, const char *value)
{
	options->version = true;
	return 0;
}

/* The table of recording; the rows of reading are in options_read.c. A row serves every command whose bit it
 * carries. Help lines stay below 80 - HELP_COLUMN. */
static const struct option option_table[] = {
    {COMMAND_RECORD, 'p', "period", "BYTES", NULL, "1 to 1024G, with K, M or G if wanted", set_period,
        "mean bytes between samples, default 512K;\n1 records every allocation; K, M, G work"},
    {COMMAND_RECORD | COMMAND_ADOPT, 'o', "output", "PATTERN", NULL,
        "a path in which % begins one of " OUTPUT_DIRECTIVES, set_output,
        "name of the profiles, default\n" OUTPUT_DEFAULT ": %e executable,\n"
        "%p pid, %n snapshot, %h host, %t unix seconds;\n"
        "a folder or a trailing / means that name inside"},
    {COMMAND_RECORD, 'b', "backend", NULL, backend_names, NULL, set_backend,
        "how stacks are captured; auto, the default, takes\nthe best the kernel allows (-v says which and "
        "why)\nand at periods of 16K and less has the program\ncopy them first, as long as it has room"},
    {COMMAND_RECORD | COMMAND_ADOPT, 's', "stack-bytes", "BYTES", NULL, "256 to 64K", set_stack_bytes,
        "most stack bytes per sample, default 32K"},
    {COMMAND_RECORD | COMMAND_ADOPT, 'i', "interval", "TIME", NULL,
        "0 or a whole number with its unit, such as 500ms, 10s, 5m, 1h (1ms to 1000h)", set_interval,
        "time between snapshots, default 60s; 500ms, 5m\nand 1h work too, 0 means none"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "keep", "N", NULL, "1 to 1000000", set_keep,
        "snapshots to keep of each process, the newest;\nall unless given"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "delta", NULL, NULL, NULL, set_delta,
        "beside each periodic snapshot, what was allocated\nsince the one before (NNNN-delta)"},
    {COMMAND_RECORD, '\0', "no-peak", NULL, NULL, NULL, set_no_peak,
        "do not keep the heap at its largest (peak)"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "signal", "SIG", NULL, "USR1, USR2, RTMIN+N or none", set_signal,
        "asks for a snapshot, default USR1: of a process\nthat has no use for it, or of all if sent to the\n"
        "sampler; none means none"},
    {COMMAND_RECORD, '\0', "paused", NULL, NULL, NULL, set_paused,
        "sample nothing before the program says so\n(heaptap_start in heaptap.h)"},
    {COMMAND_RECORD, '\0', "mmap", NULL, NULL, NULL, set_mmap,
        "record anonymous mappings too, as rows of their\nown under [mmap] (mmap, mremap, munmap)"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "labels", "LIST", NULL,
        "thread, age, size and backend, separated by commas", set_labels,
        "tell blocks apart by thread, age, size or backend\n(how the stack was got)"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "lifetimes", NULL, NULL, NULL, set_lifetimes,
        "write how long blocks lived, by stack, as JSON\nlines (lifetimes.jsonl)"},
    {COMMAND_RECORD, '\0', "temporary", "TIME", NULL, "a whole number with its unit, such as 1ms",
        set_temporary,
        "a block that is freed sooner, by the thread that\nallocated it, is called temporary; default 1ms"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "timeline", NULL, NULL, NULL, set_timeline,
        "write the heap over time, beside the resident\nmemory, as JSON lines (timeline.jsonl)"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "fsync", NULL, NULL, NULL, set_sync,
        "profiles are on the disk before they have a name"},
    {COMMAND_SNAPSHOT, '\0', "all", NULL, NULL, NULL, set_all, "every process that is being profiled"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "symbols", NULL, symbol_names, NULL, set_symbols,
        "names in the profile: full, the default, has\nfunctions, inlined calls and lines; raw has none"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "debuginfod", NULL, NULL, NULL, set_debuginfod,
        "fetch debug files that are not here from the\nservers in $DEBUGINFOD_URLS"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "max-rss", "BYTES", NULL, "1M to 1024G, with K, M or G if wanted",
        set_rss_max, "memory of the sampler above which the period\ndoubles; no limit unless given"},
    {COMMAND_RECORD | COMMAND_ADOPT, '\0', "max-cpu", "PERCENT", NULL, "1 to 100", set_cpu_max,
        "share of one CPU that the sampler may take before\nthe period doubles; no limit unless given"},
    {COMMAND_RECORD | COMMAND_ADOPT, 'q', "quiet", NULL, NULL, NULL, set_quiet, "no summary at the end"},
    {COMMAND_RECORD | COMMAND_ADOPT, 'v', "verbose", NULL, NULL, NULL, set_verbose,
        "say what is done and why; twice for more"},
    {~0u, '\0', "help", NULL, NULL, NULL, set_help, "this text"},
    {~0u, '\0', "version", NULL, NULL, NULL, set_version, "the version"},
};

/* Appends to a string that is cut where its buffer ends. */
__attribute__((format(printf, 3, 4))) static void append(
    char *text, size_t text_bytes, const char *format, ...)
{
	size_t length = text_bytes ? strnlen(text, text_bytes) : 0;
	va_list args;

	if (length + 1 >= text_bytes)
		return;
	va_start(args, format);
	vsnprintf(text + length, text_bytes - length, format, args);
	va_end(args);
}

const struct option *option_at(size_t index)
{
	if (index < ARRAY_COUNT(option_table))
		return &option_table[index];
	index -= ARRAY_COUNT(option_table);
	if (index < options_events_count)
		return &options_events_table[index];
	index -= options_events_count;
	return index < options_read_count ? &options_read_table[index] : NULL;
}

bool option_takes_value(const struct option *option)
{
	return option->value || option->choices;
}

void option_value_describe(const struct option *option, char *text, size_t text_bytes)
{
	text[0] = '\0';
	if (option->value)
		append(text, text_bytes, "%s", option->value);
	for (int i = 0; option->choices && option->choices[i]; i++)
		append(text, text_bytes, "%s%s", i ? "|" : "", option->choices[i]);
}

/* What a value may be, in words. */
static void allowed_describe(const struct option *option, char *text, size_t text_bytes)
{
	text[0] = '\0';
	if (option->allowed)
		append(text, text_bytes, "%s", option->allowed);
	for (int i = 0; option->choices && option->choices[i]; i++) {
		const char *between = !i ? "" : option->choices[i + 1] ? ", " : " or ";
		append(text, text_bytes, "%s%s", between, option->choices[i]);
	}
}

static const struct option *option_find(
    const struct command *command, char letter, const char *name, size_t name_length)
{
	const struct option *option;

	for (size_t i = 0; (option = option_at(i)); i++) {
		if (!(option->commands & command->bit))
			continue;
		if (name ? strlen(option->name) == name_length && memcmp(option->name, name, name_length) == 0
		         : letter == option->letter)
			return option;
	}
	return NULL;
}

static int fail_unknown(const struct command *command, const char *word, char *error, size_t error_bytes)
{
	const struct option *option;

	append(error, error_bytes, "unknown option '%s'; allowed:", word);
	for (size_t i = 0; (option = option_at(i)); i++) {
		if (!(option->commands & command->bit))
			continue;
		if (option->letter)
			append(error, error_bytes, " -%c/--%s", option->letter, option->name);
		else
			append(error, error_bytes, " --%s", option->name);
	}
	append(error, error_bytes, " (see 'heaptap %s --help')", command->name);
	return -EINVAL;
}

static int option_set(
    struct options *options, const struct option *option, const char *value, char *error, size_t error_bytes)
{
	char allowed[256];

	if (option_takes_value(option) && !value) {
		option_value_describe(option, allowed, sizeof(allowed));
		append(error, error_bytes, "option --%s needs a value: %s", option->name, allowed);
		return -EINVAL;
	}
	if (!option_takes_value(option) && value) {
		append(error, error_bytes, "option --%s takes no value", option->name);
		return -EINVAL;
	}
	if (option->set(options, value) == 0)
		return 0;
	allowed_describe(option, allowed, sizeof(allowed));
	append(error, error_bytes, "option --%s: '%s' is not possible; allowed: %s", option->name, value,
	    allowed);
	return -EINVAL;
}

/* One word that begins with "--" and a letter. *at moves past a value taken from the next word. */
static int long_parse(struct options *options, const struct command *command, char *const argv[], int argc,
    int *at, char *error, size_t error_bytes)
{
	const char *word = argv[*at];
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
	const struct option *option = option_find(command, '\0', word + 2, length);
	const char *value = equals ? equals + 1 : NULL;

	if (!option)
		return fail_unknown(command, word, error, error_bytes);
	if (option_takes_value(option) && !value && *at + 1 < argc)
		value = argv[++*at];
	return option_set(options, option, value, error, error_bytes);
}

/* One word of short options: -qv, -p4K, -p 4K. */
static int short_parse(struct options *options, const struct command *command, char *const argv[], int argc,
    int *at, char *error, size_t error_bytes)
{
	const char *word = argv[*at];

	for (const char *letter = word + 1; *letter; letter++) {
		const struct option *option = option_find(command, *letter, NULL, 0);
		const char *value = NULL;
		const char shown[] = {'-', *letter, '\0'};
		int ret;

		if (!option)
			return fail_unknown(command, shown, error, error_bytes);
		if (!option_takes_value(option)) {
			option_set(options, option, NULL, error, error_bytes);
			continue;
		}
		if (letter[1])
			value = letter + 1;
		else if (*at + 1 < argc)
			value = argv[++*at];
		ret = option_set(options, option, value, error, error_bytes);
		return ret;
	}
	return 0;
}

/* One word that begins with '-'; *at stays on its last word. */
static int word_parse(struct options *options, const struct command *command, char *const argv[], int argc,
    int *at, char *error, size_t error_bytes)
{
	if (argv[*at][1] == '-')
		return long_parse(options, command, argv, argc, at, error, error_bytes);
	return short_parse(options, command, argv, argc, at, error, error_bytes);
}

/* Moves the word at `from` to `to`, ahead of the operands between. */
static void word_move(char **argv, int from, int to)
{
	char *word = argv[from];

	memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof(*argv));
	argv[to] = word;
}

/* *first becomes the place of the first operand. Where options may follow operands, they are moved in front.
 * */
static int words_parse(struct options *options, const struct command *command, int argc, char *argv[],
    int *first, char *error, size_t error_bytes)
{
	int operands = 0;

	for (int at = 0; at < argc; at++) {
		int begin = at, ret;

		if (argv[at][0] != '-' || !argv[at][1]) {
			if (!command->mixed)
				return 0;
			operands++;
			continue;
		}
		if (strcmp(argv[at], "--") == 0) {
			word_move(argv, at, at - operands);
			*first = at - operands + 1;
			return 0;
		}
		ret = word_parse(options, command, argv, argc, &at, error, error_bytes);
		if (ret || options->help || options->version)
			return ret;
		for (; begin <= at && begin < argc; begin++)
			word_move(argv, begin, begin - operands);
		*first = at + 1 - operands;
	}
	return 0;
}

int options_parse(struct options *options, const struct command *command, int argc, char *argv[], char *error,
    size_t error_bytes)
{
	int first = 0, ret;

	memset(options, 0, sizeof(*options));
	options->period_bytes = PERIOD_BYTES_DEFAULT;
	options->stack_bytes = STACK_BYTES_DEFAULT;
	options->interval_ns = INTERVAL_NS_DEFAULT;
	options->temporary_ns = TEMPORARY_NS_DEFAULT;
	options->signal = SIGUSR1;
	options_read_defaults(&options->read);
	if (error_bytes)
		error[0] = '\0';
	ret = words_parse(options, command, argc, argv, &first, error, error_bytes);
	if (ret || options->help || options->version)
		return ret;
	options->operands = argv + first;
	options->operand_count = argc - first;
	if (options->pid || options->no_heap)
		ret = options_events_check(options, error, error_bytes);
	if (ret)
		return ret;
	if (command->operand && !options->pid &&
	    options->operand_count < (command->operands_min ? command->operands_min : 1)) {
		append(error, error_bytes, "no %s given; usage: heaptap %s %s", command->operand,
		    command->name, command->synopsis);
		return -EINVAL;
	}
	return 0;
}

static void option_help(FILE *out, const struct option *option)
{
	char left[80] = "", value[64];
	const char *line = option->help;

	option_value_describe(option, value, sizeof(value));
	if (option->letter)
		append(left, sizeof(left), "  -%c, --%s", option->letter, option->name);
	else
		append(left, sizeof(left), "      --%s", option->name);
	if (option_takes_value(option))
		append(left, sizeof(left), " %s", value);
	if (strlen(left) + 2 > HELP_COLUMN) {
		fprintf(out, "%s\n", left);
		left[0] = '\0';
	}
	do {
		int length = (int)strcspn(line, "\n");

		fprintf(out, "%-*s%.*s\n", HELP_COLUMN, left, length, line);
		left[0] = '\0';
		line += length;
	} while (*line++);
}

void options_help(FILE *out, const struct command *command)
{
	fprintf(out, "usage: heaptap %s %s\n%s\n\n", command->name, command->synopsis, command->summary);
	for (size_t i = 0; option_at(i); i++) {
		if (option_at(i)->commands & command->bit)
			option_help(out, option_at(i));
	}
}

const char *symbol_detail_name(enum symbol_detail detail)
{
	return symbol_names[detail];
}
