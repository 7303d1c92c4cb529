/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/pusher.h"

#include "sampler/cli/options.h"
#include "sampler/cli/status.h"
#include "sampler/linux/companion.h"
#include "sampler/terminal/log_line.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "heaptap-push"

/* The words of its command line: NULL-terminated, all owned. */
struct words {
	char **at;
	size_t count;
	bool failed;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *words, const char *format, ...)
{
	char **grown = reallocarray(words->at, words->count + 2, sizeof(*grown));
	va_list args;

	if (!grown) {
		words->failed = true;
		return;
	}
	words->at = grown;
	va_start(args, format);
	if (vasprintf(&words->at[words->count], format, args) < 0)
		words->failed = true;
	else
		words->count++;
	va_end(args);
	words->at[words->count] = NULL;
}

static void add_text(struct words *words, const char *name, const char *value)
{
	if (value)
		add(words, "--%s=%s", name, value);
}

static void words_free(struct words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->at[i]);
	free(words->at);
}

static void add_options(struct words *words, const struct options *options)
{
	const struct push_options *push = &options->push;

	add(words, PROGRAM);
	add_text(words, "to", push->url);
	add_text(words, "token-file", push->token_file);
	add_text(words, "user", push->user);
	add_text(words, "tenant", push->tenant);
	add_text(words, "ca-file", push->ca_file);
	add_text(words, "types", push->types);
	for (size_t i = 0; i < push->label_count; i++)
		add_text(words, "label", push->labels[i]);
	if (push->timeout_ns)
		add(words, "--timeout=%" PRIu64 "ms", push->timeout_ns / 1000000);
	if (options->verbosity)
		add(words, options->verbosity < 0 ? "--quiet" : "--verbose");
}

static int find(char path[PATH_MAX])
{
	int err = companion_find(PROGRAM, path, PATH_MAX);

	if (err)
		log_line(PROGRAM " not found next to heaptap or in %s", HEAPTAP_LIBDIR);
	return err;
}

int pusher_run(struct options *options)
{
	struct words words = {0};
	char path[PATH_MAX];

	if (find(path))
		return STATUS_USAGE;
	add_options(&words, options);
	add_text(&words, "config", options->push.config);
	if (options->push.follow)
		add(&words, "--follow");
	if (options->push.dry_run)
		add(&words, "--dry-run");
	add(&words, "--");
	for (int i = 0; i < options->operand_count; i++)
		add(&words, "%s", options->operands[i]);
	if (words.failed)
		log_line("cannot run " PROGRAM ": out of memory");
	else if (execv(path, words.at))
		log_line("cannot run %s: %s", path, strerror(errno));
	words_free(&words);
	return STATUS_USAGE;
}
