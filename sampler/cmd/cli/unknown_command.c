/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/cli/unknown_command.h"

#include "pprof/text/log_line.h"
#include "pprof/text/nearest.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/other_words.h"
#include "sampler/linux/installed_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Is it a file that has the name of a profile and cannot be executed? */
static bool is_profile(const char *word)
{
	static const char ending[] = ".pb.gz";
	size_t length = strlen(word), ending_length = sizeof(ending) - 1;

	return length > ending_length && strcmp(word + length - ending_length, ending) == 0 &&
	    access(word, F_OK) == 0 && access(word, X_OK) != 0;
}

/* A word that is an option, not a command. */
static bool is_no_command(const char *name)
{
	return strcmp(name, "help") == 0 || strcmp(name, "version") == 0;
}

bool unknown_command_is_program(const char *word)
{
	return word[0] != '-' && strchr(word, '/') && !is_profile(word);
}

void unknown_command_say(const char *word, const struct command *commands, size_t command_count)
{
	struct nearest nearest;
	char list[NEAREST_KEPT * NEAREST_WORD_BYTES], path[PATH_MAX];

	nearest_init(&nearest, word + strspn(word, "-"));
	for (size_t i = 0; i < command_count; i++)
		nearest_offer(&nearest, commands[i].name);
	nearest_offer(&nearest, "help");
	nearest_offer(&nearest, "version");
	nearest_list(&nearest, list, sizeof(list));
	const char *instead = other_words_command(word + strspn(word, "-"));
	const bool is_program = word[0] != '-' && installed_file_in_path(word, path, sizeof(path));
	if (instead && word[0] == '-')
		log_line("unknown option '%s'; did you mean %s? ('heaptap --help' lists the commands)", word,
		    instead);
	else if (instead && !is_profile(word))
		log_line("unknown command '%s'; did you mean %s?%s%s ('heaptap --help' lists all)", word,
		    instead, is_program ? " Or, to profile the program of that name: heaptap record " : "",
		    is_program ? word : "");
	else if (word[0] == '-' && nearest.count && is_no_command(nearest.kept[0].name))
		log_line("unknown option '%s'; did you mean --%s? ('heaptap --help' lists the commands)",
		    word, nearest.kept[0].name);
	else if (word[0] == '-' && nearest.count && nearest.kept[0].distance == 0)
		log_line("unknown option '%s'; did you mean heaptap %s?", word, nearest.kept[0].name);
	else if (word[0] == '-')
		log_line("'%s' before a command; options follow it: heaptap record %s ... "
		         "('heaptap --help' lists the commands)",
		    word, word);
	else if (is_profile(word))
		log_line("'%s' is a profile, no command; to see it: heaptap report %s", word, word);
	else if (is_program)
		log_line("'%s' is no command of heaptap%s%s%s to profile the program of that name: "
		         "heaptap record %s",
		    word, *list ? "; did you mean " : ";", list, *list ? "? Or," : "", word);
	else if (*list)
		log_line("unknown command '%s'; did you mean %s? ('heaptap --help' lists all)", word, list);
	else
		log_line("unknown command '%s' ('heaptap --help' lists all)", word);
}
