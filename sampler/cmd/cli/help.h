/* SPDX-License-Identifier: Apache-2.0 */
/* The help: of heaptap, of one command, and as manual pages, all from the tables of commands and options. */
#ifndef SAMPLER_CMD_CLI_HELP_H
#define SAMPLER_CMD_CLI_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct command;
struct option_table;

/* `heaptap --help`: the commands in groups, on one screen. */
void help_commands(FILE *out, const struct command *commands, size_t command_count);

/* `heaptap COMMAND --help`: examples, and the options that are often used. all: each option, by subject, as
 * with a command that has few. */
void help_command(
    FILE *out, const struct option_table *const *tables, const struct command *command, bool all);

/* `heaptap help COMMAND`: the command's manual page if there are a terminal and the page, else all of its
 * options. Returns the exit status, or does not return. */
int help_run(const struct command *command);

/*
 * `heaptap completion man`, for the build: reads the text of a manual page from standard input, and puts
 * tables in the place of these lines. NAMES are names of commands.
 *
 *   @TITLE SECTION PAGE  the page's title
 *   @COMMANDS            all commands, in groups
 *   @SYNOPSIS NAMES      how each is called
 *   @EXAMPLES NAMES      the examples of the help
 *   @OPTIONS NAMES       their options; an option that not all of them take says which commands take it
 *   @OFTEN NAME          the options that are often used
 *   @NAMES NAME          the names of the other options
 *
 * Returns the exit status: 0, or 1 after a message.
 */
int help_page_write(const struct command *commands, size_t command_count);

#endif
