/* SPDX-License-Identifier: Apache-2.0 */
/* Words that are not ours: mistyped, of other tools, or of heaptap in the past. Error lines name ours. */
#ifndef SAMPLER_CMD_CLI_OTHER_WORDS_H
#define SAMPLER_CMD_CLI_OTHER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct command;

/*
 * `heaptap ./server` is short for `heaptap record ./server`. Only with a slash: a word without one may be a
 * command that was mistyped, or one of a later heaptap, and must not start a program.
 */
bool other_words_is_program(const char *word);

/* Prints one line for a first word that is not a command: our command for that, the nearest commands, or what
 * to type for a program or a profile of that name. */
void other_words_say(const char *word, const struct command *commands, size_t command_count);

/* Our word for an option that the command (its bit, command.h) does not have: "--rows N" for "top". NULL if
 * there is none. */
const char *other_words_option(unsigned int command, const char *name);

/* What to use in place of an option that the command had ("fsync"), or of a value ("symbols=functions"). NULL
 * if the command never had it. */
const char *other_words_gone(unsigned int command, const char *name);

#endif
