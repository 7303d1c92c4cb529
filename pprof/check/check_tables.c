/* SPDX-License-Identifier: Apache-2.0 */
/* The rules about strings, mappings, functions and locations. */
#include "pprof/check/checker.h"

#include <errno.h>
#include <string.h>

#include "pprof/table/array.h"
#include "pprof/table/index.h"
#include "pprof/text/utf8.h"

/* ---- strings */

static void add_string(struct checker *c, struct wire_field *field)
{
	size_t len = wire_left(&field->bytes), number = c->string_count;

	if (array_reserve(&c->strings, &c->string_capacity, number + 1, sizeof(*c->strings))) {
		c->error = -ENOMEM;
		return;
	}
	c->strings[c->string_count++] = (struct checker_string){.bytes = field->bytes};
	if (!number && len)
		checker_find(c, RULE_PPROF, "string 0 is not empty");
	if (utf8_valid_prefix(field->bytes.at, len) != len)
		checker_find(
		    c, RULE_READERS, "string %zu is not UTF-8 (protoc and Pyroscope reject)", number);
	if (len && memchr(field->bytes.at, 0, len))
		checker_find(c, RULE_OURS, "string %zu contains a NUL", number);
}

static bool same_bytes(const struct wire *a, const struct wire *b)
{
	size_t len = wire_left(a);

	return len == wire_left(b) && (!len || !memcmp(a->at, b->at, len));
}

static void check_duplicate_strings(struct checker *c)
{
	struct index seen = {0};
	size_t i;

	for (i = 0; i < c->string_count && !c->error; i++) {
		const struct wire *bytes = &c->strings[i].bytes;
		uint32_t hash = index_fold(index_mix_bytes(index_seed(), bytes->at, wire_left(bytes)));
		size_t cursor = index_start(hash);
		uint32_t old;

		while ((old = index_next(&seen, hash, &cursor)))
			if (same_bytes(&c->strings[old - 1].bytes, bytes))
				break;
		if (old)
			checker_find(c, RULE_OURS, "strings %u and %zu are equal", old - 1, i);
		else if (index_add(&seen, hash, (uint32_t)i + 1))
			c->error = -ENOMEM;
	}
	index_fini(&seen);
}

void check_tables_strings(struct checker *c)
{
	checker_each(c, PROFILE_STRING_TABLE, add_string);
	if (!c->string_count)
		checker_find(c, RULE_PPROF, "no string table");
	else
		c->strings[0].used = true;
	if (c->level != CHECK_FOREIGN)
		check_duplicate_strings(c);
}

/* ---- ids */

static void check_id(struct checker *c, struct idmap *ids, uint64_t id, size_t number, const char *what)
{
	int err = idmap_add(ids, id, (uint32_t)number);

	if (err == -EINVAL)
		checker_find(c, RULE_PPROF, "%s %zu has the reserved id 0", what, number);
	else if (err == -EEXIST)
		checker_find(
		    c, RULE_PPROF, "%s %zu: id %llu is used twice", what, number, (unsigned long long)id);
	else if (err)
		c->error = err;
	else if (id != number)
		checker_find(c, RULE_READERS, "%s %zu has id %llu: not sequential (Parca rejects)", what,
		    number, (unsigned long long)id);
}

/* ---- mappings */

static bool is_lowercase_hex(const struct wire *bytes)
{
	const uint8_t *at;

	for (at = bytes->at; at < bytes->end; at++)
		if (!(*at >= '0' && *at <= '9') && !(*at >= 'a' && *at <= 'f'))
			return false;
	return wire_left(bytes) % 2 == 0;
}

static bool ends_with(const struct wire *bytes, const char *suffix)
{
	size_t len = strlen(suffix);

	return wire_left(bytes) >= len && !memcmp(bytes->end - len, suffix, len);
}

static void check_mapping_names(struct checker *c, const uint64_t *n, size_t number)
{
	if (!checker_string(c, n[MAPPING_FILENAME], "mapping's file name") ||
	    !checker_string(c, n[MAPPING_BUILD_ID], "mapping's build id"))
		return;
	if (ends_with(&c->strings[n[MAPPING_FILENAME]].bytes, " (deleted)"))
		checker_find(c, RULE_OURS, "mapping %zu: file name ends in \" (deleted)\"", number);
	if (!n[MAPPING_FILENAME])
		checker_find(
		    c, number == 1 ? RULE_OURS : RULE_ADVICE, "mapping %zu has no file name", number);
	if (!is_lowercase_hex(&c->strings[n[MAPPING_BUILD_ID]].bytes))
		checker_find(c, RULE_OURS, "mapping %zu: build id is not lowercase hexadecimal", number);
}

static void add_mapping(struct checker *c, struct wire_field *field)
{
	enum { PAGE_BYTES = 4096 };
	uint64_t n[MAPPING_FIELD_COUNT];
	size_t number = c->mapping_count + 1;

	if (array_reserve(&c->mappings, &c->mapping_capacity, number, sizeof(*c->mappings))) {
		c->error = -ENOMEM;
		return;
	}
	checker_numbers(c, field, n, MAPPING_FIELD_COUNT, "mapping", number);
	c->mappings[c->mapping_count++] = (struct checker_mapping){
	    .start = n[MAPPING_MEMORY_START],
	    .limit = n[MAPPING_MEMORY_LIMIT],
	    .has_functions = n[MAPPING_HAS_FUNCTIONS] != 0,
	    .has_filenames = n[MAPPING_HAS_FILENAMES] != 0,
	    .has_line_numbers = n[MAPPING_HAS_LINE_NUMBERS] != 0,
	    .has_inline_frames = n[MAPPING_HAS_INLINE_FRAMES] != 0,
	};
	check_id(c, &c->mapping_ids, n[MAPPING_ID], number, "mapping");
	check_mapping_names(c, n, number);
	if (n[MAPPING_MEMORY_START] >= n[MAPPING_MEMORY_LIMIT] &&
	    (n[MAPPING_MEMORY_START] || n[MAPPING_MEMORY_LIMIT]))
		checker_find(c, RULE_OURS, "mapping %zu: start is not below limit", number);
	if ((n[MAPPING_MEMORY_START] | n[MAPPING_MEMORY_LIMIT] | n[MAPPING_FILE_OFFSET]) % PAGE_BYTES)
		checker_find(c, RULE_ADVICE, "mapping %zu: not aligned to pages", number);
}

static void check_mapping_use(struct checker *c, const struct checker_mapping *m, size_t number)
{
	if (!m->used && number > 1)
		checker_find(c, RULE_OURS, "mapping %zu: no sample uses it", number);
	if (m->has_functions && m->bare)
		checker_find(c, RULE_READERS,
		    "mapping %zu: has_functions, but a location has none (never looked up)", number);
	if (!m->has_functions && m->named)
		checker_find(c, RULE_READERS,
		    "mapping %zu: functions, but not has_functions (go tool pprof looks them up again and "
		    "loses them)",
		    number);
	if (!m->has_functions && (m->has_filenames || m->has_line_numbers || m->has_inline_frames))
		checker_find(c, RULE_OURS, "mapping %zu: other flags without has_functions", number);
	if (m->has_functions &&
	    ((m->filenames && !m->has_filenames) || (m->line_numbers && !m->has_line_numbers) ||
	        (m->inline_frames && !m->has_inline_frames)))
		checker_find(c, RULE_OURS,
		    "mapping %zu: file names, lines or inlined frames without their flag", number);
}

/* ---- functions */

static void add_function(struct checker *c, struct wire_field *field)
{
	uint64_t n[FUNCTION_FIELD_COUNT];
	size_t number = c->function_count + 1;
	char filename[2];

	if (array_reserve(&c->functions, &c->function_capacity, number, sizeof(*c->functions))) {
		c->error = -ENOMEM;
		return;
	}
	checker_numbers(c, field, n, FUNCTION_FIELD_COUNT, "function", number);
	c->functions[c->function_count++] = (struct checker_function){.filename = n[FUNCTION_FILENAME] != 0};
	check_id(c, &c->function_ids, n[FUNCTION_ID], number, "function");
	if (!checker_string(c, n[FUNCTION_NAME], "function's name") ||
	    !checker_string(c, n[FUNCTION_SYSTEM_NAME], "function's system name") ||
	    !checker_string(c, n[FUNCTION_FILENAME], "function's file name"))
		return;
	if (!n[FUNCTION_NAME])
		checker_find(c, RULE_OURS, "function %zu has no name", number);
	if (!n[FUNCTION_SYSTEM_NAME])
		checker_find(c, RULE_ADVICE, "function %zu has no system name", number);
	if ((int64_t)n[FUNCTION_START_LINE] < 0)
		checker_find(c, RULE_OURS, "function %zu: start line is negative", number);
	checker_string_copy(c, n[FUNCTION_FILENAME], filename, sizeof(filename));
	if (*filename && *filename != '/')
		checker_find(c, RULE_ADVICE, "function %zu: file name is not absolute", number);
}

/* ---- locations */

struct location {
	uint64_t n[LOCATION_FIELD_COUNT];
	size_t line_count;
	bool filenames, line_numbers;
};

static void check_line(struct checker *c, struct wire_field *field, struct location *l, size_t number)
{
	uint64_t n[LINE_FIELD_COUNT];
	uint32_t function;

	l->line_count++;
	if (!checker_numbers(c, field, n, LINE_FIELD_COUNT, "line of location", number))
		return;
	function = idmap_find(&c->function_ids, n[LINE_FUNCTION_ID]);
	if (!function) {
		checker_find(c, RULE_PPROF, "location %zu: line with nil function (id %llu)", number,
		    (unsigned long long)n[LINE_FUNCTION_ID]);
		return;
	}
	c->functions[function - 1].used = true;
	l->filenames |= c->functions[function - 1].filename;
	l->line_numbers |= n[LINE_LINE] != 0;
	if ((int64_t)n[LINE_LINE] < 0 || (int64_t)n[LINE_COLUMN] < 0)
		checker_find(c, RULE_OURS, "location %zu: negative line or column", number);
}

static void read_location(struct checker *c, struct wire_field *message, struct location *l, size_t number)
{
	struct wire_field field;
	int status;

	while ((status = wire_next(&message->bytes, &field)) > 0) {
		if (field.number == LOCATION_LINE)
			check_line(c, &field, l, number);
		else if (field.number >= LOCATION_FIELD_COUNT)
			checker_find(c, RULE_READERS, "location %zu: unknown field %u", number, field.number);
		else if (field.type != WIRE_VARINT)
			checker_find(c, RULE_PPROF, "location %zu: field %u has the wrong wire type", number,
			    field.number);
		else
			l->n[field.number] = field.value;
	}
	if (status < 0)
		checker_find(c, RULE_PPROF, "location %zu: damaged bytes", number);
}

static void check_location_mapping(struct checker *c, const struct location *l, size_t number)
{
	uint64_t address = l->n[LOCATION_ADDRESS];
	struct checker_mapping *m;
	uint32_t mapping;

	if (!l->n[LOCATION_MAPPING_ID])
		return;
	mapping = idmap_find(&c->mapping_ids, l->n[LOCATION_MAPPING_ID]);
	if (!mapping) {
		checker_find(c, RULE_READERS, "location %zu: its mapping does not exist", number);
		return;
	}
	m = &c->mappings[mapping - 1];
	m->used = true;
	if (l->line_count)
		m->named = true;
	else
		m->bare = true;
	m->filenames |= l->filenames;
	m->line_numbers |= l->line_numbers;
	m->inline_frames |= l->line_count > 1;
	if (m->limit && (address < m->start || address >= m->limit))
		checker_find(c, RULE_OURS, "location %zu: address outside its mapping", number);
}

static void add_location(struct checker *c, struct wire_field *field)
{
	struct location l = {0};
	size_t number = c->location_count + 1;

	if (array_reserve(&c->locations, &c->location_capacity, number, sizeof(*c->locations))) {
		c->error = -ENOMEM;
		return;
	}
	read_location(c, field, &l, number);
	c->locations[c->location_count++] = (struct checker_location){.address = l.n[LOCATION_ADDRESS]};
	check_id(c, &c->location_ids, l.n[LOCATION_ID], number, "location");
	check_location_mapping(c, &l, number);
	if (!l.n[LOCATION_ADDRESS])
		checker_find(c, RULE_READERS,
		    "location %zu: address is 0 (Alloy tells stacks apart by address only)", number);
}

static void check_duplicate_addresses(struct checker *c)
{
	struct index seen = {0};
	size_t i;

	for (i = 0; i < c->location_count && !c->error; i++) {
		uint64_t address = c->locations[i].address;
		uint32_t hash = index_fold(index_mix(index_seed(), address));
		size_t cursor = index_start(hash);
		uint32_t old;

		while ((old = index_next(&seen, hash, &cursor)))
			if (c->locations[old - 1].address == address)
				break;
		if (old && address)
			checker_find(c, RULE_READERS,
			    "locations %u and %zu have the same address (Alloy mixes them up)", old, i + 1);
		else if (!old && index_add(&seen, hash, (uint32_t)i + 1))
			c->error = -ENOMEM;
	}
	index_fini(&seen);
}

void check_tables(struct checker *c)
{
	checker_each(c, PROFILE_MAPPING, add_mapping);
	checker_each(c, PROFILE_FUNCTION, add_function);
	checker_each(c, PROFILE_LOCATION, add_location);
	check_duplicate_addresses(c);
}

void check_tables_use(struct checker *c)
{
	size_t i;

	for (i = 0; i < c->mapping_count; i++)
		check_mapping_use(c, &c->mappings[i], i + 1);
	for (i = 0; i < c->function_count; i++)
		if (!c->functions[i].used)
			checker_find(c, RULE_OURS, "function %zu: no location uses it", i + 1);
	for (i = 0; i < c->location_count; i++)
		if (!c->locations[i].used)
			checker_find(c, RULE_OURS, "location %zu: no sample uses it", i + 1);
	for (i = 0; i < c->string_count; i++)
		if (!c->strings[i].used)
			checker_find(c, RULE_OURS, "string %zu: nothing uses it", i);
}
