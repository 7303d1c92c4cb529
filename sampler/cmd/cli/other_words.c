/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/cli/other_words.h"

#include "pprof/table/array.h"
#include "pprof/text/log_line.h"
#include "pprof/text/nearest.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/linux/installed_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE  "heaptap export -f flamegraph"
#define READS (COMMAND_REPORT | COMMAND_DIFF | COMMAND_EXPORT)

/* words: separated by blanks */
static const struct {
	const char *words, *instead;
} command_words[] = {
    {"top stats stat summary", "heaptap report, or heaptap status for a daemon's processes"},
    {"web ui gui browse browser dashboard http listen port", "heaptap serve"},
    {"flamegraph flame flames html svg graph page", PAGE},
    {"folded collapsed speedscope massif heaptrack csv", "heaptap export -f FORMAT"},
    {"run start profile trace exec launch", "heaptap record"},
    {"pid", "heaptap attach PID"},
    {"dump", "heaptap snapshot PID"},
    {"show view print growth grow grows", "heaptap report"},
    {"leak leaks", "heaptap report --leaks"},
    {"tree", "heaptap report --tree"},
    {"json", "heaptap report --json"},
    {"compare", "heaptap diff"},
    {"list sessions profiles", "heaptap ls"},
    {"upload send", "heaptap push"},
    {"install", "heaptap enable"},
};

static const struct {
	unsigned int commands;
	const char *words, *instead;
} option_words[] = {
    {READS, "growth grow grows growing",
        "heaptap report FOLDER, which needs no option for it: it says what grows"},
    {READS, "top limit head max count nodecount", "--rows N"},
    {READS, "flamegraph flame html svg graph page", PAGE},
    {COMMAND_REPORT | COMMAND_DIFF, "format", "heaptap export --format FORMAT"},
    {COMMAND_REPORT | COMMAND_DIFF, "csv folded collapsed speedscope", "heaptap export --format FORMAT"},
    {COMMAND_RECORD, "growth grow grows growing leaks leak top tree json",
        "heaptap report, which reads what record has written"},
    {COMMAND_RECORD, "flamegraph flame html svg graph page", PAGE ", which reads what record has written"},
    {COMMAND_RECORD, "time seconds timeout", "--duration TIME, with --pid"},
    {COMMAND_RECORD, "rate sample-rate", "--period BYTES"},
    {COMMAND_RECORD, "attach", "--pid PID"},
    {COMMAND_RECORD | COMMAND_SERVE, "port host bind address addr http web", "--listen 127.0.0.1:7337"},
};

/* options, and values of options, that heaptap had */
static const struct {
	unsigned int commands;
	const char *word, *instead;
} gone[] = {
    {COMMAND_RECORD | COMMAND_ADOPT, "timeline",
        "heaptap report --timeline, which reads the profiles that record writes"},
    {COMMAND_RECORD | COMMAND_ADOPT, "lifetimes", "--labels lifetime, and heaptap report --by lifetime"},
    {COMMAND_RECORD | COMMAND_ADOPT, "fsync", "sync(1) after the recording"},
    {COMMAND_RECORD | COMMAND_ADOPT, "symbols=functions", "--symbols full or --symbols raw"},
    {COMMAND_RECORD | COMMAND_ADOPT, "labels=rung", "--labels backend"},
    {READS, "functions", "no option for it: rows are functions unless --lines is given"},
    {COMMAND_ENABLE | COMMAND_DISABLE, "machine-wide",
        "the names of units; the library's line in /etc/ld.so.preload is for you to write and to remove"},
};

static int has_word(const char *words, const char *word)
{
	const size_t length = strlen(word);

	while (length && *words) {
		const size_t next = strcspn(words, " ");

		if (next == length && memcmp(words, word, length) == 0)
			return 1;
		words += next + (words[next] == ' ');
	}
	return 0;
}

static const char *command_instead(const char *word)
{
	for (size_t i = 0; i < ARRAY_COUNT(command_words); i++)
		if (has_word(command_words[i].words, word))
			return command_words[i].instead;
	return NULL;
}

const char *other_words_gone(unsigned int command, const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(gone); i++)
		if (gone[i].commands & command && strcmp(gone[i].word, name) == 0)
			return gone[i].instead;
	return NULL;
}

const char *other_words_option(unsigned int command, const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(option_words); i++)
		if (option_words[i].commands & command && has_word(option_words[i].words, name))
			return option_words[i].instead;
	return NULL;
}

/* ---- the first word */

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

bool other_words_is_program(const char *word)
{
	return word[0] != '-' && strchr(word, '/') && !is_profile(word);
}

void other_words_say(const char *word, const struct command *commands, size_t command_count)
{
	struct nearest nearest;
	char list[NEAREST_KEPT * NEAREST_WORD_BYTES], path[PATH_MAX];

	nearest_init(&nearest, word + strspn(word, "-"));
	for (size_t i = 0; i < command_count; i++)
		nearest_offer(&nearest, commands[i].name);
	nearest_offer(&nearest, "help");
	nearest_offer(&nearest, "version");
	nearest_list(&nearest, list, sizeof(list));
	const char *instead = command_instead(word + strspn(word, "-"));
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
