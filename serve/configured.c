/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/configured.h"

#include "pprof/service/config_file.h"

#include <errno.h>
#include <string.h>

_Static_assert(
    (int)DAEMON_SECTION_LISTEN_MOST <= (int)COMMAND_LINE_LISTEN_MAX, "what the file has fits into the line");

static int on_value(void *context, const char *section, const char *name, const char *value, int line,
    char error[INI_TEXT_ERROR_BYTES])
{
	(void)line;
	return strcmp(section, "daemon") == 0 ? daemon_section_set(context, name, value, error) : 0;
}

int configured_read(struct daemon_section *section, char *error, size_t error_bytes)
{
	const struct ini_text_reader reader = {.value = on_value, .context = section};
	char path[DAEMON_SECTION_PATH_BYTES];
	int err;

	daemon_section_init(section);
	if (daemon_section_file(path) != 0)
		return 0;
	err = config_file_read(&reader, path, error, error_bytes);
	/* nor is one that lies in the home of who has called us as another user */
	return err == -ENOENT || err == -EACCES ? 0 : err;
}

void configured_listen(struct command_line *line, const struct daemon_section *section)
{
	for (size_t i = 0; i < section->listen_count; i++)
		line->listen[line->listen_count++] = section->listen[i];
}

void configured_token(struct command_line *line, const struct daemon_section *section)
{
	if (!line->token_file)
		line->token_file = section->token_file;
}
