/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process is called, of any command line: bounded, valid UTF-8, nothing that does something to a
 * terminal, and nothing that looks like an option or an address behind the program.
 *
 * Input: the program's name, a byte 0, and /proc/PID/cmdline.
 */
#include "sampler/linux/process_name.h"
#include "pprof/text/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[PROCESS_NAME_BYTES], *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	const size_t program = strlen(text);
	const char *line = program < size ? text + program + 1 : "";
	process_name_make(name, text, line, program < size ? size - program - 1 : 0);
	const size_t length = strnlen(name, sizeof(name));
	if (length == sizeof(name) || utf8_valid_prefix(name, length) != length)
		abort();
	for (const char *c = name; *c; c++)
		if (utf8_control(c))
			abort();
	free(text);
	return 0;
}
