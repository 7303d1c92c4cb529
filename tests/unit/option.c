/* SPDX-License-Identifier: Apache-2.0 */
/* The option engine by itself: each kind of option, with a table and a struct options of this test's own. */
#include "sampler/cmd/cli/option.h"

#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/help.h"
#include "sampler/cmd/cli/option_value.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum shape { SHAPE_NONE, SHAPE_ROUND, SHAPE_SQUARE };

struct options {
	bool flag, on, stop;
	uint32_t small, small_bytes;
	uint64_t large, bytes, time_ns;
	const char *text;
	enum shape shape;
	struct option_range size_bytes, age_ns;
	int louder;
	uint32_t guard; /* a store that is too wide would change it */
};

static int set_louder(struct options *options, const char *value)
{
	options->louder++;
	return 0;
}

static int set_even(struct options *options, const char *value)
{
	return strlen(value) % 2 ? -EINVAL : 0;
}

static const char *const shapes[] = {"round", "square", NULL};

static const struct option first_rows[] = {
    {1, 'f', "flag", OPTION_FLAG, OPTION_FIELD(flag), .help = "a flag"},
    {1, '\0', "on", OPTION_FLAG, OPTION_FIELD(on), .help = "another"},
    {1, '\0', "stop", OPTION_STOP, OPTION_FIELD(stop), .help = "nothing more"},
    {1, 's', "small", OPTION_COUNT, OPTION_FIELD(small), .least = 2, .most = 9, .value = "N",
        .allowed = "2 to 9", .help = "a number of\ntwo lines"},
    {1, '\0', "large", OPTION_COUNT, OPTION_FIELD(large), .most = UINT64_MAX, .value = "N", .allowed = "any",
        .help = "a number"},
    {1, '\0', "small-bytes", OPTION_BYTES, OPTION_FIELD(small_bytes), .least = 1, .most = 1 << 20,
        .value = "BYTES", .allowed = "1 to 1M", .help = "bytes"},
    {1, 'b', "bytes", OPTION_BYTES, OPTION_FIELD(bytes), .least = 1, .most = INT64_MAX, .value = "BYTES",
        .allowed = "1 or more", .help = "bytes"},
};

static const struct option second_rows[] = {
    {1, 't', "time", OPTION_TIME, OPTION_FIELD(time_ns), .least = 1000000, .most = 3600000000000,
        .value = "TIME", .allowed = "1ms to 1h", .help = "a time"},
    {1, '\0', "text", OPTION_TEXT, OPTION_FIELD(text), .value = "TEXT", .allowed = "not empty",
        .help = "text"},
    {1, '\0', "shape", OPTION_CHOICE, OPTION_FIELD(shape), .least = SHAPE_ROUND, .choices = shapes,
        .help = "one"},
    {1, '\0', "size", OPTION_BYTES_RANGE, OPTION_FIELD(size_bytes), .value = "MIN:MAX", .allowed = "sizes",
        .help = "a range"},
    {1, '\0', "age", OPTION_TIME_RANGE, OPTION_FIELD(age_ns), .value = "MIN:MAX", .allowed = "ages",
        .help = "a range"},
    {1, 'l', "louder", OPTION_SET, .set = set_louder, .help = "louder"},
    {1, '\0', "even", OPTION_SET, .set = set_even, .value = "TEXT", .allowed = "an even number of letters",
        .help = "even"},
    {2, 'o', "other", OPTION_FLAG, OPTION_FIELD(flag), .help = "another command's"},
};

static const struct option_table first = {first_rows, sizeof(first_rows) / sizeof(*first_rows)};
static const struct option_table second = {second_rows, sizeof(second_rows) / sizeof(*second_rows)};
static const struct option_table *const tables[] = {&first, &second, NULL};
static struct command command = {.name = "test", .bit = 1, .synopsis = "[OPTIONS]", .summary = "a test"};

static struct options options;
static char error[512];
static char *words[16];
static int first_operand;

/* Parses words up to the first NULL. */
static int parse(const char *word, ...)
{
	int count = 0;
	va_list args;

	options = (struct options){.guard = 0xdeadbeef};
	error[0] = '\0';
	va_start(args, word);
	for (; word && count < 15; word = va_arg(args, const char *))
		words[count++] = (char *)word;
	va_end(args);
	words[count] = NULL;
	return option_parse(tables, &command, &options, count, words, &first_operand, error, sizeof(error));
}

static void flags_are_set(void **state)
{
	assert_int_equal(parse("-f", NULL), 0);
	assert_true(options.flag);
	assert_false(options.on);
	assert_int_equal(parse("--on", NULL), 0);
	assert_true(options.on);
	assert_false(options.flag);
	assert_int_equal(parse("--on", "--flag", "--on", NULL), 0);
	assert_true(options.on && options.flag);
	assert_false(options.stop);
	assert_int_equal(options.small, 0);
	assert_int_equal(options.guard, 0xdeadbeef);
	assert_int_equal(parse("word", NULL), 0);
	assert_false(options.flag || options.on || options.stop);
	assert_int_equal(parse("--flag=yes", NULL), -EINVAL);
	assert_string_equal(error, "--flag takes no value");
}

static void a_stop_ends_parsing(void **state)
{
	assert_int_equal(parse("-f", "--stop", "--nonsense", NULL), 1);
	assert_true(options.flag && options.stop);
}

static void numbers_fill_their_field_and_no_more(void **state)
{
	assert_int_equal(parse("--small", "9", "--small-bytes=1M", NULL), 0);
	assert_int_equal(options.small, 9);
	assert_int_equal(options.small_bytes, 1 << 20);
	assert_int_equal(options.large, 0);
	assert_int_equal(parse("--large", "18446744073709551615", NULL), 0);
	assert_true(options.large == UINT64_MAX);
	assert_int_equal(parse("-b", "3G", NULL), 0);
	assert_true(options.bytes == UINT64_C(3) << 30);
	assert_int_equal(options.guard, 0xdeadbeef);
}

static void numbers_outside_their_limits_are_refused(void **state)
{
	static const char *const bad[] = {"--small=1", "--small=10", "-s", "-sx", "-b0",
	    "--small-bytes=1025K", "-t0.5s", "-t1", "-t61m", "-t1us"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(parse(bad[i], NULL), -EINVAL);
	assert_int_equal(parse("-s", "10", NULL), -EINVAL);
	assert_string_equal(error, "--small: '10' is out of range; give 2 to 9");
	assert_int_equal(parse("-s", "few", NULL), -EINVAL);
	assert_string_equal(error, "--small: 'few' is not a number; give 2 to 9");
	assert_int_equal(parse("-b", "1X", NULL), -EINVAL);
	assert_string_equal(error, "--bytes: '1X' is not a size; give 1 or more");
	assert_int_equal(parse("-t", "61m", NULL), -EINVAL);
	assert_string_equal(error, "--time: '61m' is out of range; give 1ms to 1h");
}

static void times_are_nanoseconds(void **state)
{
	assert_int_equal(parse("-t", "1h", NULL), 0);
	assert_true(options.time_ns == UINT64_C(3600000000000));
	assert_int_equal(parse("-t0", NULL), 0);
	assert_true(options.time_ns == 0);
}

static void choices_count_from_the_least(void **state)
{
	assert_int_equal(parse("--shape", "square", NULL), 0);
	assert_int_equal(options.shape, SHAPE_SQUARE);
	assert_int_equal(parse("--shape", "oval", NULL), -EINVAL);
	assert_string_equal(error, "--shape: 'oval' is none of its values; give round or square");
	assert_int_equal(parse("--shape", "sqare", NULL), -EINVAL);
	assert_string_equal(
	    error, "--shape: 'sqare' is none of its values; did you mean square? Give round or square");
	assert_int_equal(options.shape, SHAPE_NONE);
}

static void text_is_not_empty(void **state)
{
	assert_int_equal(parse("--text=a=b", NULL), 0);
	assert_string_equal(options.text, "a=b");
	assert_int_equal(parse("--text=", NULL), -EINVAL);
	assert_int_equal(parse("--text", NULL), -EINVAL);
	assert_string_equal(error, "--text needs a value: not empty");
}

static void ranges_have_two_ends(void **state)
{
	static const char *const bad[] = {"", ":", "4K:64", "1:2:3", "x:", ":x"};

	assert_int_equal(parse("--size=64:4K", "--age", "1s:", NULL), 0);
	assert_true(
	    options.size_bytes.given && options.size_bytes.min == 64 && options.size_bytes.max == 4096);
	assert_true(
	    options.age_ns.given && options.age_ns.min == 1000000000 && options.age_ns.max == UINT64_MAX);
	assert_int_equal(parse("--size", ":100", NULL), 0);
	assert_true(options.size_bytes.min == 0 && options.size_bytes.max == 100);
	assert_false(options.age_ns.given);
	assert_int_equal(parse("--size", "7", NULL), 0);
	assert_true(options.size_bytes.min == 7 && options.size_bytes.max == 7);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(parse("--size", bad[i], NULL), -EINVAL);
	assert_int_equal(parse("--age", "5:6", NULL), -EINVAL);
}

static void anything_else_has_a_function(void **state)
{
	assert_int_equal(parse("-lfl", "--louder", "--even", "four", NULL), 0);
	assert_int_equal(options.louder, 3);
	assert_int_equal(parse("--even", "odd", NULL), -EINVAL);
	assert_string_equal(error, "--even: 'odd' is not possible; give an even number of letters");
}

static void a_command_has_only_its_own(void **state)
{
	assert_int_equal(parse("-o", NULL), -EINVAL);
	assert_string_equal(error, "unknown option '-o' ('heaptap test --help-all' lists all)");
	assert_int_equal(parse("--othr", NULL), -EINVAL);
	assert_null(strstr(error, "--other"));
	assert_ptr_equal(option_at(tables, first.count), second.rows);
	assert_null(option_at(tables, first.count + second.count));
}

static void unknown_options_are_told_the_nearest(void **state)
{
	assert_int_equal(parse("--falg", NULL), -EINVAL);
	assert_string_equal(
	    error, "unknown option '--falg'; did you mean --flag? ('heaptap test --help-all' lists all)");
	assert_int_equal(parse("--smal=3", NULL), -EINVAL);
	assert_non_null(strstr(error, "unknown option '--smal=3'; did you mean --small, --small-bytes?"));
	assert_int_equal(parse("--nothing-like-it", NULL), -EINVAL);
	assert_null(strstr(error, "did you mean"));
}

static void options_move_in_front_where_they_are_mixed(void **state)
{
	command.mixed = true;
	assert_int_equal(parse("a", "-s", "3", "b", "-f", "--", "-c", NULL), 0);
	command.mixed = false;
	assert_int_equal(first_operand, 4);
	assert_string_equal(words[4], "a");
	assert_string_equal(words[5], "b");
	assert_string_equal(words[6], "-c");
	assert_int_equal(options.small, 3);
	assert_int_equal(parse("-f", "a", "-s", NULL), 0);
	assert_int_equal(first_operand, 1);
}

static void help_is_in_columns(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	help_command(out, tables, &command, false);
	fclose(out);
	assert_non_null(strstr(text, "usage: heaptap test [OPTIONS]\na test\n\noptions:\n"));
	assert_non_null(strstr(text,
	    "\n  -s, --small N               a number of\n"
	    "                              two lines\n"));
	assert_non_null(strstr(text, "\n      --shape round|square    one\n"));
	assert_null(strstr(text, "another command's"));
	assert_null(strstr(text, "examples:"));
	free(text);
	out = open_memstream(&text, &size);
	command.examples = "heaptap test -f\nheaptap test x";
	help_command(out, tables, &command, false);
	command.examples = NULL;
	fclose(out);
	assert_non_null(strstr(text, "\n\nexamples:\n  heaptap test -f\n  heaptap test x\n\noptions:\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(flags_are_set),
	    cmocka_unit_test(a_stop_ends_parsing),
	    cmocka_unit_test(numbers_fill_their_field_and_no_more),
	    cmocka_unit_test(numbers_outside_their_limits_are_refused),
	    cmocka_unit_test(times_are_nanoseconds),
	    cmocka_unit_test(choices_count_from_the_least),
	    cmocka_unit_test(text_is_not_empty),
	    cmocka_unit_test(ranges_have_two_ends),
	    cmocka_unit_test(anything_else_has_a_function),
	    cmocka_unit_test(a_command_has_only_its_own),
	    cmocka_unit_test(unknown_options_are_told_the_nearest),
	    cmocka_unit_test(options_move_in_front_where_they_are_mixed),
	    cmocka_unit_test(help_is_in_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
