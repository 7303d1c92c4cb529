/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/choice.h"

#include "pprof/text/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One expression, compiled twice: unchanged for the name, and bound to the first word for a command line. */
struct wish {
	struct pattern *name, *line;
};

struct choice {
	struct wish only, exclude;
};

static int wish_new(struct wish *wish, const char *option, const char *regex, char *error, size_t error_bytes)
{
	char why[256], *bound = NULL;
	int ret;

	if (!regex)
		return 0;
	ret = pattern_new(regex, 0, &wish->name, why, sizeof(why));
	if (!ret && asprintf(&bound, "^[^ ]*?(?:%s)", regex) < 0)
		return -ENOMEM;
	if (!ret)
		ret = pattern_new(bound, 0, &wish->line, why, sizeof(why));
	free(bound);
	if (ret == -EINVAL)
		snprintf(error, error_bytes, "--%s: '%s' is %s", option, regex, why);
	return ret;
}

int choice_new(const char *only, const char *exclude, struct choice **out, char *error, size_t error_bytes)
{
	struct choice *choice;
	int ret;

	*out = NULL;
	if (!only && !exclude)
		return 0;
	choice = calloc(1, sizeof(*choice));
	if (!choice)
		return -ENOMEM;
	ret = wish_new(&choice->only, "only", only, error, error_bytes);
	if (!ret)
		ret = wish_new(&choice->exclude, "exclude", exclude, error, error_bytes);
	if (ret)
		choice_free(choice);
	else
		*out = choice;
	return ret;
}

void choice_free(struct choice *choice)
{
	if (!choice)
		return;
	pattern_free(choice->only.name);
	pattern_free(choice->only.line);
	pattern_free(choice->exclude.name);
	pattern_free(choice->exclude.line);
	free(choice);
}

static const char *last_part(const char *path, size_t length)
{
	const char *slash = memrchr(path, '/', length);

	return slash ? slash + 1 : path;
}

static bool matches(const struct wish *wish, const char *name, const char *line)
{
	return pattern_matches(wish->name, name) || pattern_matches(wish->line, line);
}

bool choice_takes(struct choice *choice, const char *path, const char *command_line)
{
	if (!choice)
		return true;
	const char *name = last_part(path, strlen(path));
	const char *line = last_part(command_line, strcspn(command_line, " "));

	return (!choice->only.name || matches(&choice->only, name, line)) &&
	    !(choice->exclude.name && matches(&choice->exclude, name, line));
}
