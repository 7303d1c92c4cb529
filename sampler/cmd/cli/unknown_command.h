/* SPDX-License-Identifier: Apache-2.0 */
/* What did the user mean by a first word that is not a command? */
#ifndef SAMPLER_CMD_CLI_UNKNOWN_COMMAND_H
#define SAMPLER_CMD_CLI_UNKNOWN_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct command;

/*
 * `heaptap ./server` is short for `heaptap record ./server`. Only with a slash: a word without one may be a
 * command that was mistyped, or one of a later heaptap, and must not start a program.
 */
bool unknown_command_is_program(const char *word);

/* Prints one line: the nearest commands, or what to type for a program or a profile of that name. */
void unknown_command_say(const char *word, const struct command *commands, size_t command_count);

#endif
