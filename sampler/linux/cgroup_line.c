/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/cgroup_line.h"

#include <string.h>

/* The part up to the separator or the line's end; *at moves behind it. */
static size_t part(const char **at, char separator)
{
	size_t length = 0;

	while ((*at)[length] && (*at)[length] != '\n' && (*at)[length] != separator)
		length++;
	*at += length + ((*at)[length] == separator);
	return length;
}

bool cgroup_line_next(const char **text, struct cgroup_line *line)
{
	while (**text) {
		part(text, ':');
		line->controllers = *text;
		line->controllers_bytes = part(text, ':');
		line->path = *text;
		line->path_bytes = part(text, '\n');
		if (line->path_bytes && *line->path == '/')
			return true;
		*text += **text == '\n'; /* the line had no colons */
	}
	return false;
}

bool cgroup_line_has(const struct cgroup_line *line, const char *controller)
{
	const char *at = line->controllers, *end = at + line->controllers_bytes;
	size_t length = strlen(controller);

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t bytes = (size_t)((comma ? comma : end) - at);

		if (bytes == length && memcmp(at, controller, length) == 0)
			return true;
		at += bytes + 1;
	}
	return false;
}
