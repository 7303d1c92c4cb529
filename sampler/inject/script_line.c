/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/script_line.h"

#include <stdio.h>
#include <string.h>

#define BLANK " \t"

static void copy_trimmed(char to[SCRIPT_LINE_BYTES], const char *from, size_t length)
{
	while (length && strchr(BLANK, from[length - 1]))
		length--;
	memcpy(to, from, length);
	to[length] = '\0';
}

bool script_line_parse(const char *head, size_t head_bytes, struct script_line *line)
{
	char text[SCRIPT_LINE_BYTES] = "";
	const char *at = text + 2;
	size_t length;

	if (head_bytes < 2 || memcmp(head, "#!", 2) != 0)
		return false;
	memcpy(text, head, head_bytes < sizeof(text) ? head_bytes : sizeof(text) - 1);
	text[strcspn(text, "\n")] = '\0';
	at += strspn(at, BLANK);
	length = strcspn(at, BLANK);
	copy_trimmed(line->interpreter, at, length);
	at += length;
	at += strspn(at, BLANK);
	copy_trimmed(line->argument, at, strlen(at));
	return line->interpreter[0] != '\0';
}

bool script_line_env(const struct script_line *line, char program[SCRIPT_LINE_BYTES])
{
	const char *slash = strrchr(line->interpreter, '/'), *at = line->argument;

	program[0] = '\0';
	if (strcmp(slash ? slash + 1 : line->interpreter, "env") != 0)
		return false;
	while (*at) {
		size_t length = strcspn(at, BLANK);

		if (*at != '-' && !memchr(at, '=', length)) {
			copy_trimmed(program, at, length);
			break;
		}
		at += length;
		at += strspn(at, BLANK);
	}
	return true;
}
