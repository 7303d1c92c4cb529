/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/cli/other_words.h"

#include "pprof/table/array.h"
#include "sampler/cmd/cli/command.h"

#include <stddef.h>
#include <string.h>

#define PAGE  "heaptap export -f flamegraph"
#define READS (COMMAND_REPORT | COMMAND_DIFF | COMMAND_EXPORT)

/* words: separated by blanks */
static const struct {
	const char *words, *instead;
} commands[] = {
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
} options[] = {
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

const char *other_words_command(const char *word)
{
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		if (has_word(commands[i].words, word))
			return commands[i].instead;
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
	for (size_t i = 0; i < ARRAY_COUNT(options); i++)
		if (options[i].commands & command && has_word(options[i].words, name))
			return options[i].instead;
	return NULL;
}
