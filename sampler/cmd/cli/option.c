/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/cli/option.h"

#include "pprof/text/nearest.h"
#include "pprof/text/text.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/option_value.h"
#include "sampler/cmd/cli/other_words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct option *option_at(const struct option_table *const *tables, size_t index)
{
	for (; *tables; tables++) {
		if (index < (*tables)->count)
			return &(*tables)->rows[index];
		index -= (*tables)->count;
	}
	return NULL;
}

bool option_takes_value(const struct option *option)
{
	return option->value || option->choices;
}

void option_value_describe(const struct option *option, char *text, size_t text_bytes)
{
	text[0] = '\0';
	if (option->value)
		text_append(text, text_bytes, "%s", option->value);
	for (int i = 0; option->choices && option->choices[i]; i++)
		text_append(text, text_bytes, "%s%s", i ? "|" : "", option->choices[i]);
}

/* Says what a value may be. */
static void allowed_describe(const struct option *option, char *text, size_t text_bytes)
{
	text[0] = '\0';
	if (option->allowed)
		text_append(text, text_bytes, "%s", option->allowed);
	for (int i = 0; option->choices && option->choices[i]; i++) {
		const char *between = !i ? "" : option->choices[i + 1] ? ", " : " or ";

		text_append(text, text_bytes, "%s%s", between, option->choices[i]);
	}
}

/* The parsing of one command's words. */
struct parsing {
	const struct option_table *const *tables;
	const struct command *command;
	struct options *options;
	char **argv;
	int argc, at; /* index of the current word; moves on past a value that is a word of its own */
	char *error;
	size_t error_bytes;
};

static const struct option *option_find(
    const struct parsing *p, char letter, const char *name, size_t name_length)
{
	const struct option *option;

	for (size_t i = 0; (option = option_at(p->tables, i)); i++) {
		if (!(option->commands & p->command->bit))
			continue;
		if (name ? strlen(option->name) == name_length && memcmp(option->name, name, name_length) == 0
		         : letter == option->letter)
			return option;
	}
	return NULL;
}

/* Names the nearest long names, compared without dashes. For a single letter nothing is near. */
static int fail_unknown(const struct parsing *p, const char *word)
{
	const struct option *option;
	struct nearest nearest;
	char name[NEAREST_WORD_BYTES], list[NEAREST_KEPT * (NEAREST_WORD_BYTES + 2)] = "";

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	nearest_init(&nearest, name + strspn(name, "-"));
	for (size_t i = 0; (option = option_at(p->tables, i)) && word[1] == '-'; i++)
		if (option->commands & p->command->bit)
			nearest_offer(&nearest, option->name);
	const char *gone = other_words_gone(p->command->bit, nearest.word);
	const char *instead = other_words_option(p->command->bit, nearest.word);
	if (gone) {
		text_append(p->error, p->error_bytes, "%s is gone: use %s", name, gone);
		return -EINVAL;
	}
	for (size_t i = 0; i < nearest.count && !instead; i++)
		text_append(list, sizeof(list), "%s--%s", i ? ", " : "", nearest.kept[i].name);
	text_append(p->error, p->error_bytes, "unknown option '%s'", word);
	if (instead || *list)
		text_append(p->error, p->error_bytes, "; did you mean %s?", instead ? instead : list);
	text_append(p->error, p->error_bytes, " ('heaptap %s --help-all' lists all)", p->command->name);
	return -EINVAL;
}

/* ---- values */

static void store_number(void *field, size_t bytes, uint64_t number)
{
	if (bytes == sizeof(bool))
		*(bool *)field = number != 0;
	else if (bytes == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)number;
	else
		*(uint64_t *)field = number;
}

/* The kinds whose value is one number. */
static int number_parse(const struct option *option, const char *value, uint64_t *number)
{
	int choice;

	switch (option->kind) {
	case OPTION_FLAG:
	case OPTION_STOP:
		*number = 1;
		return 0;
	case OPTION_CHOICE:
		choice = option_value_choice(option->choices, value);
		*number = option->least + (uint64_t)choice;
		return choice < 0 ? -EINVAL : 0;
	case OPTION_COUNT:
		return option_value_count(value, option->least, option->most, number);
	case OPTION_BYTES:
		return quantity_bytes(value, option->least, option->most, number);
	default:
		return quantity_time(value, option->least, option->most, number);
	}
}

static int value_store(const struct option *option, struct options *options, const char *value)
{
	void *field = (char *)options + option->offset;
	uint64_t number;

	switch (option->kind) {
	case OPTION_SET:
		return option->set(options, value);
	case OPTION_TEXT:
		*(const char **)field = value;
		return *value ? 0 : -EINVAL;
	case OPTION_BYTES_RANGE:
		return option_value_bytes_range(value, field);
	case OPTION_TIME_RANGE:
		return option_value_time_range(value, field);
	default:
		if (number_parse(option, value, &number))
			return -EINVAL;
		store_number(field, option->bytes, number);
		return 0;
	}
}

/* What is wrong with a value. A size that is too large is still a size. */
static const char *value_fault(const struct option *option, const char *value)
{
	uint64_t number;
	struct option_range range;

	switch (option->kind) {
	case OPTION_COUNT:
		return option_value_count(value, 0, UINT64_MAX, &number) ? "is not a number"
		                                                         : "is out of range";
	case OPTION_BYTES:
		return quantity_bytes(value, 0, UINT64_MAX, &number) ? "is not a size" : "is out of range";
	case OPTION_TIME:
		return quantity_time(value, 0, UINT64_MAX, &number) ? "is not a time" : "is out of range";
	case OPTION_BYTES_RANGE:
		return option_value_bytes_range(value, &range) ? "is not a range of sizes" : "";
	case OPTION_TIME_RANGE:
		return option_value_time_range(value, &range) ? "is not a range of times" : "";
	case OPTION_CHOICE:
		return "is none of its values";
	default:
		if (!*value)
			return "is empty";
		return option->by_name && option_value_is_name(value) ? "is not a process id"
		                                                      : "is not possible";
	}
}

static void fail_value(const struct parsing *p, const struct option *option, const char *value)
{
	char allowed[256], list[NEAREST_KEPT * NEAREST_WORD_BYTES];
	struct nearest nearest;
	char pair[NEAREST_WORD_BYTES];

	snprintf(pair, sizeof(pair), "%s=%s", option->name, value);
	const char *gone = other_words_gone(p->command->bit, pair);
	if (gone) {
		text_append(p->error, p->error_bytes, "--%s %s is gone: use %s", option->name, value, gone);
		return;
	}
	nearest_init(&nearest, value);
	for (int i = 0; option->choices && option->choices[i]; i++)
		nearest_offer(&nearest, option->choices[i]);
	nearest_list(&nearest, list, sizeof(list));
	allowed_describe(option, allowed, sizeof(allowed));
	text_append(
	    p->error, p->error_bytes, "--%s: '%s' %s", option->name, value, value_fault(option, value));
	if (option->by_name && option_value_is_name(value))
		text_append(
		    p->error, p->error_bytes, "; by name: heaptap %s $(pidof %s)", option->by_name, value);
	else if (*list)
		text_append(p->error, p->error_bytes, "; did you mean %s? Give %s", list, allowed);
	else
		text_append(p->error, p->error_bytes, "; give %s", allowed);
}

static int option_set(const struct parsing *p, const struct option *option, const char *value)
{
	char allowed[256];

	if (option_takes_value(option) && !value) {
		allowed_describe(option, allowed, sizeof(allowed));
		text_append(p->error, p->error_bytes, "--%s needs a value: %s", option->name, allowed);
		return -EINVAL;
	}
	if (!option_takes_value(option) && value) {
		text_append(p->error, p->error_bytes, "--%s takes no value", option->name);
		return -EINVAL;
	}
	if (value_store(option, p->options, value) == 0)
		return option->kind == OPTION_STOP;
	fail_value(p, option, value);
	return -EINVAL;
}

/* ---- words */

static const char *next_word(struct parsing *p)
{
	return p->at + 1 < p->argc ? p->argv[++p->at] : NULL;
}

/* --period=4K, --period 4K, --quiet */
static int long_parse(struct parsing *p)
{
	const char *word = p->argv[p->at];
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
	const struct option *option = option_find(p, '\0', word + 2, length);

	if (!option)
		return fail_unknown(p, word);
	if (equals || !option_takes_value(option))
		return option_set(p, option, equals ? equals + 1 : NULL);
	return option_set(p, option, next_word(p));
}

/* -qv, -p4K, -p 4K */
static int short_parse(struct parsing *p)
{
	for (const char *letter = p->argv[p->at] + 1; *letter; letter++) {
		const struct option *option = option_find(p, *letter, NULL, 0);
		const char shown[] = {'-', *letter, '\0'};
		int ret;

		if (!option)
			return fail_unknown(p, shown);
		if (option_takes_value(option))
			return option_set(p, option, letter[1] ? letter + 1 : next_word(p));
		ret = option_set(p, option, NULL);
		if (ret)
			return ret;
	}
	return 0;
}

/* Moves the word at `from` to `to`, ahead of the operands between. */
static void word_move(char **argv, int from, int to)
{
	char *word = argv[from];

	memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof(*argv));
	argv[to] = word;
}

int option_parse(const struct option_table *const *tables, const struct command *command,
    struct options *options, int argc, char *argv[], int *first, char *error, size_t error_bytes)
{
	struct parsing p = {tables, command, options, argv, argc, 0, error, error_bytes};
	int operands = 0;

	*first = 0;
	for (; p.at < argc; p.at++) {
		int begin = p.at, ret;

		if (argv[p.at][0] != '-' || !argv[p.at][1]) {
			if (!command->mixed)
				return 0;
			operands++;
			continue;
		}
		if (strcmp(argv[p.at], "--") == 0) {
			word_move(argv, p.at, p.at - operands);
			*first = p.at - operands + 1;
			return 0;
		}
		ret = argv[p.at][1] == '-' ? long_parse(&p) : short_parse(&p);
		if (ret)
			return ret;
		for (; begin <= p.at; begin++)
			word_move(argv, begin, begin - operands);
		*first = p.at + 1 - operands;
	}
	return 0;
}
