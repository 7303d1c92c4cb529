/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/cli/options.h"
#include "sampler/symbol/symbol.h"

#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/help.h"
#include "sampler/cmd/cli/options_rows.h"
#include "sampler/write/interval.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct command record = {
    .name = "record",
    .bit = COMMAND_RECORD,
    .synopsis = "[OPTIONS] [--] COMMAND [ARG...]",
    .operand = "COMMAND",
};

static struct options options;
static char error[512];

/* Parses words up to the first NULL. */
static int parse(const char *first, ...)
{
	static char *words[16];
	int count = 0;
	va_list args;

	va_start(args, first);
	for (const char *word = first; word && count < 15; word = va_arg(args, const char *))
		words[count++] = (char *)word;
	va_end(args);
	words[count] = NULL;
	return options_parse(&options, &record, count, words, error, sizeof(error));
}

static void defaults_are_those_of_the_contract(void **state)
{
	assert_int_equal(parse("true", NULL), 0);
	assert_int_equal(options.record.heap.period_bytes, 512 << 10);
	assert_int_equal(options.record.heap.stack_bytes, 32 << 10);
	assert_int_equal(options.record.interval_ns, INTERVAL_USUAL);
	assert_int_equal(options.record.heap.backend, BACKEND_AUTO);
	assert_int_equal(options.record.symbols, SYMBOL_FULL);
	assert_int_equal(options.verbosity, 0);
	assert_null(options.output);
	assert_int_equal(options.operand_count, 1);
	assert_string_equal(options.operands[0], "true");
	assert_null(options.operands[1]);
}

static void values_come_in_four_forms(void **state)
{
	assert_int_equal(parse("-p4K", "c", NULL), 0);
	assert_int_equal(options.record.heap.period_bytes, 4096);
	assert_int_equal(parse("-p", "5m", "c", NULL), 0);
	assert_int_equal(options.record.heap.period_bytes, 5 << 20);
	assert_int_equal(parse("--period=1", "c", NULL), 0);
	assert_int_equal(options.record.heap.period_bytes, 1);
	assert_int_equal(parse("--period", "1024G", "c", NULL), 0);
	assert_int_equal(options.record.heap.period_bytes, PERIOD_BYTES_MAX);
	assert_int_equal(parse("-qvvp7", "c", NULL), 0);
	assert_int_equal(options.record.heap.period_bytes, 7);
	assert_int_equal(options.verbosity, 2);
}

static void operands_begin_at_the_first_other_word(void **state)
{
	assert_int_equal(parse("-q", "ls", "-v", "--help", NULL), 0);
	assert_int_equal(options.operand_count, 3);
	assert_int_equal(options.verbosity, -1);
	assert_false(options.help);
	assert_int_equal(parse("--", "-p", NULL), 0);
	assert_string_equal(options.operands[0], "-p");
	assert_int_equal(parse("-", "x", NULL), 0);
	assert_string_equal(options.operands[0], "-");
}

static void choices_are_found_by_name(void **state)
{
	static const enum backend all[] = {BACKEND_AUTO, BACKEND_UPROBE, BACKEND_BREAKPOINT, BACKEND_COPY};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(parse("-b", backend_name(all[i]), "c", NULL), 0);
		assert_int_equal(options.record.heap.backend, all[i]);
	}
	assert_int_equal(parse("--symbols=raw", "c", NULL), 0);
	assert_int_equal(options.record.symbols, SYMBOL_RAW);
}

/* The command line and the symbolizer mean the same by a detail: one enum, in both headers. */
static void a_detail_is_the_symbolizers(void **state)
{
	const struct symbol_file no_file = {.fd = -1, .path = "/x/lib.so"};
	const uint64_t vaddr = 0x10;

	for (int raw = 0; raw < 2; raw++) {
		struct symbol_result result;
		struct symbol_facts facts;

		assert_int_equal(parse("--symbols", raw ? "raw" : "full", "c", NULL), 0);
		struct symbols *symbols =
		    symbols_new(&(struct symbol_options){.detail = options.record.symbols});
		assert_non_null(symbols);
		assert_int_equal(symbols_resolve(symbols, &no_file, &vaddr, 1, &result, &facts), 0);
		assert_int_equal(result.frame_count, raw ? 0 : 1);
		symbols_free(symbols);
	}
}

static void times_need_a_unit_unless_zero(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
	    {"500ms", UINT64_C(500000000)},
	    {"10s", UINT64_C(10000000000)},
	    {"5m", UINT64_C(300000000000)},
	    {"1h", UINT64_C(3600000000000)},
	    {"0", 0},
	    {"0s", 0},
	    {"1000h", INTERVAL_NS_MAX},
	};
	static const char *const bad[] = {
	    "", "10", "s", "-1s", "1.5s", "1d", "1001h", "99999999999999999h", "10 s"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(parse("-i", good[i].text, "c", NULL), 0);
		assert_int_equal(options.record.interval_ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse("-i", bad[i], "c", NULL), -EINVAL);
		assert_non_null(strstr(error, "500ms"));
	}
}

static void thresholds(void **state)
{
	static const struct {
		const char *text;
		struct threshold wanted;
	} good[] = {
	    {"rss=2G", {THRESHOLD_RSS, false, UINT64_C(2) << 30}},
	    {"rss=+256M", {THRESHOLD_RSS, true, 256 << 20}},
	    {"inuse=1", {THRESHOLD_INUSE, false, 1}},
	    {"inuse=+4k", {THRESHOLD_INUSE, true, 4096}},
	    {"alloc=10G", {THRESHOLD_ALLOC, true, UINT64_C(10) << 30}},
	    {"alloc=+10G", {THRESHOLD_ALLOC, true, UINT64_C(10) << 30}},
	    {"memory.high", {THRESHOLD_MEMORY_HIGH, false, 0}},
	};
	static const char *const bad[] = {"", "rss", "rss=", "=2G", "rss=0", "rss=-1", "rss=+", "rss=++1",
	    "rss=2T", "rss =2G", "rss=2G ", "RSS=2G", "rs=2G", "memory.high=1G", "memory.high=", "memory",
	    "inuse", "rss=18446744073709551615", "rss=9999999999G"};
	char text[32];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(parse("--on", good[i].text, "c", NULL), 0);
		assert_int_equal(options.record.on_count, 1);
		assert_int_equal(options.record.on[0].measure, good[i].wanted.measure);
		assert_int_equal(options.record.on[0].growth, good[i].wanted.growth);
		assert_int_equal(options.record.on[0].bytes, good[i].wanted.bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse("--on", bad[i], "c", NULL), -EINVAL);
		assert_non_null(strstr(error,
		    "; give rss=2G, inuse=2G (a level), rss=+256M, inuse=+256M (growth), "
		    "alloc=10G or memory.high"));
	}
	assert_int_equal(parse("--on=rss=1G", "--on", "alloc=1G", "--on", "alloc=+1G", "c", NULL), 0);
	assert_int_equal(options.record.on_count, 2);
	assert_int_equal(options.record.on_limit_ns, 10 * UINT64_C(1000000000));
	assert_int_equal(parse("--on-limit", "0", "c", NULL), 0);
	assert_int_equal(options.record.on_limit_ns, 0);
	memset(&options, 0, sizeof(options));
	for (int i = 1; i <= THRESHOLDS_MAX + 1; i++) {
		char *words[2 * (THRESHOLDS_MAX + 1) + 2];
		char texts[THRESHOLDS_MAX + 1][16];

		for (int j = 0; j < i; j++) {
			snprintf(texts[j], sizeof(texts[j]), "rss=%dM", j + 1);
			words[2 * j] = "--on";
			words[2 * j + 1] = texts[j];
		}
		words[2 * i] = "c";
		words[2 * i + 1] = NULL;
		assert_int_equal(options_parse(&options, &record, 2 * i + 1, words, error, sizeof(error)),
		    i <= THRESHOLDS_MAX ? 0 : -EINVAL);
	}
	snprintf(text, sizeof(text), "%d", THRESHOLDS_MAX);
	assert_non_null(strstr(error, text));
	assert_int_equal(parse("--on", "rss=1G", "--no-heap", "-e", "cpu-clock", "c", NULL), -EINVAL);
	assert_non_null(strstr(error, "--on is about heaps"));
}

static void numbers_outside_the_range_are_refused(void **state)
{
	static const char *const periods[] = {"", "0", "-1", "+1", " 1", "1 ", "1B", "KK", "K", "0x10",
	    "1025G", "18446744073709551615", "18446744073709551616", "17592186044416M"};
	static const char *const stacks[] = {"0", "255", "65537", "65K", "1M"};

	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		assert_int_equal(parse("-p", periods[i], "c", NULL), -EINVAL);
		assert_non_null(strstr(error, "--period"));
		assert_non_null(strstr(error, "1 to 1024G"));
	}
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
		assert_int_equal(parse("-s", stacks[i], "c", NULL), -EINVAL);
	assert_int_equal(parse("-s", "256", "c", NULL), 0);
	assert_int_equal(parse("-s", "64K", "c", NULL), 0);
	assert_int_equal(options.record.heap.stack_bytes, 65536);
}

static void errors_list_what_is_allowed(void **state)
{
	assert_int_equal(parse("--nonsense", "c", NULL), -EINVAL);
	assert_non_null(strstr(error, "'--nonsense'"));
	assert_non_null(strstr(error, "'heaptap record --help-all' lists all"));
	assert_int_equal(parse("--perio", "4K", "c", NULL), -EINVAL);
	assert_non_null(strstr(error, "did you mean --period?"));
	assert_int_equal(parse("-x", "c", NULL), -EINVAL);
	assert_int_equal(parse("-b", "dtrace", "c", NULL), -EINVAL);
	assert_non_null(strstr(error, "auto, uprobe, breakpoint, copy or walk"));
	assert_int_equal(parse("--quiet=1", "c", NULL), -EINVAL);
	assert_int_equal(parse("-p", NULL), -EINVAL);
	assert_non_null(strstr(error, "needs a value"));
	assert_int_equal(parse(NULL, NULL), -EINVAL);
	assert_non_null(strstr(error, "no COMMAND"));
	assert_int_equal(parse("-o", "%q", "c", NULL), -EINVAL);
	assert_non_null(strstr(error, "%e %p %n %h %t %%"));
}

/* heaptrack's -p is a pid. */
static void a_running_process_is_told_what_to_do(void **state)
{
	assert_int_equal(parse("--pid", "4711,4712,4711", NULL), 0);
	assert_int_equal(options.record.pid_count, 2);
	assert_int_equal(options.record.pids[0], 4711);
	assert_int_equal(options.record.pids[1], 4712);
	assert_int_equal(parse("-P", "1,", NULL), -EINVAL);
	assert_int_equal(parse("-P", "x", NULL), -EINVAL);
	assert_int_equal(parse("-P", "0", NULL), -EINVAL);
	assert_int_equal(parse("-P", "1 2", NULL), -EINVAL);
	assert_int_equal(parse("-P", "1", "touch", NULL), -EINVAL);
	assert_non_null(strstr(error, "exclude each other"));
	assert_int_equal(parse("--duration", "5s", "touch", NULL), -EINVAL);
	assert_non_null(strstr(error, "are for --pid"));
	assert_int_equal(parse("-P", "1", "--paused", NULL), -EINVAL);
	assert_int_equal(parse("-P", "1", "--on", "rss=1G", NULL), 0);
	assert_int_equal(parse("-P", "1", "--only", "x", NULL), -EINVAL);
	assert_int_equal(parse("-P", "1", "--exclude", "x", NULL), -EINVAL);
	assert_int_equal(parse("-P", "1", "--no-heap", "-e", "cpu-clock", "--on", "rss=1G", NULL), -EINVAL);
	assert_non_null(strstr(error, "--on is about heaps"));
	assert_int_equal(parse("-p", "4711", NULL), -EINVAL);
	assert_non_null(strstr(error, "no COMMAND given"));
	assert_non_null(
	    strstr(error, "-p is the period in bytes; the pid of a process that runs already goes to -P"));
	assert_int_equal(parse(NULL, NULL), -EINVAL);
	assert_null(strstr(error, "pid"));
}

static void an_error_is_cut_to_its_buffer(void **state)
{
	char *words[] = {"--nonsense", NULL};
	char small[24];

	memset(small, 'x', sizeof(small));
	assert_int_equal(options_parse(&options, &record, 1, words, small, 16), -EINVAL);
	assert_int_equal(strlen(small), 15);
	assert_int_equal(small[16], 'x');
	assert_int_equal(options_parse(&options, &record, 1, words, NULL, 0), -EINVAL);
}

static void help_wins_over_what_follows(void **state)
{
	assert_int_equal(parse("--help", "--nonsense", NULL), 0);
	assert_true(options.help);
	assert_int_equal(parse("--version", NULL), 0);
	assert_true(options.version);
	assert_int_equal(parse("-h", "--nonsense", NULL), 0);
	assert_true(options.help);
	assert_int_equal(parse("--nonsense", "--help", NULL), -EINVAL);
}

static void help_names_every_option(void **state)
{
	static const char *const names[] = {"-p, --period BYTES", "-o, --output PATTERN", "-s, --stack-bytes",
	    "-b, --backend auto|uprobe|breakpoint|copy", "-i, --interval TIME", "--symbols full|raw",
	    "-q, --quiet", "-v, --verbose", "--help", "--version", "usage: heaptap record [OPTIONS]"};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	help_command(out, options_tables, &record, true);
	fclose(out);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_non_null(strstr(text, names[i]));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(defaults_are_those_of_the_contract),
	    cmocka_unit_test(values_come_in_four_forms),
	    cmocka_unit_test(operands_begin_at_the_first_other_word),
	    cmocka_unit_test(choices_are_found_by_name),
	    cmocka_unit_test(a_detail_is_the_symbolizers),
	    cmocka_unit_test(times_need_a_unit_unless_zero),
	    cmocka_unit_test(thresholds),
	    cmocka_unit_test(numbers_outside_the_range_are_refused),
	    cmocka_unit_test(errors_list_what_is_allowed),
	    cmocka_unit_test(a_running_process_is_told_what_to_do),
	    cmocka_unit_test(an_error_is_cut_to_its_buffer),
	    cmocka_unit_test(help_wins_over_what_follows),
	    cmocka_unit_test(help_names_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
