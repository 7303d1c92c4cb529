/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap completion bash|zsh|fish`: completions for shells, from the tables of commands and options. They
 * call `heaptap completion pids` for the processes that are profiled. `heaptap completion man` is for the
 * build: see help.h.
 */
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/help.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/cli/options_rows.h"
#include "sampler/inject/profiled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool option_is_of(const struct option *option, const struct command *command)
{
	return (option->commands & command->bit) != 0;
}

/* ---- what is completed */

/* What the value of an option is if it is not a choice. */
enum value_kind { VALUE_WORD, VALUE_FILE, VALUE_PROFILED, VALUE_PROCESS };

static enum value_kind value_kind(const struct option *option)
{
	static const char *const files[] = {"FILE", "PATTERN", "PATH", "DIR"};

	for (size_t i = 0; option->value && i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(option->value, files[i]) == 0)
			return VALUE_FILE;
	if (option->value && strncmp(option->value, "PID", 3) == 0)
		return option->commands & COMMAND_SNAPSHOT ? VALUE_PROFILED : VALUE_PROCESS;
	return VALUE_WORD;
}

/* For the shells: "4711<TAB>redis-server". */
static int print_process(void *context, pid_t pid, const char *name, bool sampled)
{
	printf("%d\t%s\n", (int)pid, name);
	return 0;
}

/* The names of all services, one a line. */
#define UNITS "systemctl list-unit-files --type=service --no-legend 2>/dev/null | cut -d ' ' -f 1"

/* ---- bash */

static void bash_words(const struct command *command)
{
	for (size_t i = 0; option_at(options_tables, i); i++) {
		const struct option *option = option_at(options_tables, i);

		if (!option_is_of(option, command))
			continue;
		printf(" --%s", option->name);
		if (option->letter)
			printf(" -%c", option->letter);
	}
}

/* What may follow an option: one of its choices, or a file name. */
static void bash_values(const struct command *command)
{
	for (size_t i = 0; option_at(options_tables, i); i++) {
		const struct option *option = option_at(options_tables, i);

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
			static const char *const variables[] = {[VALUE_WORD] = "files",
			    [VALUE_FILE] = "files",
			    [VALUE_PROFILED] = "profiled",
			    [VALUE_PROCESS] = "processes"};

			printf(" %s=1 ;;\n", variables[value_kind(option)]);
		}
	}
}

static void bash_write(const struct command *commands, size_t command_count)
{
	printf("# bash completion for heaptap; made by `heaptap completion bash`\n"
	       "_heaptap()\n{\n"
	       "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} "
	       "command=${COMP_WORDS[1]}\n"
	       "\tlocal words= values= files= profiled= processes=\n\tCOMPREPLY=()\n"
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
	printf("\tesac\n\tcase $command in\n\thelp) values='");
	for (size_t i = 0; i < command_count; i++)
		printf("%s%s", i ? " " : "", commands[i].name);
	printf(
	    "' ;;\n\tcompletion) [ \"$COMP_CWORD\" = 2 ] && [ \"${current#-}\" = \"$current\" ] &&\n"
	    "\t\tvalues='bash zsh fish' ;;\n"
	    "\tsnapshot | adopt | detach) [ -n \"$files\" ] || profiled=1 ;;\n"
	    "\tattach) [ -n \"$files\" ] || [ \"${current#-}\" != \"$current\" ] || processes=1 ;;\n"
	    "\tdoctor) [[ $current == [0-9]* ]] && processes=1 ;;\n"
	    "\tenable | disable) [ -n \"$files\" ] || [ \"${current#-}\" != \"$current\" ] ||\n"
	    "\t\tvalues=$(" UNITS ") ;;\n\tesac\n"
	    "\tif [ -n \"$values\" ]; then\n\t\tCOMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
	    "\telif [ -z \"$files\" ] && [ \"${current#-}\" != \"$current\" ]; then\n"
	    "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
	    "\telif [ -n \"$processes\" ]; then\n"
	    "\t\tCOMPREPLY=($(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$current\"))\n"
	    "\telif [ -n \"$profiled\" ]; then\n"
	    "\t\tCOMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" completion pids 2>/dev/null | cut -f 1)\" "
	    "-- \"$current\"))\n"
	    "\telif [ \"$command\" = record ] || [ \"$command\" = doctor ]; then\n\t\tCOMPREPLY=($(compgen "
	    "-c -f -- \"$current\"))\n"
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
	} else {
		static const char *const functions[] = {[VALUE_WORD] = "",
		    [VALUE_FILE] = "_files",
		    [VALUE_PROFILED] = "_heaptap_profiled",
		    [VALUE_PROCESS] = "_pids"};

		fputs(functions[value_kind(option)], stdout);
	}
}

/* What stands behind the options. */
static const char *zsh_operands(const struct command *command)
{
	if (command->takes_pids)
		return "'*:process:_pids'";
	switch (command->bit) {
	case COMMAND_RECORD:
		return "'(-)1:command:_command_names -e' '*::arguments:_normal'";
	case COMMAND_COMPLETION:
		return "'1:shell:(bash zsh fish)'";
	case COMMAND_SNAPSHOT:
	case COMMAND_ADOPT:
		return "'*:process:_heaptap_profiled'";
	case COMMAND_DOCTOR:
		return "'1:process or program:_heaptap_targets'";
	case COMMAND_ENABLE:
	case COMMAND_DISABLE:
		return "'*:unit:_heaptap_units'";
	default:
		return "'*:file:_files'";
	}
}

static void zsh_options(const struct command *command)
{
	for (size_t i = 0; option_at(options_tables, i); i++) {
		const struct option *option = option_at(options_tables, i);

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
	       "_heaptap_profiled() {\n\tlocal -a processes\n"
	       "\tprocesses=(${(f)\"$(heaptap completion pids 2>/dev/null | tr '\\t' :)\"})\n"
	       "\t_describe process processes\n}\n"
	       "_heaptap_targets() {\n\tif [[ $PREFIX == <-> ]]; then\n\t\t_pids\n\telse\n"
	       "\t\t_alternative 'commands:program:_command_names -e' 'files:file:_files'\n\tfi\n}\n"
	       "_heaptap_units() {\n\tlocal -a units\n\tunits=(${(f)\"$(" UNITS ")\"})\n"
	       "\tcompadd -- $units\n}\n"
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
		printf("\t\t\t%s ;;\n", zsh_operands(&commands[i]));
	}
	printf("\thelp) _describe command commands ;;\n\tesac\n}\n_heaptap \"$@\"\n");
}

/* ---- fish */

/* Text within '...'. */
static void fish_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text == '\n' ? ' ' : *text);
	}
}

static void fish_option(const struct command *command, const struct option *option)
{
	printf("complete -c heaptap -n '__heaptap_command %s' -l %s", command->name, option->name);
	if (option->letter)
		printf(" -s %c", option->letter);
	if (option->choices) {
		printf(" -x -a '");
		for (int i = 0; option->choices[i]; i++)
			printf("%s%s", i ? " " : "", option->choices[i]);
		putchar('\'');
	} else if (option_takes_value(option)) {
		static const char *const values[] = {[VALUE_WORD] = " -x",
		    [VALUE_FILE] = " -r -F",
		    [VALUE_PROFILED] = " -x -a '(heaptap completion pids)'",
		    [VALUE_PROCESS] = " -x -a '(__fish_complete_pids)'"};

		fputs(values[value_kind(option)], stdout);
	}
	printf(" -d '");
	fish_text(option->help);
	printf("'\n");
}

/* What stands behind the options. */
static const char *fish_operands(const struct command *command)
{
	if (command->takes_pids)
		return "-a '(__fish_complete_pids)'";
	switch (command->bit) {
	case COMMAND_RECORD:
		return "-F -a '(__fish_complete_command)'";
	case COMMAND_COMPLETION:
		return "-a 'bash zsh fish'";
	case COMMAND_SNAPSHOT:
	case COMMAND_ADOPT:
		return "-a '(heaptap completion pids)'";
	case COMMAND_DOCTOR:
		return "-F -a '(__fish_complete_pids) (__fish_complete_command)'";
	case COMMAND_ENABLE:
	case COMMAND_DISABLE:
		return "-f -a '(systemctl list-unit-files --type=service --no-legend 2>/dev/null | "
		       "string split -f 1 \" \")'";
	default:
		return "-F";
	}
}

static void fish_write(const struct command *commands, size_t command_count)
{
	printf("# fish completion for heaptap; made by `heaptap completion fish`\n"
	       "function __heaptap_command\n\tset -l words (commandline -opc)\n"
	       "\ttest (count $words) -ge 2; and test $words[2] = $argv[1]\nend\n"
	       "function __heaptap_first\n\ttest (count (commandline -opc)) -eq 1\nend\n"
	       "complete -c heaptap -f\n"
	       "complete -c heaptap -n __heaptap_first -l help -s h -d 'print this help'\n"
	       "complete -c heaptap -n __heaptap_first -l version -d 'print the version'\n"
	       "complete -c heaptap -n __heaptap_first -a help -d 'print the help of a command'\n");
	for (size_t i = 0; i < command_count; i++) {
		const struct command *command = &commands[i];
		const struct option *option;

		printf("complete -c heaptap -n __heaptap_first -a %s -d '", command->name);
		fish_text(command->summary);
		printf("'\ncomplete -c heaptap -n '__heaptap_command help' -a %s\n", command->name);
		printf("complete -c heaptap -n '__heaptap_command %s' %s\n", command->name,
		    fish_operands(command));
		for (size_t j = 0; (option = option_at(options_tables, j)); j++)
			if (option_is_of(option, command))
				fish_option(command, option);
	}
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
	else if (strcmp(what, "fish") == 0)
		fish_write(commands, command_count);
	else if (strcmp(what, "man") == 0)
		return help_page_write(commands, command_count);
	else if (strcmp(what, "pids") == 0)
		return profiled_each(print_process, NULL);
	else {
		log_line("unknown shell '%s'; give bash, zsh or fish", what);
		return STATUS_USAGE;
	}
	return 0;
}
