/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration in force, and reading it again while the daemon runs. The store that it names, and what
 * that keeps beside the profiles: the session that they belong to, and the executables that are denied. */
#include "pprof/codec/file.h"
#include "pprof/store/config_file.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/daemon/crash_guard.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

/* ---- the session */

#define SESSION_FORMAT "%36s %" PRId64 " %" PRIu64 " %d\n"
#define SESSION_INPUT  "%36s %" SCNd64 " %" SCNu64 " %d"

enum { SESSION_BYTES_MAX = 256 };

bool daemon_session_parse(struct daemon_session *session, const char *text)
{
	int pid = 0;

	*session = (struct daemon_session){0};
	bool good = sscanf(text, SESSION_INPUT, session->boot, &session->unix_ns, &session->monotonic_ns,
	                &pid) == 4 &&
	    session->unix_ns > 0 && pid > 0;
	session->pid = pid;
	return good;
}

static void read_boot(char boot[DAEMON_BOOT_BYTES])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, boot, DAEMON_BOOT_BYTES - 1) : -1;

	boot[got > 0 ? got : 0] = '\0';
	boot[strcspn(boot, " \n")] = '\0';
	if (fd >= 0)
		close(fd);
	if (!boot[0])
		strcpy(boot, "unknown");
}

int daemon_session_open(struct daemon_session *session, const char *path)
{
	char boot[DAEMON_BOOT_BYTES], text[SESSION_BYTES_MAX];
	uint8_t *bytes;
	size_t length;
	bool known = false;

	read_boot(boot);
	if (file_read(path, SESSION_BYTES_MAX, &bytes, &length) == 0) {
		snprintf(text, sizeof(text), "%.*s", (int)length, (const char *)bytes);
		known = daemon_session_parse(session, text) && strcmp(session->boot, boot) == 0;
		free(bytes);
	}
	if (known)
		return 0;
	*session = (struct daemon_session){
	    .unix_ns = clock_unix_ns(), .monotonic_ns = clock_now_ns(), .pid = getpid()};
	memcpy(session->boot, boot, sizeof(boot));
	snprintf(text, sizeof(text), SESSION_FORMAT, session->boot, session->unix_ns, session->monotonic_ns,
	    (int)session->pid);
	return file_publish(path, text, strlen(text), 0640, FILE_MKDIR);
}

/* ---- the store */

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
	error = daemon_session_open(&d->session, path);
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
