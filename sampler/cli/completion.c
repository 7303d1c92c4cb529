/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cli/completion.h"

#include "sampler/cli/command.h"
#include "sampler/cli/options.h"
#include "sampler/cli/options_rows.h"
#include "sampler/cli/status.h"
#include "sampler/terminal/log_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command *command_named(
    const struct command *commands, size_t command_count, const char *name)
{
	for (size_t i = 0; i < command_count; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static bool option_is_of(const struct option *option, const struct command *command)
{
	return (option->commands & command->bit) != 0;
}

/* ---- bash */

static void bash_words(const struct command *command)
{
	for (size_t i = 0; options_row(i); i++) {
		const struct option *option = options_row(i);

		if (!option_is_of(option, command))
			continue;
		printf(" --%s", option->name);
		if (option->letter)
			printf(" -%c", option->letter);
	}
}

/* What may follow an option: its choices, or a file name if it takes anything else. */
static void bash_values(const struct command *command)
{
	for (size_t i = 0; options_row(i); i++) {
		const struct option *option = options_row(i);

		if (!option_is_of(option, command) || !option_takes_value(option))
			continue;
		printf("\t%s:--%s", command->name, option->name);
		if (option->letter)
			printf(" | %s:-%c", command->name, option->letter);
		printf(")");
		if (option->choices) {
			printf(" values='");
			for (int j = 0; option->choices[j]; j++)
				printf("%s%s", j ? " " : "", option->choices[j]);
			printf("' ;;\n");
		} else {
			printf(" files=1 ;;\n");
		}
	}
}

static void bash_write(const struct command *commands, size_t command_count)
{
	printf("# bash completion for heaptap; made by `heaptap completion bash`\n"
	       "_heaptap()\n{\n"
	       "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} "
	       "command=${COMP_WORDS[1]}\n"
	       "\tlocal words= values= files=\n\tCOMPREPLY=()\n"
	       "\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '");
	for (size_t i = 0; i < command_count; i++)
		printf("%s ", commands[i].name);
	printf("help --help --version' -- \"$current\"))\n\t\treturn\n\tfi\n\tcase $command:$previous in\n");
	for (size_t i = 0; i < command_count; i++)
		bash_values(&commands[i]);
	printf("\tesac\n\tcase $command in\n");
	for (size_t i = 0; i < command_count; i++) {
		printf("\t%s) words='", commands[i].name);
		bash_words(&commands[i]);
		printf("' ;;\n");
	}
	printf("\thelp) values='");
	for (size_t i = 0; i < command_count; i++)
		printf("%s%s", i ? " " : "", commands[i].name);
	printf("' ;;\n\tcompletion) [ \"$COMP_CWORD\" = 2 ] && values='bash zsh' ;;\n\tesac\n"
	       "\tif [ -n \"$values\" ]; then\n\t\tCOMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
	       "\telif [ -z \"$files\" ] && [ \"${current#-}\" != \"$current\" ]; then\n"
	       "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
	       "\telif [ \"$command\" = record ]; then\n\t\tCOMPREPLY=($(compgen -c -f -- \"$current\"))\n"
	       "\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$current\"))\n\tfi\n}\n"
	       "complete -o filenames -F _heaptap heaptap\n");
}

/* ---- zsh */

/* Text within '...': quotes must be escaped, and also ':', '[' and ']', which have a meaning for
 * _arguments. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr(":[]\\", *text))
			printf("\\%c", *text);
		else
			putchar(*text == '\n' ? ' ' : *text);
	}
}

static void zsh_value(const struct option *option)
{
	if (!option_takes_value(option))
		return;
	putchar(':');
	zsh_text(option->name);
	putchar(':');
	if (option->choices) {
		putchar('(');
		for (int i = 0; option->choices[i]; i++)
			printf("%s%s", i ? " " : "", option->choices[i]);
		putchar(')');
	} else if (strcmp(option->value, "FILE") == 0 || strcmp(option->value, "PATTERN") == 0) {
		printf("_files");
	}
}

static void zsh_options(const struct command *command)
{
	for (size_t i = 0; options_row(i); i++) {
		const struct option *option = options_row(i);

		if (!option_is_of(option, command))
			continue;
		printf("\t\t\t'--%s%s[", option->name, option_takes_value(option) ? "=" : "");
		zsh_text(option->help);
		putchar(']');
		zsh_value(option);
		printf("' \\\n");
		if (!option->letter)
			continue;
		printf("\t\t\t'-%c%s[", option->letter, option_takes_value(option) ? "+" : "");
		zsh_text(option->help);
		putchar(']');
		zsh_value(option);
		printf("' \\\n");
	}
}

static void zsh_write(const struct command *commands, size_t command_count)
{
	printf("#compdef heaptap\n# zsh completion for heaptap; made by `heaptap completion zsh`\n"
	       "_heaptap() {\n\tlocal -a commands\n\tcommands=(\n");
	for (size_t i = 0; i < command_count; i++) {
		printf("\t\t'%s:", commands[i].name);
		zsh_text(commands[i].summary);
		printf("'\n");
	}
	printf("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
	       "\tlocal command=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $command in\n");
	for (size_t i = 0; i < command_count; i++) {
		printf("\t%s)\n\t\t_arguments -s \\\n", commands[i].name);
		zsh_options(&commands[i]);
		printf(commands[i].bit == COMMAND_RECORD
		        ? "\t\t\t'(-)1:command:_command_names -e' '*::arguments:_normal' ;;\n"
		        : commands[i].bit == COMMAND_COMPLETION ? "\t\t\t'1:shell:(bash zsh)' ;;\n"
		                                                : "\t\t\t'*:file:_files' ;;\n");
	}
	printf("\thelp) _describe command commands ;;\n\tesac\n}\n_heaptap \"$@\"\n");
}

/* ---- the manual page */

/* Text as roff sees it: '-' is a minus sign only if escaped, '.' and ''' begin a request at the start of a
 * line. */
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

static void roff_options(const struct command *command)
{
	char value[128];

	for (size_t i = 0; options_row(i); i++) {
		const struct option *option = options_row(i);

		if (!option_is_of(option, command))
			continue;
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
		printf("\n\\&");
		roff_text(option->help);
		printf(".\n");
	}
}

static void roff_commands(const struct command *commands, size_t command_count)
{
	for (size_t i = 0; i < command_count; i++) {
		printf(".TP\n\\fBheaptap %s\\fR ", commands[i].name);
		roff_text(commands[i].synopsis);
		printf("\n\\&");
		roff_text(commands[i].summary);
		printf(".\n");
	}
}

/* Returns 0 if the page describes every command, else 1 after a message. */
static int roff_write(const struct command *commands, size_t command_count)
{
	char line[4096];
	unsigned int described = 0;

	while (fgets(line, sizeof(line), stdin)) {
		const struct command *command;

		if (strncmp(line, "@OPTIONS ", 9) == 0) {
			line[strcspn(line, "\n")] = '\0';
			command = command_named(commands, command_count, line + 9);
			if (!command) {
				log_line("the manual page describes '%s', which is not a command", line + 9);
				return 1;
			}
			described |= command->bit;
			roff_options(command);
		} else if (strcmp(line, "@COMMANDS\n") == 0) {
			roff_commands(commands, command_count);
		} else if (strcmp(line, "@VERSION\n") == 0) {
			printf(".TH HEAPTAP 1 \"\" \"heaptap " HEAPTAP_VERSION "\" \"User Commands\"\n");
		} else {
			fputs(line, stdout);
		}
	}
	for (size_t i = 0; i < command_count; i++) {
		if (!(described & commands[i].bit)) {
			log_line("the manual page does not describe 'heaptap %s'", commands[i].name);
			return 1;
		}
	}
	return 0;
}

int completion_run(struct options *options)
{
	const struct command *commands = options->commands;
	size_t command_count = options->command_count;
	const char *what = options->operands[0];

	if (strcmp(what, "bash") == 0)
		bash_write(commands, command_count);
	else if (strcmp(what, "zsh") == 0)
		zsh_write(commands, command_count);
	else if (strcmp(what, "man") == 0)
		return roff_write(commands, command_count);
	else {
		log_line("unknown shell '%s'; allowed: bash zsh", what);
		return STATUS_USAGE;
	}
	return 0;
}
