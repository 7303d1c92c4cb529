/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a spool, the configuration and the comment with labels, which anyone may have written; the first
 * byte says which, 0xff that it is what a server is told of all spools. What holds: a table that is taken
 * is in order and comes back the same, a name that is taken is the name of what was read from it.
 */
#include "pprof/profile/labels.h"
#include "pprof/service/spool_counters.h"
#include "pprof/service/spool_list.h"
#include "pprof/service/spool_name.h"
#include "push/config.h"
#include "push/delta.h"
#include "push/stack_key.h"

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

enum { CHECKSUM_AT = 8, CHECKSUM_END = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With the right checksum, which no fuzzer finds. */
static void try_table(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size + 1), *again;
	struct delta_table table;
	uint64_t checksum;
	size_t length;

	memcpy(bytes, data, size);
	if (size >= CHECKSUM_END) {
		memcpy(bytes, "htdelta1", CHECKSUM_AT);
		checksum = stack_key_mix(0, bytes + CHECKSUM_END, size - CHECKSUM_END);
		memcpy(bytes + CHECKSUM_AT, &checksum, sizeof(checksum));
	}
	if (!delta_decode(bytes, size, &table)) {
		for (size_t i = 1; i < table.count; i++)
			REQUIRE(table.rows[i].key > table.rows[i - 1].key);
		REQUIRE(!delta_encode(&table, &again, &length));
		REQUIRE(length == size);
		free(again);
		delta_table_fini(&table);
	}
	free(bytes);
}

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
		config_parse(&config, text, "file", error, sizeof(error));
		REQUIRE(config.count <= CONFIG_TARGETS_MAX);
		config_fini(&config);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	if (data[0] != 0xff && data[0] % 5 == 0) {
		try_table(data + 1, size - 1);
		return 0;
	}
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	try_text(data[0] == 0xff ? SPOOLS : data[0] % 5, text, size - 1);
	free(text);
	return 0;
}
