/* SPDX-License-Identifier: Apache-2.0 */
#include "push/config.h"

#include "pprof/store/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void config_fini(struct config *config)
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

int config_parse(struct config *config, const char *text, const char *name, char *error, size_t error_bytes)
{
	const struct ini_text_reader reader = reader_of(config);
	int err;

	*config = (struct config){0};
	err = ini_text_parse(&reader, text, name, error, error_bytes);
	return err ? err : check_targets(config, name, error, error_bytes);
}

int config_read(struct config *config, const char *path, char *error, size_t error_bytes)
{
	const struct ini_text_reader reader = reader_of(config);
	int err;

	*config = (struct config){0};
	err = config_file_read(&reader, path, error, error_bytes);
	return err ? err : check_targets(config, path, error, error_bytes);
}
