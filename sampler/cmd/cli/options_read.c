/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the commands that read profiles: report, diff, export, merge, check, symbolize and ls. */
#include "sampler/cmd/cli/options.h"

#include "pprof/export/format.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options_rows.h"

#include <errno.h>
#include <string.h>

#define READING (COMMAND_REPORT | COMMAND_DIFF | COMMAND_EXPORT)
#define GROUPED (READING | COMMAND_MERGE)
#define REGEX   "a regular expression, not empty"

static const char *const sort_names[] = {
#define WORD(constant, word, type) word,
    MEASURES(WORD)
#undef WORD
        "peak",
    NULL};

static const char *const group_names[] = {"function", "thread", "process", "size", "age", "lifetime", NULL};

const char *sort_key_name(enum sort_key key)
{
	return key == SORT_DEFAULT ? "" : sort_names[key - SORT_INUSE];
}

static const char *const state_names[] = {"newest", "peak", "delta", "all", NULL};

static const char *const fail_on_names[] = {"growth", NULL};

static int set_session(struct options *options, const char *value)
{
	const char *suffix;
	uint64_t number = strcmp(value, "all") == 0 ? SESSION_ALL : SESSION_NEWEST;

	if (number != SESSION_ALL && strcmp(value, "newest") != 0 &&
	    (quantity_number(value, &number, &suffix) || *suffix || number < 1 || number >= SESSION_ALL))
		return -EINVAL;
	options->read.session = (int32_t)number;
	return 0;
}

static int set_rows(struct options *options, const char *value)
{
	const char *suffix;
	uint64_t rows;

	if (strcmp(value, "all") == 0) {
		options->read.rows = ROWS_ALL;
		return 0;
	}
	if (quantity_number(value, &rows, &suffix) || *suffix || rows < 1 || rows >= ROWS_ALL)
		return -EINVAL;
	options->read.rows = (int32_t)rows;
	return 0;
}

/* "2", "0.5" or "0.5%": with one decimal at most. */
static int set_threshold(struct options *options, const char *value)
{
	uint64_t whole, tenths = 0;
	const char *suffix;

	if (quantity_number(value, &whole, &suffix) || whole > 100)
		return -EINVAL;
	if (suffix[0] == '.' && suffix[1] >= '0' && suffix[1] <= '9') {
		tenths = (uint64_t)(suffix[1] - '0');
		suffix += 2;
	}
	if (*suffix && strcmp(suffix, "%") != 0)
		return -EINVAL;
	options->read.threshold_permille = (uint32_t)(whole * 10 + tenths);
	return 0;
}

static const struct option rows[] = {
    OPTION_HEADING("which profiles"),
    {GROUPED, '\0', "state", OPTION_CHOICE, OPTION_FIELD(read.state), .choices = state_names,
        .common = READING,
        .help = "which of a process' profiles counts: the newest\n"
                "(the default), its peak, its deltas, or all of\n"
                "them added up"},
    {GROUPED & ~COMMAND_DIFF, '\0', "session", OPTION_SET, .set = set_session, .value = "N",
        .allowed = "a number as heaptap ls has it (1 is the newest), newest, or all",
        .help = "take the Nth newest session (default 1), or all\n"
                "sessions"},
    {COMMAND_LS, '\0', "session", OPTION_SET, .set = set_session, .value = "N",
        .allowed = "a number as heaptap ls has it (1 is the newest), newest, or all",
        .help = "only the Nth newest session"},
    {READING | COMMAND_MERGE | COMMAND_CHECK | COMMAND_LS, '\0', "store", OPTION_TEXT,
        OPTION_FIELD(read.store), .value = "DIR", .allowed = "the name of a folder",
        .help = "the store that has SERVICE[@TIME], default: the\n"
                "daemon's"},
    {READING | COMMAND_MERGE | COMMAND_CHECK | COMMAND_SYMBOLIZE | COMMAND_LS, '\0', "max-memory",
        OPTION_BYTES, OPTION_FIELD(read.memory_max_bytes), .least = 1 << 20, .most = INT64_MAX,
        .value = "BYTES", .allowed = "1M or more, for example 2G",
        .help = "memory that a profile may take, default 1G: a file\n"
                "of 100 KiB can unpack to gigabytes"},
    OPTION_HEADING("what is counted"),
    {READING, '\0', "sort", OPTION_CHOICE, OPTION_FIELD(read.sort), .least = SORT_INUSE,
        .choices = sort_names, .common = READING,
        .help = "what is counted: bytes or objects in use, bytes or\n"
                "objects ever allocated, objects freed again, those\n"
                "freed soon, or the bytes in use in the largest\n"
                "snapshot"},
    {COMMAND_REPORT | COMMAND_DIFF, '\0', "by", OPTION_CHOICE, OPTION_FIELD(read.by), .choices = group_names,
        .common = READING,
        .help = "what a row is: a function (the default), or a\n"
                "thread, process, size, age or lifetime (temporary\n"
                "or not); all but function and process need\n"
                "record --labels"},
    {COMMAND_REPORT | COMMAND_DIFF, '\0', "cum", OPTION_FLAG, OPTION_FIELD(read.cum),
        .help = "sort by what a function and its callees hold"},
    {COMMAND_DIFF, '\0', "normalize", OPTION_FLAG, OPTION_FIELD(read.normalize), .common = READING,
        .help = "scale NEW to the total of BASE first"},
    OPTION_HEADING("which stacks"),
    {READING, '\0', "focus", OPTION_TEXT, OPTION_FIELD(read.focus), .value = "RE", .allowed = REGEX,
        .common = READING, .help = "only stacks with matching function or source file"},
    {READING, '\0', "ignore", OPTION_TEXT, OPTION_FIELD(read.ignore), .value = "RE", .allowed = REGEX,
        .help = "no stacks with matching function or source file"},
    {READING, '\0', "hide", OPTION_TEXT, OPTION_FIELD(read.hide), .value = "RE", .allowed = REGEX,
        .help = "leave matching functions out of stacks: their\n"
                "bytes count for what called them"},
    {READING, '\0', "module", OPTION_TEXT, OPTION_FIELD(read.module), .value = "RE", .allowed = REGEX,
        .help = "only stacks with matching program or library file"},
    {READING, '\0', "thread", OPTION_TEXT, OPTION_FIELD(read.thread), .value = "RE", .allowed = REGEX,
        .help = "only threads whose name or id matches"},
    {READING, '\0', "size", OPTION_BYTES_RANGE, OPTION_FIELD(read.size_bytes), .value = "MIN:MAX",
        .allowed = "MIN:MAX in bytes, for example 64:4K, 1M: or :100",
        .help = "only blocks of this size (mean per stack)"},
    {READING, '\0', "age", OPTION_TIME_RANGE, OPTION_FIELD(read.age_ns), .value = "MIN:MAX",
        .allowed = "MIN:MAX with units, for example 1s:1m or 10s:", .help = "only blocks of this age"},
    OPTION_HEADING("how it is shown"),
    {COMMAND_REPORT, 't', "tree", OPTION_FLAG, OPTION_FIELD(read.tree), .common = READING,
        .help = "call tree, from main inwards"},
    {COMMAND_REPORT, '\0', "inverted", OPTION_FLAG, OPTION_FIELD(read.inverted),
        .help = "call tree, from the allocating function outwards"},
    {COMMAND_REPORT | COMMAND_EXPORT, '\0', "threshold", OPTION_SET, .set = set_threshold, .value = "PERCENT",
        .allowed = "0 to 100, with one decimal if wanted",
        .help = "combine the nodes of a tree that have less than\n"
                "PERCENT of the total, default 1"},
    {COMMAND_REPORT, 'l', "leaks", OPTION_FLAG, OPTION_FIELD(read.leaks), .common = READING,
        .help = "what was never freed, by stack; for exit profiles"},
    {COMMAND_REPORT, '\0', "suppressions", OPTION_TEXT, OPTION_FIELD(read.suppressions), .value = "FILE",
        .allowed = "the name of a file",
        .help = "leave out leaks listed in FILE, in LeakSanitizer's\n"
                "format: lines 'leak:PATTERN'"},
    {COMMAND_REPORT, '\0', "timeline", OPTION_FLAG, OPTION_FIELD(read.timeline), .common = READING,
        .help = "a picture of what was in use, and resident, at\n"
                "each snapshot; with --json as numbers"},
    {COMMAND_REPORT | COMMAND_DIFF, 'n', "rows", OPTION_SET, .set = set_rows, .value = "N",
        .allowed = "1 or more, or all", .common = READING, .help = "rows per table, or all"},
    {READING, '\0', "lines", OPTION_FLAG, OPTION_FIELD(read.lines), .help = "distinguish source lines"},
    {READING, '\0', "full-names", OPTION_FLAG, OPTION_FIELD(read.full_names),
        .help = "show names with their template arguments; each\n"
                "instance of a template is a row of its own"},
    {COMMAND_REPORT | COMMAND_DIFF, '\0', "all-frames", OPTION_FLAG, OPTION_FIELD(read.all_frames),
        .help = "name a row by the function that called the\n"
                "allocator, even if it is a library's or a wrapper;\n"
                "keep frames that repeat"},
    {COMMAND_EXPORT, 'f', "format", OPTION_CHOICE, OPTION_FIELD(read.format), .choices = export_format_names,
        .common = READING, .help = "output format; required"},
    {COMMAND_EXPORT | COMMAND_MERGE, '\0', "anonymize", OPTION_FLAG, OPTION_FIELD(read.anonymize),
        .common = COMMAND_EXPORT, .help = "write hashes instead of names"},
    {READING | COMMAND_MERGE | COMMAND_LS | COMMAND_STATUS, 'o', "output", OPTION_TEXT, OPTION_FIELD(output),
        .value = "FILE", .allowed = "the name of a file", .common = COMMAND_EXPORT,
        .help = "write to FILE instead of standard output"},
    {COMMAND_SYMBOLIZE, 'o', "output", OPTION_TEXT, OPTION_FIELD(output), .value = "FILE",
        .allowed = "the name of a file", .common = COMMAND_EXPORT,
        .help = "write to FILE instead of PROFILE.symbolized"},
    {COMMAND_REPORT | COMMAND_DIFF | COMMAND_LS | COMMAND_STATUS, '\0', "json", OPTION_FLAG,
        OPTION_FIELD(read.json), .common = READING & ~COMMAND_REPORT, .help = "print everything as JSON"},
    {COMMAND_REPORT | COMMAND_DIFF | COMMAND_LS | COMMAND_STATUS, '\0', "no-pager", OPTION_FLAG,
        OPTION_FIELD(read.no_pager), .help = "print to the terminal without a pager"},
    {COMMAND_CHECK, '\0', "strict", OPTION_FLAG, OPTION_FIELD(read.strict),
        .help = "also report what only some readers reject, and\n"
                "what heaptap itself never writes"},
    {COMMAND_SYMBOLIZE, '\0', "debuginfod", OPTION_FLAG, OPTION_FIELD(read.debuginfod),
        .help = "fetch missing debug files from the servers in\n"
                "$DEBUGINFOD_URLS"},
    {COMMAND_CHECK, 'v', "verbose", OPTION_SET, .set = options_set_verbose,
        .help = "also report valid files, and what is only unusual"},
    {COMMAND_REPORT, 'v', "verbose", OPTION_SET, .set = options_set_verbose,
        .help = "also say how the samples were taken"},
    {COMMAND_LS, 'v', "verbose", OPTION_SET, .set = options_set_verbose,
        .help = "list the files of each process too"},
    OPTION_HEADING("exit status"),
    {COMMAND_REPORT | COMMAND_DIFF, '\0', "fail-over", OPTION_BYTES, OPTION_FIELD(read.fail_over_bytes),
        .most = INT64_MAX, .value = "BYTES", .allowed = "0 or more, for example 100M", .common = READING,
        .help = "exit status 3 if more than BYTES are in use (diff:\n"
                "if the use grew by more than BYTES)"},
    {COMMAND_REPORT, '\0', "fail-on", OPTION_CHOICE, OPTION_FIELD(read.fail_on), .least = FAIL_ON_GROWTH,
        .choices = fail_on_names, .common = READING,
        .help = "exit status 3 if anything grows by more than\n"
                "chance, 1 if that is not known"},
};

const struct option_table options_read = {rows, sizeof(rows) / sizeof(rows[0])};
