/* SPDX-License-Identifier: Apache-2.0 */
#include "push/command_line.h"

#include "pprof/store/config_file.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int verbosity;

enum word {
	WORD_TARGET,
	WORD_FOLLOW,
	WORD_DRY_RUN,
	WORD_CONFIG,
	WORD_PATHS_FD,
	WORD_END_FD,
	WORD_QUIET,
	WORD_VERBOSE
};

static const struct option words[] = {
    {"to", required_argument, NULL, WORD_TARGET},
    {"token-file", required_argument, NULL, WORD_TARGET},
    {"user", required_argument, NULL, WORD_TARGET},
    {"tenant", required_argument, NULL, WORD_TARGET},
    {"ca-file", required_argument, NULL, WORD_TARGET},
    {"types", required_argument, NULL, WORD_TARGET},
    {"label", required_argument, NULL, WORD_TARGET},
    {"timeout", required_argument, NULL, WORD_TARGET},
    {"spool", required_argument, NULL, WORD_TARGET},
    {"name", required_argument, NULL, WORD_TARGET},
    {"follow", no_argument, NULL, WORD_FOLLOW},
    {"dry-run", no_argument, NULL, WORD_DRY_RUN},
    {"config", required_argument, NULL, WORD_CONFIG},
    {"paths-fd", required_argument, NULL, WORD_PATHS_FD},
    {"end-fd", required_argument, NULL, WORD_END_FD},
    {"quiet", no_argument, NULL, WORD_QUIET},
    {"verbose", no_argument, NULL, WORD_VERBOSE},
    {0},
};

void command_line_fini(struct command_line *line)
{
	target_fini(&line->target);
}

static int set_target(
    struct command_line *line, const char *name, const char *value, char *error, size_t error_bytes)
{
	line->has_target = line->has_target || strcmp(name, "to") == 0;
	line->has_target_options = line->has_target_options || strcmp(name, "to") != 0;
	if (strcmp(name, "name") == 0) {
		if (!spool_name_is_target(value)) {
			snprintf(error, error_bytes, "'%s' is no name for a spool", value);
			return -EINVAL;
		}
		strcpy(line->target.name, value);
		return 0;
	}
	return target_set(&line->target, strcmp(name, "to") == 0 ? "url" : name, value, error, error_bytes);
}

static int take(struct command_line *line, int word, int index, char *error, size_t error_bytes)
{
	switch (word) {
	case WORD_TARGET:
		return set_target(line, words[index].name, optarg, error, error_bytes);
	case WORD_FOLLOW:
		line->follow = true;
		return 0;
	case WORD_DRY_RUN:
		line->dry_run = true;
		return 0;
	case WORD_CONFIG:
		line->config = optarg;
		return 0;
	case WORD_PATHS_FD:
		line->paths_fd = atoi(optarg);
		return 0;
	case WORD_END_FD:
		line->end_fd = atoi(optarg);
		return 0;
	case WORD_QUIET:
		verbosity = -1;
		return 0;
	case WORD_VERBOSE:
		verbosity++;
		return 0;
	default:
		snprintf(error, error_bytes, "unknown option '%s'; 'heaptap push --help' lists all",
		    optarg ? optarg : "");
		return -EINVAL;
	}
}

static int check(const struct command_line *line, char *error, size_t error_bytes)
{
	const char *wrong = NULL;

	if (line->config && !line->follow)
		wrong = "--config is for --follow; give --to URL for a single push";
	else if (line->config && line->has_target)
		wrong = "--config and --to exclude each other";
	else if (!line->follow && !line->has_target)
		wrong = "no target: give --to URL";
	else if (!line->has_target && line->has_target_options)
		wrong = "options of a target go with --to URL; those of others are in their [push NAME]";
	else if (line->follow && line->dry_run)
		wrong = "--dry-run is for a single push, not for --follow";
	else if (!line->follow && line->paths_fd == COMMAND_LINE_NO_FD && !line->operand_count)
		wrong = "no PROFILE or FOLDER given";
	if (!wrong)
		return 0;
	snprintf(error, error_bytes, "%s", wrong);
	return -EINVAL;
}

int command_line_parse(struct command_line *line, int argc, char *argv[], char *error, size_t error_bytes)
{
	int word, index = 0, err = 0;

	*line = (struct command_line){.paths_fd = COMMAND_LINE_NO_FD, .end_fd = COMMAND_LINE_NO_FD};
	target_init(&line->target);
	line->target.timeout_ns = 0; /* not given */
	opterr = 0;
	while (!err && (word = getopt_long(argc, argv, "", words, &index)) >= 0)
		err = take(line, word, index, error, error_bytes);
	if (err == -ENOMEM)
		snprintf(error, error_bytes, "out of memory");
	if (err)
		return err;
	line->operands = argv + optind;
	line->operand_count = argc - optind;
	if (!line->target.timeout_ns)
		line->target.timeout_ns = line->follow || line->paths_fd != COMMAND_LINE_NO_FD
		    ? TARGET_TIMEOUT_NS
		    : TARGET_TIMEOUT_ONE_SHOT_NS;
	return check(line, error, error_bytes);
}

/* ---- the configuration file */

void command_line_fini_config(struct config *config)
{
	for (size_t i = 0; i < config->count; i++)
		target_fini(&config->targets[i]);
	free(config->store);
	*config = (struct config){0};
}

/* The target of that name, a new one if there is none; NULL with a line in error. */
static struct target *target_named(struct config *config, const char *name, char error[INI_TEXT_ERROR_BYTES])
{
	struct target *made;

	for (size_t i = 0; i < config->count; i++)
		if (strcmp(config->targets[i].name, name) == 0)
			return &config->targets[i];
	if (!spool_name_is_target(name)) {
		snprintf(error, INI_TEXT_ERROR_BYTES,
		    "'%s' is no name for a target: letters, digits, '.', '_' and '-'", name);
		return NULL;
	}
	if (config->count == CONFIG_TARGETS_MAX) {
		snprintf(
		    error, INI_TEXT_ERROR_BYTES, "more than %d [push NAME] sections", CONFIG_TARGETS_MAX);
		return NULL;
	}
	made = &config->targets[config->count++];
	target_init(made);
	strcpy(made->name, name);
	return made;
}

static int set_store(struct config *config, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	free(config->store);
	config->store = strdup(value);
	if (!config->store || *value == '/')
		return config->store ? 0 : -ENOMEM;
	return ini_text_wrong(error, "store '%s' is not an absolute path", value);
}

/* The name of a target, from a section "push NAME". NULL for another section. */
static const char *target_of(const char *section)
{
	if (strncmp(section, "push ", 5) != 0 && strcmp(section, "push") != 0)
		return NULL;
	return section[4] ? section + 5 + strspn(section + 5, " ") : "";
}

static int on_section(void *context, const char *section, int line, char error[INI_TEXT_ERROR_BYTES])
{
	const char *name = target_of(section);

	return !name || target_named(context, name, error) ? 0 : -EINVAL;
}

static int on_value(void *context, const char *section, const char *key, const char *value, int line,
    char error[INI_TEXT_ERROR_BYTES])
{
	const char *name = target_of(section);
	struct target *target;
	int err;

	if (strcmp(section, "daemon") == 0 && strcmp(key, "store") == 0)
		return set_store(context, value, error);
	if (!name)
		return 0;
	target = target_named(context, name, error);
	*error = '\0';
	/* Only the command line has `label`, for K=V in one word. */
	err =
	    strcmp(key, "label") == 0 ? -ENOENT : target_set(target, key, value, error, INI_TEXT_ERROR_BYTES);
	if (err == -ENOENT)
		snprintf(error, INI_TEXT_ERROR_BYTES,
		    "'%s' is none of url, token-file, tenant, user, label.KEY, types, spool, timeout, "
		    "give-up, ca-file",
		    key);
	else if (err && !*error)
		snprintf(error, INI_TEXT_ERROR_BYTES, "%s", strerror(-err));
	return err;
}

static struct ini_text_reader reader_of(struct config *config)
{
	return (struct ini_text_reader){.section = on_section, .value = on_value, .context = config};
}

static int check_targets(const struct config *config, const char *name, char *error, size_t error_bytes)
{
	for (size_t i = 0; i < config->count; i++) {
		if (*config->targets[i].url.address)
			continue;
		snprintf(error, error_bytes, "%s: [push %s] has no url; give " URL_ALLOWED, name,
		    config->targets[i].name);
		return -EINVAL;
	}
	return 0;
}

int command_line_parse_config(
    struct config *config, const char *text, const char *name, char *error, size_t error_bytes)
{
	const struct ini_text_reader reader = reader_of(config);
	int err;

	*config = (struct config){0};
	err = ini_text_parse(&reader, text, name, error, error_bytes);
	return err ? err : check_targets(config, name, error, error_bytes);
}

int command_line_read_config(struct config *config, const char *path, char *error, size_t error_bytes)
{
	const struct ini_text_reader reader = reader_of(config);
	int err;

	*config = (struct config){0};
	err = config_file_read(&reader, path, error, error_bytes);
	return err ? err : check_targets(config, path, error, error_bytes);
}
