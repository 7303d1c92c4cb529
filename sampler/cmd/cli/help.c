/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/cli/help.h"

#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/option.h"
#include "sampler/cmd/cli/options_rows.h"

#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELP_COLUMN 30

/* ---- of heaptap */

static const char *const group_names[COMMAND_GROUPS] = {[COMMAND_USE] = "use",
    [COMMAND_LOOK] = "look",
    [COMMAND_ALWAYS_ON] = "always on",
    [COMMAND_FILES] = "files",
    [COMMAND_REPAIR] = "repair"};

static void table_print(FILE *out, const struct command *commands, size_t command_count)
{
	for (int group = 0; group < COMMAND_GROUPS; group++) {
		const char *heading = group_names[group];

		for (size_t i = 0; i < command_count; i++) {
			if ((int)commands[i].group != group)
				continue;
			fprintf(out, "%-10s %-10s %s\n", heading, commands[i].name, commands[i].summary);
			heading = "";
		}
	}
}

void help_commands(FILE *out, const struct command *commands, size_t command_count)
{
	fputs("usage: heaptap COMMAND [OPTIONS]...; more: heaptap COMMAND --help | help COMMAND\n"
	      "begin: heaptap record ./server (Ctrl-C after a minute), then heaptap report\n\n",
	    out);
	table_print(out, commands, command_count);
}

/* ---- of one command */

/* attach takes record's options, and has a short help of its own. */
static unsigned int common_bit(const struct command *command)
{
	return command->takes_pids ? COMMAND_ATTACH : command->bit;
}

static bool has_common(const struct option_table *const *tables, unsigned int bits)
{
	const struct option *option;

	for (size_t i = 0; (option = option_at(tables, i)); i++)
		if (option->common & bits)
			return true;
	return false;
}

static void row_print(FILE *out, const struct option *option)
{
	char left[80] = "", value[64];
	const char *line = option->help;

	option_value_describe(option, value, sizeof(value));
	if (option->letter)
		text_append(left, sizeof(left), "  -%c, --%s", option->letter, option->name);
	else
		text_append(left, sizeof(left), "      --%s", option->name);
	if (option_takes_value(option))
		text_append(left, sizeof(left), " %s", value);
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

static void examples_print(FILE *out, const char *examples)
{
	fputs("\nexamples:\n", out);
	while (*examples) {
		int length = (int)strcspn(examples, "\n");

		fprintf(out, "  %.*s\n", length, examples);
		examples += length + (examples[length] == '\n');
	}
}

void help_command(
    FILE *out, const struct option_table *const *tables, const struct command *command, bool all)
{
	const bool in_groups = has_common(tables, common_bit(command));
	const char *heading = NULL;
	const struct option *option;

	fprintf(out, "usage: heaptap %s %s\n%s\n", command->name, command->synopsis, command->summary);
	if (command->examples)
		examples_print(out, command->examples);
	if (!in_groups || !all)
		fputs("\noptions:\n", out);
	for (size_t i = 0; (option = option_at(tables, i)); i++) {
		if (!option->commands)
			heading = option->help;
		if (!(option->commands & command->bit) ||
		    (in_groups && !all && !(option->common & common_bit(command))))
			continue;
		if (in_groups && all && heading)
			fprintf(out, "\n%s:\n", heading);
		heading = NULL;
		row_print(out, option);
	}
	if (in_groups && !all)
		fprintf(out, "\nheaptap %s --help-all: all options; heaptap help %s: the manual page\n",
		    command->name, command->name);
}

/* ---- as a manual page: read */

/* Is there such a page? */
static bool page_is_there(const char *page)
{
	char *const words[] = {"man", "-w", (char *)page, NULL};
	posix_spawn_file_actions_t actions;
	bool found = false;
	int status;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions))
		return false;
	if (posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
	    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO) == 0 &&
	    posix_spawnp(&pid, "man", &actions, NULL, words, environ) == 0)
		found = waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	posix_spawn_file_actions_destroy(&actions);
	return found;
}

int help_run(const struct command *command)
{
	char page[64];

	snprintf(page, sizeof(page), "heaptap-%s", command->name);
	if (isatty(STDOUT_FILENO) && page_is_there(page))
		execlp("man", "man", page, (char *)NULL);
	help_command(stdout, options_tables, command, true);
	return EXIT_SUCCESS;
}

/* ---- as a manual page: written */

/* The commands that a line names. */
struct named {
	const struct command *commands[8];
	size_t count;
	unsigned int bits;
};

/* Text as roff sees it: '-' is a minus sign only if escaped. Callers print \& before text that begins a line,
 * where '.' and ''' begin a request. */
static void roff_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text == '\n' ? ' ' : *text);
	}
}

/* Which of the commands take the option, if not all of them. */
static void roff_takers(const struct option *option, const struct named *named)
{
	const char *between = " (";

	if ((option->commands & named->bits) == named->bits)
		return;
	for (size_t i = 0; i < named->count; i++) {
		if (!(option->commands & named->commands[i]->bit))
			continue;
		printf("%s%s", between, named->commands[i]->name);
		between = ", ";
	}
	putchar(')');
}

static void roff_option(const struct option *option, const struct named *named)
{
	char value[128];

	printf(".TP\n\\fB");
	if (option->letter)
		printf("\\-%c\\fR, \\fB", option->letter);
	printf("\\-\\-");
	roff_text(option->name);
	printf("\\fR");
	if (option_takes_value(option)) {
		option_value_describe(option, value, sizeof(value));
		printf(option->choices ? " " : " \\fI");
		roff_text(value);
		printf("\\fR");
	}
	roff_takers(option, named);
	printf("\n\\&");
	roff_text(option->help);
	printf(".\n");
}

/* --help and its like stand on heaptap(1) alone, where no command is named. */
static bool is_of(const struct option *option, unsigned int bits)
{
	return option->commands & bits && (option->kind == OPTION_STOP) == (bits == ~0u);
}

static void roff_options(const struct named *named)
{
	const bool in_groups = named->count && has_common(options_tables, named->bits);
	const char *heading = NULL;
	const struct option *option;

	for (size_t i = 0; (option = option_at(options_tables, i)); i++) {
		if (!option->commands)
			heading = option->help;
		if (!is_of(option, named->bits))
			continue;
		if (in_groups && heading)
			printf(".SS %c%s\n", toupper((unsigned char)*heading), heading + 1);
		heading = NULL;
		roff_option(option, named);
	}
}

/* The common options, or the names of the others. */
static void roff_common(const struct named *named, bool names)
{
	const unsigned int bit = common_bit(named->commands[0]);
	const struct option *option;
	const char *between = "";

	for (size_t i = 0; (option = option_at(options_tables, i)); i++) {
		if (!is_of(option, named->bits) || names == ((option->common & bit) != 0))
			continue;
		if (!names) {
			roff_option(option, named);
			continue;
		}
		printf("%s\\fB\\-\\-", between);
		roff_text(option->name);
		printf("\\fR");
		between = ",\n";
	}
	if (names)
		printf(".\n");
}

static void roff_synopsis(const struct named *named)
{
	for (size_t i = 0; i < named->count; i++) {
		printf("%s\\fBheaptap %s\\fR ", i ? ".br\n" : "", named->commands[i]->name);
		roff_text(named->commands[i]->synopsis);
		putchar('\n');
	}
}

/* Prints lines as they are. */
static void roff_lines(const char *lines)
{
	printf(".nf\n");
	while (*lines) {
		const size_t length = strcspn(lines, "\n");
		char line[256];

		snprintf(line, sizeof(line), "%.*s", (int)length, lines);
		printf("\\&");
		roff_text(line);
		putchar('\n');
		lines += length + (lines[length] == '\n');
	}
	printf(".fi\n");
}

static void roff_examples(const struct named *named)
{
	for (size_t i = 0; i < named->count; i++)
		roff_lines(named->commands[i]->examples);
}

static int roff_commands(const struct command *commands, size_t command_count)
{
	char *text = NULL;
	size_t text_bytes;
	FILE *out = open_memstream(&text, &text_bytes);

	if (!out) {
		log_line("not enough memory");
		return 1;
	}
	table_print(out, commands, command_count);
	printf(".in 0\n");
	if (fclose(out) == 0)
		roff_lines(text);
	printf(".in\n");
	free(text);
	return 0;
}

/* Reads the names of commands. 0, or 1 after a message. */
static int named_read(struct named *named, char *words, const struct command *commands, size_t command_count)
{
	*named = (struct named){0};
	for (char *rest, *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		size_t i = 0;

		while (i < command_count && strcmp(commands[i].name, word) != 0)
			i++;
		if (i == command_count ||
		    named->count == sizeof(named->commands) / sizeof(named->commands[0])) {
			log_line("the manual page names '%s', which is not a command, or too many", word);
			return 1;
		}
		named->commands[named->count++] = &commands[i];
		named->bits |= commands[i].bit;
	}
	if (!named->count)
		named->bits = ~0u;
	return 0;
}

/* A line that begins with '@'. */
static int directive(char *line, const struct command *commands, size_t command_count)
{
	char *words = line + strcspn(line, " ");
	struct named named;

	if (*words)
		*words++ = '\0';
	if (strcmp(line, "@TITLE") == 0) {
		printf(".TH ");
		roff_text(words + 2);
		printf(" %c \"\" \"heaptap " HEAPTAP_VERSION "\" \"heaptap\"\n.nh\n.ad l\n", *words);
		return 0;
	}
	if (strcmp(line, "@COMMANDS") == 0)
		return roff_commands(commands, command_count);
	if (named_read(&named, words, commands, command_count))
		return 1;
	if (strcmp(line, "@SYNOPSIS") == 0)
		roff_synopsis(&named);
	else if (strcmp(line, "@EXAMPLES") == 0)
		roff_examples(&named);
	else if (strcmp(line, "@OPTIONS") == 0)
		roff_options(&named);
	else if (strcmp(line, "@OFTEN") == 0 && named.count)
		roff_common(&named, false);
	else if (strcmp(line, "@NAMES") == 0 && named.count)
		roff_common(&named, true);
	else {
		log_line("the manual page has a line '%s', which means nothing", line);
		return 1;
	}
	return 0;
}

int help_page_write(const struct command *commands, size_t command_count)
{
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		if (*line != '@') {
			fputs(line, stdout);
			continue;
		}
		line[strcspn(line, "\n")] = '\0';
		if (directive(line, commands, command_count))
			return 1;
	}
	return 0;
}
