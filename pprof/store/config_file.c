/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/config_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "pprof/codec/file.h"
#include "pprof/codec/folder.h"
#include "pprof/text/quantity.h"

int config_file_read(const struct ini_text_reader *reader, const char *path, char *error, size_t error_bytes)
{
	uint8_t *bytes;
	char *text;
	size_t length;
	int err = file_read(path, CONFIG_FILE_BYTES_MAX, &bytes, &length);

	if (err) {
		snprintf(error, error_bytes, "cannot read %s: %s", path, file_read_error(err));
		return err;
	}
	if (memchr(bytes, '\0', length)) {
		snprintf(error, error_bytes, "%s: not a text: it has bytes 0", path);
		free(bytes);
		return -EINVAL;
	}
	text = strndup((const char *)bytes, length);
	free(bytes);
	if (!text) {
		snprintf(error, error_bytes, "not enough memory");
		return -ENOMEM;
	}
	err = ini_text_parse(reader, text, path, error, error_bytes);
	free(text);
	return err;
}

/* ---- the section of the daemon */

#define DISK_LEAST   (UINT64_C(1) << 20)
#define MEMORY_LEAST (UINT64_C(16) << 20)
#define BYTES_MOST   (UINT64_C(1) << 50)

enum { DAYS_MOST = 3650 };

void daemon_section_init(struct daemon_section *section)
{
	*section = (struct daemon_section){
	    .disk_bytes = UINT64_C(1) << 30,
	    .days = 7,
	    .free_percent = 10,
	    .cpu_percent = 5,
	    .memory_bytes = UINT64_C(256) << 20,
	};
}

void daemon_section_fini(struct daemon_section *section)
{
	free(section->store);
	free(section->token_file);
	for (size_t i = 0; i < section->listen_count; i++)
		free(section->listen[i]);
	*section = (struct daemon_section){0};
}

static int set_path(char **to, const char *name, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	if (*value != '/' || strlen(value) >= DAEMON_SECTION_PATH_BYTES)
		return ini_text_wrong(error, "%s '%s' is not an absolute path", name, value);
	free(*to);
	*to = strdup(value);
	return *to ? 0 : -ENOMEM;
}

/* "5%", or "5". */
static int set_percent(uint32_t *to, const char *name, const char *value, uint32_t least, uint32_t most,
    char error[INI_TEXT_ERROR_BYTES])
{
	const char *suffix;
	uint64_t number;

	if (quantity_number(value, &number, &suffix) || (*suffix && strcmp(suffix, "%") != 0) ||
	    number < least || number > most)
		return ini_text_wrong(error, "%s '%s' is not %u%% to %u%%", name, value, least, most);
	*to = (uint32_t)number;
	return 0;
}

/* "127.0.0.1:7337", "[::1]:7337": the port is behind the last colon. */
static bool is_address(const char *value)
{
	const char *colon = strrchr(value, ':'), *suffix;
	uint64_t port;

	return colon && colon != value && !quantity_number(colon + 1, &port, &suffix) && !*suffix &&
	    port <= 65535 && !strpbrk(value, " \t/") && (*value != '[' || colon[-1] == ']') &&
	    (*value == '[' || !memchr(value, ':', (size_t)(colon - value)));
}

static int add_listen(struct daemon_section *section, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	bool is_socket = *value == '/' && strlen(value) < sizeof(((struct sockaddr_un *)0)->sun_path);

	if (!is_socket && !is_address(value))
		return ini_text_wrong(error,
		    "listen '%s' is neither ADDRESS:PORT, such as 127.0.0.1:7337 or [::1]:7337, nor the "
		    "absolute path of a socket",
		    value);
	if (section->listen_count == DAEMON_SECTION_LISTEN_MOST)
		return ini_text_wrong(error, "listen more than %d times", DAEMON_SECTION_LISTEN_MOST);
	section->listen[section->listen_count] = strdup(value);
	return section->listen[section->listen_count++] ? 0 : -ENOMEM;
}

static int set_days(uint32_t *days, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	const char *suffix;
	uint64_t number;

	if (quantity_number(value, &number, &suffix) || *suffix || number < 1 || number > DAYS_MOST)
		return ini_text_wrong(error, "days '%s' is not a whole number, 1 to %d", value, DAYS_MOST);
	*days = (uint32_t)number;
	return 0;
}

int daemon_section_set(
    struct daemon_section *section, const char *name, const char *value, char error[INI_TEXT_ERROR_BYTES])
{
	if (strcmp(name, "store") == 0)
		return set_path(&section->store, name, value, error);
	if (strcmp(name, "token-file") == 0)
		return set_path(&section->token_file, name, value, error);
	if (strcmp(name, "listen") == 0)
		return add_listen(section, value, error);
	if (strcmp(name, "days") == 0)
		return set_days(&section->days, value, error);
	if (strcmp(name, "free") == 0)
		return set_percent(&section->free_percent, name, value, 0, 99, error);
	if (strcmp(name, "cpu") == 0)
		return set_percent(&section->cpu_percent, name, value, 1, 100, error);
	if (strcmp(name, "disk") == 0)
		return quantity_bytes(value, DISK_LEAST, BYTES_MOST, &section->disk_bytes) == 0
		    ? 0
		    : ini_text_wrong(error, "disk '%s' is not 1M or more, for example 500M or 2G", value);
	if (strcmp(name, "memory") == 0)
		return quantity_bytes(value, MEMORY_LEAST, BYTES_MOST, &section->memory_bytes) == 0
		    ? 0
		    : ini_text_wrong(error, "memory '%s' is not 16M or more, for example 256M", value);
	return ini_text_wrong(error, "'%s' is none of " DAEMON_SECTION_KEYS, name);
}

/* ---- where things are */

static int of_user(
    const char *variable, const char *fallback, const char *below, char path[DAEMON_SECTION_PATH_BYTES])
{
	return folder_of_user(variable, fallback, below, path, DAEMON_SECTION_PATH_BYTES);
}

static int of_root(const char *known, char path[DAEMON_SECTION_PATH_BYTES])
{
	snprintf(path, DAEMON_SECTION_PATH_BYTES, "%s", known);
	return 0;
}

int daemon_section_file(char path[DAEMON_SECTION_PATH_BYTES])
{
	return geteuid() == 0 ? of_root(DAEMON_SECTION_FILE_ROOT, path)
	                      : of_user("XDG_CONFIG_HOME", ".config", "/heaptap/heaptap.conf", path);
}

int daemon_section_store(char path[DAEMON_SECTION_PATH_BYTES])
{
	return geteuid() == 0
	    ? of_root(DAEMON_SECTION_STATE_ROOT "/" DAEMON_SECTION_STORE_NAME, path)
	    : of_user("XDG_STATE_HOME", ".local/state", "/heaptap/" DAEMON_SECTION_STORE_NAME, path);
}

/* ---- where stores may be */

static int take_store(void *context, const char *section, const char *name, const char *value, int line,
    char error[INI_TEXT_ERROR_BYTES])
{
	char *store = context;

	if (strcmp(section, "daemon") == 0 && strcmp(name, "store") == 0 && *value == '/')
		snprintf(store, DAEMON_SECTION_PATH_BYTES, "%s", value);
	return 0;
}

/* "" if the file does not say. */
static void read_store(const char *file, char store[DAEMON_SECTION_PATH_BYTES])
{
	const struct ini_text_reader reader = {.value = take_store, .context = store};
	char error[DAEMON_SECTION_PATH_BYTES + INI_TEXT_ERROR_BYTES];

	*store = '\0';
	(void)config_file_read(&reader, file, error, sizeof(error));
}

size_t config_file_stores(const char *given, char paths[CONFIG_FILE_STORES][DAEMON_SECTION_PATH_BYTES])
{
	char file[DAEMON_SECTION_PATH_BYTES];
	size_t count = 0;

	if (given) {
		snprintf(paths[0], DAEMON_SECTION_PATH_BYTES, "%s", given);
		return 1;
	}
	if (daemon_section_file(file) == 0)
		read_store(file, paths[0]);
	else
		*paths[0] = '\0';
	if (*paths[0] || daemon_section_store(paths[0]) == 0)
		count++;
	read_store(DAEMON_SECTION_FILE_ROOT, paths[count]);
	if (!*paths[count])
		snprintf(paths[count], DAEMON_SECTION_PATH_BYTES, "%s",
		    DAEMON_SECTION_STATE_ROOT "/" DAEMON_SECTION_STORE_NAME);
	return count && strcmp(paths[0], paths[1]) == 0 ? count : count + 1;
}
