/* SPDX-License-Identifier: Apache-2.0 */
#include "push/config.h"

#include "pprof/codec/file.h"

#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 1 << 20 };

struct reading {
	struct config *config;
	char error[512]; /* of the first line that is wrong */
};

void config_fini(struct config *config)
{
	for (size_t i = 0; i < config->count; i++)
		target_fini(&config->targets[i]);
	free(config->store);
	*config = (struct config){0};
}

/* The target of that name, a new one if there is none; NULL with a line in error. */
static struct target *target_named(struct reading *r, const char *name)
{
	struct config *config = r->config;
	struct target *made;

	for (size_t i = 0; i < config->count; i++)
		if (strcmp(config->targets[i].name, name) == 0)
			return &config->targets[i];
	if (!target_name_is_good(name)) {
		snprintf(r->error, sizeof(r->error),
		    "'%s' is no name for a target: letters, digits, '.', '_' and '-'", name);
		return NULL;
	}
	if (config->count == CONFIG_TARGETS_MAX) {
		snprintf(r->error, sizeof(r->error), "more than %d [push NAME] sections", CONFIG_TARGETS_MAX);
		return NULL;
	}
	made = &config->targets[config->count++];
	target_init(made);
	strcpy(made->name, name);
	return made;
}

/* ini.h's callback. Returns 0 for an error: then ini_parse_string() returns the number of the first such
 * line. */
static int on_line(void *context, const char *section, const char *name, const char *value)
{
	struct reading *r = context;
	struct target *target;
	int err;

	if (*r->error)
		return 0;
	if (strcmp(section, "daemon") == 0 && strcmp(name, "store") == 0) {
		free(r->config->store);
		r->config->store = strdup(value);
		if (r->config->store && *value == '/')
			return 1;
		snprintf(r->error, sizeof(r->error), "store '%s' is not an absolute path", value);
		return 0;
	}
	if (strncmp(section, "push ", 5) != 0 && strcmp(section, "push") != 0)
		return 1;
	target = target_named(r, section[4] ? section + 5 + strspn(section + 5, " ") : "");
	if (!target)
		return 0;
	/* Only the command line has `label`, for K=V in one word. */
	err = strcmp(name, "label") == 0 ? -ENOENT
	                                 : target_set(target, name, value, r->error, sizeof(r->error));
	if (err == -ENOENT)
		snprintf(r->error, sizeof(r->error),
		    "'%s' is none of url, token-file, tenant, user, label.KEY, types, spool, timeout, "
		    "ca-file",
		    name);
	else if (err && !*r->error)
		snprintf(r->error, sizeof(r->error), "%s", strerror(-err));
	return !err;
}

int config_parse(struct config *config, const char *text, const char *name, char *error, size_t error_bytes)
{
	struct reading r = {.config = config};
	int line;

	*config = (struct config){0};
	line = ini_parse_string(text, on_line, &r);
	if (line) {
		snprintf(error, error_bytes, "%s:%d: %s", name, line > 0 ? line : 0,
		    *r.error ? r.error : "neither [SECTION] nor KEY = VALUE");
		return -EINVAL;
	}
	for (size_t i = 0; i < config->count; i++)
		if (!*config->targets[i].url.address) {
			snprintf(error, error_bytes, "%s: [push %s] has no url; give " URL_ALLOWED, name,
			    config->targets[i].name);
			return -EINVAL;
		}
	return 0;
}

int config_read(struct config *config, const char *path, char *error, size_t error_bytes)
{
	uint8_t *bytes;
	char *text;
	size_t length;
	int err = file_read(path, CONFIG_BYTES_MAX, &bytes, &length);

	*config = (struct config){0};
	if (err) {
		snprintf(error, error_bytes, "cannot read %s: %s", path, strerror(-err));
		return err;
	}
	text = strndup((const char *)bytes, length);
	free(bytes);
	if (!text) {
		snprintf(error, error_bytes, "out of memory");
		return -ENOMEM;
	}
	err = config_parse(config, text, path, error, error_bytes);
	free(text);
	return err;
}
