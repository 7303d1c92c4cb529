/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the checker share: check (file, header), check_tables (strings, mappings, functions,
 * locations), check_samples. No other file includes this.
 *
 * Tables are numbered from 1 in file order here; that is what messages call them.
 */
#ifndef PPROF_CHECK_CHECKER_H
#define PPROF_CHECK_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/check/check_report.h"
#include "pprof/codec/wire.h"
#include "pprof/model/schema.h"
#include "pprof/model/tables.h"
#include "pprof/table/index.h"

/* Who rejects a profile that breaks the rule; see the table in check.h. */
enum checker_rule { RULE_PPROF, RULE_READERS, RULE_OURS, RULE_ADVICE, RULE_HEAP };

struct checker_string {
	struct wire bytes;
	bool used;
	bool string_label, number_label; /* is the key of some label of that kind */
};

struct checker_mapping {
	uint64_t start, limit;
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
	/* what its locations have */
	bool used, named, bare, filenames, line_numbers, inline_frames;
};

struct checker_function {
	bool used, filename;
};

struct checker_location {
	uint64_t address;
	bool used;
};

struct checker_type {
	uint64_t type, unit; /* string indexes */
	uint64_t total;      /* of absolute values, saturated */
};

struct checker {
	enum check_level level;
	struct check_report *report;
	size_t max_bytes; /* limit on memory */
	int error;        /* -ENOMEM, -EOVERFLOW, -EFBIG beyond max_bytes */
	struct wire all;

	struct checker_string *strings;
	size_t string_count, string_capacity;
	struct checker_mapping *mappings;
	size_t mapping_count, mapping_capacity;
	struct checker_function *functions;
	size_t function_count, function_capacity;
	struct checker_location *locations;
	size_t location_count, location_capacity;
	struct checker_type *types;
	size_t type_count, type_capacity;
	struct idmap mapping_ids, function_ids, location_ids;

	size_t sample_count, unlabelled_count; /* all samples; those without a label "bytes" */
	struct samples distinct;               /* without values: finds equal stacks and labels */
	uint32_t *stack;
	size_t stack_capacity;
	struct samples_label *labels;
	size_t label_capacity;
	int64_t *values;
	size_t value_capacity;
};

/* Records a finding, at the severity that the level gives the rule (maybe none). */
void checker_find(struct checker *c, enum checker_rule rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Is the index inside the string table? Marks the string as used; `what` names the field in the finding. */
bool checker_string(struct checker *c, uint64_t index, const char *what);
bool checker_string_is(const struct checker *c, uint64_t index, const char *text);
/* A NUL-terminated copy of at most size - 1 bytes, "" for an index outside the table. */
void checker_string_copy(const struct checker *c, uint64_t index, char *out, size_t size);

/* wire_numbers(), with findings for unknown and repeated fields. false if the entry cannot be read. */
bool checker_numbers(struct checker *c, const struct wire_field *field, uint64_t *numbers, uint32_t count,
    const char *what, size_t number);

/* Calls entry for every top-level field of that number (0: of every one). */
typedef void checker_entry(struct checker *c, struct wire_field *field);
void checker_each(struct checker *c, uint32_t number, checker_entry *entry);

/* Frees the tables, not the report. */
void checker_fini(struct checker *c);

/* ---- the rules, in the files of their names; in this order */

void check_tables_strings(struct checker *c);
void check_tables(struct checker *c);
void check_samples(struct checker *c); /* after the sample types */
void check_tables_use(
    struct checker *c); /* after check_samples(), which marks the entries that samples use */

#endif
