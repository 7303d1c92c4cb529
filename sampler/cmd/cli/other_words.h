/* SPDX-License-Identifier: Apache-2.0 */
/* Words of other tools, and of heaptap in the past, with today's words for error lines. Pure. */
#ifndef SAMPLER_CMD_CLI_OTHER_WORDS_H
#define SAMPLER_CMD_CLI_OTHER_WORDS_H

/* The command line for a word in place of a command: "heaptap export -f flamegraph" for "flamegraph". NULL if
 * the word is unknown. */
const char *other_words_command(const char *word);

/* The same for the name of an option that the command (its bit, command.h) does not have: "--rows N" for
 * "top". */
const char *other_words_option(unsigned int command, const char *name);

/* What to use in place of an option that the command had ("fsync"), or of a value ("symbols=functions"). NULL
 * if the command never had it. */
const char *other_words_gone(unsigned int command, const char *name);

#endif
