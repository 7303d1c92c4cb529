/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a spool, the configuration and the comment with labels, which anyone may have written; the first
 * byte says which, 0xff that it is what a server is told of all spools. What holds: a name that is
 * taken is the name of what was read from it.
 */
#include "pprof/model/labels.h"
#include "pprof/store/spool_files.h"
#include "push/command_line.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SPOOLS = 5 };

static void try_text(uint8_t kind, const char *text, size_t length)
{
	struct spool_entry entry = {0};
	struct labels labels = {0};
	struct config config;
	struct spool_counters counters;
	struct spool_list spools;
	char name[SPOOL_NAME_BYTES], error[256], *again;
	size_t bytes;

	switch (kind) {
	case 1:
		if (spool_name_parse(text, &entry)) {
			spool_name_print(&entry, name);
			REQUIRE(strcmp(name, text) == 0);
		}
		break;
	case 2:
		spool_counters_parse((const uint8_t *)text, length, &counters);
		break;
	case SPOOLS:
		if (!spool_list_parse(&spools, text, length)) {
			again = spool_list_print(&spools, &bytes);
			REQUIRE(again && bytes <= spools.count * 512);
			free(again);
		}
		spool_list_fini(&spools);
		break;
	case 3:
		labels_add_comment(&labels, text);
		REQUIRE(labels.count <= LABELS_MAX);
		labels_fini(&labels);
		break;
	default:
		command_line_parse_config(&config, text, "file", error, sizeof(error));
		REQUIRE(config.count <= CONFIG_TARGETS_MAX);
		command_line_fini_config(&config);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	try_text(data[0] == 0xff ? SPOOLS : data[0] % 5, text, size - 1);
	free(text);
	return 0;
}
