/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration in force, the store that it names, and reading it again while the daemon runs. */
#include "pprof/store/daemon_section.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/policy_match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A folder in the store, beside those of the services. No service has this name. */
#define STATE_FOLDER ".state"

/* NULL if the file is refused; then `error` has one line, and *result is -errno. */
static struct rules *read_rules(const char *path, char *error, size_t error_bytes, int *result)
{
	struct rules *rules = calloc(1, sizeof(*rules));

	*result = -ENOMEM;
	if (!rules) {
		snprintf(error, error_bytes, "out of memory");
		return NULL;
	}
	*result = rules_read(rules, path, error, error_bytes);
	if (*result == 0)
		return rules;
	rules_fini(rules);
	free(rules);
	return NULL;
}

static int find_store(struct daemon *d, const char *given)
{
	char usual[DAEMON_SECTION_PATH_BYTES];
	const char *path = given ? given : d->rules->daemon.store;
	char *absolute = NULL;

	if (!path && daemon_section_store(usual) == 0)
		path = usual;
	if (!path)
		return -ENOENT;
	if (path[0] != '/') {
		char folder[PATH_MAX];

		if (!getcwd(folder, sizeof(folder)) || asprintf(&absolute, "%s/%s", folder, path) < 0)
			return -errno;
	}
	int length = snprintf(d->store_path, sizeof(d->store_path), "%s", absolute ? absolute : path);
	free(absolute);
	if (length >= (int)sizeof(d->store_path) - 64)
		return -ENAMETOOLONG;
	snprintf(d->guard_path, sizeof(d->guard_path), "%.*s/" STATE_FOLDER "/denied", length, d->store_path);
	return 0;
}

int daemon_configuration_open(struct daemon *d, const char *store)
{
	char error[DAEMON_NOTE_BYTES];
	int result;

	d->rules = read_rules(d->config, error, sizeof(error), &result);
	if (!d->rules) {
		log_line("%s", error);
		return result;
	}
	result = find_store(d, store);
	if (result)
		log_line("no folder for profiles: %s; --store names one", strerror(-result));
	return result;
}

void daemon_configuration_close(struct daemon *d)
{
	if (d->rules)
		rules_fini(d->rules);
	free(d->rules);
	d->rules = NULL;
}

static struct store_settings settings_of(const struct daemon *d)
{
	return (struct store_settings){
	    .path = d->store_path,
	    .disk_bytes = d->rules->daemon.disk_bytes,
	    .days = d->rules->daemon.days,
	    .free_percent = d->rules->daemon.free_percent,
	};
}

int daemon_configuration_open_store(struct daemon *d)
{
	const struct store_settings settings = settings_of(d);
	char path[PATH_MAX];
	int error = store_open(&d->store, &settings);

	if (!d->store)
		return -ENOMEM;
	if (error)
		log_line(
		    "%s: %s: profiles are written as soon as that is fixed", d->store_path, strerror(-error));
	snprintf(path, sizeof(path), "%.*s/" STATE_FOLDER "/session", (int)sizeof(d->store_path) - 64,
	    d->store_path);
	error = session_identity_open(&d->identity, path);
	if (error && d->verbosity > 0)
		log_line("%s: %s", path, strerror(-error));
	error = crash_guard_load(d->guard, d->guard_path);
	if (error)
		log_line("%s: %s: the deny list is not read, so no executable is denied", d->guard_path,
		    strerror(-error));
	return 0;
}

void daemon_configuration_reload(struct daemon *d)
{
	char error[DAEMON_NOTE_BYTES];
	int result;
	struct rules *rules = read_rules(d->config, error, sizeof(error), &result);

	if (!rules) {
		snprintf(d->note, sizeof(d->note), "%.900s; the old configuration is in force", error);
		log_line("%s", d->note);
		return;
	}
	d->note[0] = '\0';
	daemon_configuration_close(d);
	d->rules = rules;
	d->core.memory.max_bytes = memory_bound_bytes(rules->daemon.memory_bytes);
	const struct store_settings settings = settings_of(d);
	result = store_change(d->store, &settings);
	if (result)
		log_line("%s: %s", d->store_path, strerror(-result));
	result = crash_guard_load(d->guard, d->guard_path);
	if (result)
		log_line("%s: %s", d->guard_path, strerror(-result));
	policy_match_all_again(d);
	if (d->verbosity >= 0)
		log_line("configuration read again");
}
