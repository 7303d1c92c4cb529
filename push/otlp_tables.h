/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of an OTLP message, made of a profile. Mappings, locations, functions and stacks keep the
 * profile's numbers. Strings and attributes are numbered as they are added. */
#ifndef PUSH_OTLP_TABLES_H
#define PUSH_OTLP_TABLES_H

#include "pprof/table/intern.h"
#include "push/otlp.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct profile;

/* All zero is empty. Memory that the message refers to stays until otlp_tables_fini(). */
struct otlp_tables {
	struct intern strings;
	Otlp__Dictionary dictionary; /* complete after otlp_tables_finish() */
	void **blocks;               /* all memory that was handed out */
	size_t block_count, block_room;
	Otlp__Attribute **attributes;
	size_t attribute_count, attribute_room;
	int error; /* sticky */
};

void otlp_tables_fini(struct otlp_tables *tables);

/* Zeroed memory that lives as long as the tables. NULL, and error is set, if there is none. */
void *otlp_tables_allocate(struct otlp_tables *tables, size_t count, size_t bytes);

int32_t otlp_tables_string(struct otlp_tables *tables, const char *text);

/* Adds an attribute, with the text, or with the number and its unit if text is NULL. */
int32_t otlp_tables_attribute(
    struct otlp_tables *tables, const char *key, const char *text, int64_t number, const char *unit);

/* Fills mappings, locations, functions and stacks. */
int otlp_tables_fill(struct otlp_tables *tables, const struct profile *profile);

/* Strings and attributes, after the last was added. 0 or -errno. */
int otlp_tables_finish(struct otlp_tables *tables);

#endif
