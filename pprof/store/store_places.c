/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_places.h"

#include "pprof/store/config_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int on_value(void *context, const char *section, const char *name, const char *value, int line,
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
	const struct ini_text_reader reader = {.value = on_value, .context = store};
	char error[DAEMON_SECTION_PATH_BYTES + INI_TEXT_ERROR_BYTES];

	*store = '\0';
	(void)config_file_read(&reader, file, error, sizeof(error));
}

size_t store_places_find(const char *given, char paths[STORE_PLACES][DAEMON_SECTION_PATH_BYTES])
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
