/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's profiles over HTTP, POST /v1development/profiles. Experimental: the format is in
 * development and has changed between versions; this is the one of opentelemetry-proto v1.11.0.
 */
#include "pprof/codec/decode.h"
#include "pprof/codec/wire.h"
#include "pprof/model/profile.h"
#include "pprof/table/array.h"
#include "pprof/table/intern.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"
#include "push/answer.h"
#include "push/delivery.h"
#include "push/http.h"
#include "push/otlp.pb-c.h"
#include "push/protocol.h"
#include "push/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * ---- the tables of a message, made of a profile
 *
 * Mappings, locations, functions and stacks keep the profile's numbers. Strings and attributes are numbered
 * as they are added.
 */

/* All zero is empty. Memory that the message refers to stays until tables_fini(). */
struct tables {
	struct intern strings;
	Otlp__Dictionary dictionary; /* complete after tables_finish() */
	void **blocks;               /* all memory that was handed out */
	size_t block_count, block_room;
	Otlp__Attribute **attributes;
	size_t attribute_count, attribute_room;
	int error; /* sticky */
};

static void tables_fini(struct tables *tables)
{
	for (size_t i = 0; i < tables->block_count; i++)
		free(tables->blocks[i]);
	free(tables->blocks);
	free(tables->attributes);
	intern_fini(&tables->strings);
	*tables = (struct tables){0};
}

/* Zeroed memory that lives as long as the tables. NULL, and error is set, if there is none. */
static void *tables_allocate(struct tables *tables, size_t count, size_t bytes)
{
	void *block = NULL;

	if (!array_reserve(
	        &tables->blocks, &tables->block_room, tables->block_count + 1, sizeof(*tables->blocks)))
		block = calloc(count + 1, bytes);
	if (!block) {
		tables->error = -ENOMEM;
		return NULL;
	}
	return tables->blocks[tables->block_count++] = block;
}

static int32_t tables_string(struct tables *tables, const char *text)
{
	uint32_t number = 0;
	int err = *text ? intern_add(&tables->strings, text, strlen(text), &number) : 0;

	if (err || number > INT32_MAX)
		tables->error = err ? err : -EOVERFLOW;
	return (int32_t)number;
}

static Otlp__Attribute *attribute_new(struct tables *tables)
{
	Otlp__Attribute *attribute = tables_allocate(tables, 1, sizeof(*attribute));

	if (!attribute ||
	    array_reserve(&tables->attributes, &tables->attribute_room, tables->attribute_count + 1,
	        sizeof(*tables->attributes))) {
		tables->error = -ENOMEM;
		return NULL;
	}
	otlp__attribute__init(attribute);
	return tables->attributes[tables->attribute_count++] = attribute;
}

/* Adds an attribute, with the text, or with the number and its unit if text is NULL. */
static int32_t tables_attribute(
    struct tables *tables, const char *key, const char *text, int64_t number, const char *unit)
{
	Otlp__AnyValue *value = tables_allocate(tables, 1, sizeof(*value));
	Otlp__Attribute *attribute;

	if (!tables->attribute_count) /* place 0 */
		attribute_new(tables);
	attribute = attribute_new(tables);
	if (!value || !attribute)
		return 0;
	otlp__any_value__init(value);
	if (text) {
		value->value_case = OTLP__ANY_VALUE__VALUE_TEXT;
		value->text = (char *)text;
	} else {
		value->value_case = OTLP__ANY_VALUE__VALUE_NUMBER;
		value->number = number;
		attribute->unit = tables_string(tables, unit);
	}
	attribute->key = tables_string(tables, key);
	attribute->value = value;
	return (int32_t)tables->attribute_count - 1;
}

/* Rows 0 to count; row 0 stays zero. The structs are in one block, the pointers to them in another. */
#define ROWS(tables, count, rows, pointers, init)                                       \
	do {                                                                            \
		(rows) = tables_allocate(tables, (count) + 1, sizeof(*(rows)));         \
		(pointers) = tables_allocate(tables, (count) + 1, sizeof(*(pointers))); \
		for (size_t row_ = 0; !(tables)->error && row_ <= (count); row_++) {    \
			init(&(rows)[row_]);                                            \
			(pointers)[row_] = &(rows)[row_];                               \
		}                                                                       \
	} while (0)

static void fill_mappings(struct tables *tables, const struct profile *profile)
{
	Otlp__Dictionary *d = &tables->dictionary;
	size_t count = profile_mapping_count(profile);
	Otlp__Mapping *rows;

	ROWS(tables, count, rows, d->mappings, otlp__mapping__init);
	for (uint32_t id = 1; id <= count && !tables->error; id++) {
		struct profile_mapping mapping = profile_mapping(profile, id);
		int32_t *build_id = tables_allocate(tables, 1, sizeof(*build_id));

		rows[id].start = mapping.start;
		rows[id].limit = mapping.limit;
		rows[id].file_offset = mapping.file_offset;
		rows[id].filename = tables_string(tables, mapping.filename);
		if (!build_id || !*mapping.build_id)
			continue;
		*build_id =
		    tables_attribute(tables, "process.executable.build_id.gnu", mapping.build_id, 0, "");
		rows[id].attributes = build_id;
		rows[id].n_attributes = 1;
	}
	d->n_mappings = count + 1;
}

static void fill_functions(struct tables *tables, const struct profile *profile)
{
	Otlp__Dictionary *d = &tables->dictionary;
	size_t count = profile_function_count(profile);
	Otlp__Function *rows;

	ROWS(tables, count, rows, d->functions, otlp__function__init);
	for (uint32_t id = 1; id <= count && !tables->error; id++) {
		struct profile_function function = profile_function(profile, id);

		rows[id].name = tables_string(tables, function.name);
		rows[id].system_name = tables_string(tables, function.system_name);
		rows[id].filename = tables_string(tables, function.filename);
		rows[id].start_line = function.start_line;
	}
	d->n_functions = count + 1;
}

static void fill_locations(struct tables *tables, const struct profile *profile)
{
	Otlp__Dictionary *d = &tables->dictionary;
	size_t count = profile_location_count(profile);
	Otlp__Location *rows;

	ROWS(tables, count, rows, d->locations, otlp__location__init);
	for (uint32_t id = 1; id <= count && !tables->error; id++) {
		struct profile_location location = profile_location(profile, id);
		Otlp__Line *lines = tables_allocate(tables, location.line_count, sizeof(*lines));

		rows[id].lines = tables_allocate(tables, location.line_count, sizeof(*rows[id].lines));
		rows[id].n_lines = location.line_count;
		rows[id].mapping = (int32_t)location.mapping;
		rows[id].address = location.address;
		for (size_t i = 0; i < location.line_count && !tables->error; i++) {
			otlp__line__init(&lines[i]);
			lines[i].function = (int32_t)location.lines[i].function;
			lines[i].line = location.lines[i].line;
			lines[i].column = location.lines[i].column;
			rows[id].lines[i] = &lines[i];
		}
	}
	d->n_locations = count + 1;
}

/* Stack i + 1 is sample i's. */
static void fill_stacks(struct tables *tables, const struct profile *profile)
{
	Otlp__Dictionary *d = &tables->dictionary;
	size_t count = profile_sample_count(profile);
	Otlp__Stack *rows;

	ROWS(tables, count, rows, d->stacks, otlp__stack__init);
	for (size_t i = 0; i < count && !tables->error; i++) {
		struct profile_sample sample = profile_sample(profile, i);

		rows[i + 1].n_locations = sample.depth;
		rows[i + 1].locations = tables_allocate(tables, sample.depth, sizeof(*rows[i + 1].locations));
		for (size_t j = 0; j < sample.depth && !tables->error; j++)
			rows[i + 1].locations[j] = (int32_t)sample.locations[j];
	}
	d->n_stacks = count + 1;
}

/* Fills mappings, locations, functions and stacks. */
static int tables_fill(struct tables *tables, const struct profile *profile)
{
	Otlp__Link *link;

	otlp__dictionary__init(&tables->dictionary);
	ROWS(tables, (size_t)0, link, tables->dictionary.links, otlp__link__init);
	tables->dictionary.n_links = 1;
	if (profile_sample_count(profile) >= INT32_MAX || profile_location_count(profile) >= INT32_MAX)
		tables->error = -EOVERFLOW;
	if (!tables->error)
		fill_mappings(tables, profile);
	if (!tables->error)
		fill_functions(tables, profile);
	if (!tables->error)
		fill_locations(tables, profile);
	if (!tables->error)
		fill_stacks(tables, profile);
	return tables->error;
}

/* Strings and attributes, after the last was added. 0 or -errno. */
static int tables_finish(struct tables *tables)
{
	Otlp__Dictionary *d = &tables->dictionary;

	if (!tables->attribute_count)
		attribute_new(tables);
	d->n_strings = (size_t)tables->strings.count + 1;
	d->strings = tables_allocate(tables, d->n_strings, sizeof(*d->strings));
	for (uint32_t i = 0; i < d->n_strings && !tables->error; i++)
		d->strings[i] = (char *)intern_at(&tables->strings, i);
	d->n_attributes = tables->attribute_count;
	d->attributes = tables->attributes;
	return tables->error;
}

/* ---- the request */

static Otlp__ValueType *value_type(struct tables *tables, struct profile_value_type from)
{
	Otlp__ValueType *type = tables_allocate(tables, 1, sizeof(*type));

	if (!type)
		return NULL;
	otlp__value_type__init(type);
	type->type = tables_string(tables, from.type);
	type->unit = tables_string(tables, from.unit);
	return type;
}

/* The attributes of a sample, one array for all of its sample types. */
static int32_t *sample_attributes(
    struct tables *tables, const struct profile *profile, size_t sample, size_t count)
{
	int32_t *attributes = tables_allocate(tables, count, sizeof(*attributes));

	for (size_t i = 0; i < count && !tables->error; i++) {
		struct profile_label label = profile_sample_label(profile, sample, i);

		attributes[i] =
		    tables_attribute(tables, label.key, label.str, label.num, label.str ? "" : label.unit);
	}
	return attributes;
}

/* Samples of every type that have a value, in rows by type. */
static int add_samples(struct tables *tables, const struct profile *profile, Otlp__Profile **profiles)
{
	size_t types = profile_sample_type_count(profile), count = profile_sample_count(profile);
	Otlp__Sample *rows = tables_allocate(tables, count * types, sizeof(*rows));
	int64_t *values = tables_allocate(tables, count * types, sizeof(*values));

	for (size_t t = 0; t < types; t++)
		profiles[t]->samples = tables_allocate(tables, count, sizeof(*profiles[t]->samples));
	for (size_t i = 0; i < count && !tables->error; i++) {
		struct profile_sample sample = profile_sample(profile, i);
		int32_t *attributes = sample_attributes(tables, profile, i, sample.label_count);

		for (size_t t = 0; t < types && !tables->error; t++) {
			Otlp__Sample *row = &rows[i * types + t];

			if (!sample.values[t])
				continue;
			otlp__sample__init(row);
			row->stack = (int32_t)i + 1;
			row->attributes = attributes;
			row->n_attributes = sample.label_count;
			row->values = &values[i * types + t];
			row->values[0] = sample.values[t];
			row->n_values = 1;
			profiles[t]->samples[profiles[t]->n_samples++] = row;
		}
	}
	return tables->error;
}

/* The UUID's digits as 16 bytes; each sample type is a profile of its own. */
static void set_id(Otlp__Profile *profile, const char *uuid, uint8_t type, uint8_t *id)
{
	size_t at = 0;

	for (const char *digit = uuid; *digit && at < 32; digit++) {
		unsigned int value = (unsigned int)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);

		if (*digit == '-')
			continue;
		id[at / 2] = (uint8_t)(id[at / 2] << 4 | value);
		at++;
	}
	id[15] ^= type;
	profile->profile_id.data = id;
	profile->profile_id.len = 16;
}

static int add_profiles(struct tables *tables, const struct delivery *delivery, const struct profile *profile,
    Otlp__ScopeProfiles *scope)
{
	size_t types = profile_sample_type_count(profile);
	Otlp__Profile *rows = tables_allocate(tables, types, sizeof(*rows));

	scope->profiles = tables_allocate(tables, types, sizeof(*scope->profiles));
	scope->n_profiles = types;
	for (size_t t = 0; t < types && !tables->error; t++) {
		struct profile_value_type type = profile_sample_type(profile, t);
		uint8_t *id = tables_allocate(tables, 16, 1);
		bool state = strncmp(type.type, "inuse_", 6) == 0;

		if (!id)
			break;
		otlp__profile__init(&rows[t]);
		rows[t].sample_type = value_type(tables, type);
		rows[t].period_type = value_type(tables, profile_period_type(profile));
		rows[t].period = profile_period(profile);
		rows[t].time_unix_nano = (uint64_t)(state ? delivery->end_ns : delivery->start_ns);
		rows[t].duration_nano = state ? 0 : (uint64_t)(delivery->end_ns - delivery->start_ns);
		set_id(&rows[t], delivery->uuid, (uint8_t)t, id);
		scope->profiles[t] = &rows[t];
	}
	return tables->error ? tables->error : add_samples(tables, profile, scope->profiles);
}

/* Labels by the names of OpenTelemetry's conventions where they have one. */
static const char *attribute_name(const char *label)
{
	static const char *const names[][2] = {{"service_name", "service.name"}, {"host", "host.name"},
	    {"container_id", "container.id"}, {"pod", "k8s.pod.name"}, {"pod_uid", "k8s.pod.uid"},
	    {"namespace", "k8s.namespace.name"}, {"container", "k8s.container.name"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(label, names[i][0]) == 0)
			return names[i][1];
	return label;
}

static int add_resource(struct tables *tables, const struct delivery *delivery, Otlp__Resource *resource)
{
	size_t count = delivery->labels.count;
	Otlp__KeyValue *rows = tables_allocate(tables, count, sizeof(*rows));
	Otlp__AnyValue *values = tables_allocate(tables, count, sizeof(*values));

	resource->attributes = tables_allocate(tables, count, sizeof(*resource->attributes));
	for (size_t i = 0; i < count && !tables->error; i++) {
		otlp__any_value__init(&values[i]);
		values[i].value_case = OTLP__ANY_VALUE__VALUE_TEXT;
		values[i].text = delivery->labels.rows[i].value;
		otlp__key_value__init(&rows[i]);
		rows[i].key = (char *)attribute_name(delivery->labels.rows[i].name);
		rows[i].value = &values[i];
		resource->attributes[i] = &rows[i];
	}
	resource->n_attributes = count;
	return tables->error;
}

static int make_body(
    const struct delivery *delivery, const struct profile *profile, struct http_request *request)
{
	static char name[] = "heaptap", version[] = HEAPTAP_VERSION;
	struct tables tables = {0};
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	Otlp__Scope instrument = OTLP__SCOPE__INIT;
	Otlp__ScopeProfiles scope = OTLP__SCOPE_PROFILES__INIT, *scopes = &scope;
	Otlp__ResourceProfiles profiles = OTLP__RESOURCE_PROFILES__INIT, *all = &profiles;
	Otlp__ExportRequest message = OTLP__EXPORT_REQUEST__INIT;
	int err = tables_fill(&tables, profile);

	if (!err)
		err = add_profiles(&tables, delivery, profile, &scope);
	if (!err)
		err = add_resource(&tables, delivery, &resource);
	if (!err)
		err = tables_finish(&tables);
	instrument.name = name;
	instrument.version = version;
	scope.scope = &instrument;
	profiles.resource = &resource;
	profiles.n_scope_profiles = 1;
	profiles.scope_profiles = &scopes;
	message.n_resource_profiles = 1;
	message.resource_profiles = &all;
	message.dictionary = &tables.dictionary;
	if (!err) {
		request->body_bytes = otlp__export_request__get_packed_size(&message);
		request->body = malloc(request->body_bytes + 1);
		err = request->body ? 0 : -ENOMEM;
	}
	if (!err)
		otlp__export_request__pack(&message, request->body);
	tables_fini(&tables);
	return err;
}

static int make_request(
    const struct target *target, const struct delivery *delivery, struct http_request *request)
{
	const struct delivery_part *part = &delivery->parts[0];
	struct profile *profile;
	int err;

	if (decode_profile(part->profile, part->profile_bytes, DECODE_MAX_BYTES, &profile))
		return -EINVAL;
	err = make_body(delivery, profile, request);
	profile_free(profile);
	if (err)
		return err;
	snprintf(request->url, sizeof(request->url), "%s/v1development/profiles", target->url.address);
	return http_request_header(request, "Content-Type: application/x-protobuf");
}

/* ---- the answer */

/* ExportProfilesServiceResponse{partial_success = 1{rejected_profiles = 1, error_message = 2}}: how many were
 * rejected, with the message appended to text; -1 if the bytes are no such message. */
static int64_t rejected_count(const uint8_t *bytes, size_t length, char *text)
{
	struct wire whole = {bytes, bytes + length};
	struct wire_field field, inner;
	int64_t rejected = 0;
	int status, inside = 0;

	while ((status = wire_next(&whole, &field)) > 0) {
		if (field.number != 1 || field.type != WIRE_BYTES)
			continue;
		while ((inside = wire_next(&field.bytes, &inner)) > 0) {
			if (inner.number == 1 && inner.type == WIRE_VARINT)
				rejected = (int64_t)inner.value;
			else if (inner.number == 2 && inner.type == WIRE_BYTES)
				text_append(text, ANSWER_TEXT_BYTES, "%.*s", (int)wire_left(&inner.bytes),
				    (const char *)inner.bytes.at);
		}
		if (inside < 0)
			return -1;
	}
	return status < 0 || rejected < 0 ? -1 : rejected;
}

static enum answer_verdict judge(const struct target *target, const struct answer *answer, char *text)
{
	int64_t rejected;

	text[0] = '\0';
	if (answer->http_status != 200) {
		answer_text(answer, text);
		return answer->http_status / 100 == 2 ? ANSWER_LATER : answer_judge_http(answer->http_status);
	}
	if (answer_is_type(answer, "application/x-protobuf") ||
	    answer_is_type(answer, "application/protobuf")) {
		rejected = answer->body_kept == answer->body_bytes
		    ? rejected_count(answer->body, answer->body_kept, text)
		    : -1;
		if (rejected == 0)
			return ANSWER_ACCEPTED;
		utf8_disarm(text, strlen(text));
		if (rejected > 0)
			return ANSWER_REFUSED;
	}
	answer_text(answer, text);
	text_append(text, ANSWER_TEXT_BYTES, " (that is no answer of OTLP)");
	return ANSWER_LATER;
}

const struct protocol otlp_protocol = {make_request, judge};
