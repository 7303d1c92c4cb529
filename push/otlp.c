/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's profiles over HTTP, POST /v1development/profiles. Experimental: the format is in
 * development and has changed between versions; this is the one of opentelemetry-proto v1.11.0.
 */
#include "pprof/codec/decode.h"
#include "pprof/codec/wire.h"
#include "pprof/model/profile.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"
#include "push/answer.h"
#include "push/delivery.h"
#include "push/http.h"
#include "push/otlp_tables.h"
#include "push/protocol.h"
#include "push/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the request */

static Otlp__ValueType *value_type(struct otlp_tables *tables, struct profile_value_type from)
{
	Otlp__ValueType *type = otlp_tables_allocate(tables, 1, sizeof(*type));

	if (!type)
		return NULL;
	otlp__value_type__init(type);
	type->type = otlp_tables_string(tables, from.type);
	type->unit = otlp_tables_string(tables, from.unit);
	return type;
}

/* The attributes of a sample, one array for all of its sample types. */
static int32_t *sample_attributes(
    struct otlp_tables *tables, const struct profile *profile, size_t sample, size_t count)
{
	int32_t *attributes = otlp_tables_allocate(tables, count, sizeof(*attributes));

	for (size_t i = 0; i < count && !tables->error; i++) {
		struct profile_label label = profile_sample_label(profile, sample, i);

		attributes[i] = otlp_tables_attribute(
		    tables, label.key, label.str, label.num, label.str ? "" : label.unit);
	}
	return attributes;
}

/* Samples of every type that have a value, in rows by type. */
static int add_samples(struct otlp_tables *tables, const struct profile *profile, Otlp__Profile **profiles)
{
	size_t types = profile_sample_type_count(profile), count = profile_sample_count(profile);
	Otlp__Sample *rows = otlp_tables_allocate(tables, count * types, sizeof(*rows));
	int64_t *values = otlp_tables_allocate(tables, count * types, sizeof(*values));

	for (size_t t = 0; t < types; t++)
		profiles[t]->samples = otlp_tables_allocate(tables, count, sizeof(*profiles[t]->samples));
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

static int add_profiles(struct otlp_tables *tables, const struct delivery *delivery,
    const struct profile *profile, Otlp__ScopeProfiles *scope)
{
	size_t types = profile_sample_type_count(profile);
	Otlp__Profile *rows = otlp_tables_allocate(tables, types, sizeof(*rows));

	scope->profiles = otlp_tables_allocate(tables, types, sizeof(*scope->profiles));
	scope->n_profiles = types;
	for (size_t t = 0; t < types && !tables->error; t++) {
		struct profile_value_type type = profile_sample_type(profile, t);
		uint8_t *id = otlp_tables_allocate(tables, 16, 1);
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

static int add_resource(struct otlp_tables *tables, const struct delivery *delivery, Otlp__Resource *resource)
{
	size_t count = delivery->labels.count;
	Otlp__KeyValue *rows = otlp_tables_allocate(tables, count, sizeof(*rows));
	Otlp__AnyValue *values = otlp_tables_allocate(tables, count, sizeof(*values));

	resource->attributes = otlp_tables_allocate(tables, count, sizeof(*resource->attributes));
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
	struct otlp_tables tables = {0};
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	Otlp__Scope instrument = OTLP__SCOPE__INIT;
	Otlp__ScopeProfiles scope = OTLP__SCOPE_PROFILES__INIT, *scopes = &scope;
	Otlp__ResourceProfiles profiles = OTLP__RESOURCE_PROFILES__INIT, *all = &profiles;
	Otlp__ExportRequest message = OTLP__EXPORT_REQUEST__INIT;
	int err = otlp_tables_fill(&tables, profile);

	if (!err)
		err = add_profiles(&tables, delivery, profile, &scope);
	if (!err)
		err = add_resource(&tables, delivery, &resource);
	if (!err)
		err = otlp_tables_finish(&tables);
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
	otlp_tables_fini(&tables);
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

static enum retry_verdict judge(const struct target *target, const struct answer *answer, char *text)
{
	int64_t rejected;

	text[0] = '\0';
	if (answer->http_status != 200) {
		answer_text(answer, text);
		return answer->http_status / 100 == 2 ? RETRY_LATER : retry_http(answer->http_status);
	}
	if (answer_is_type(answer, "application/x-protobuf") ||
	    answer_is_type(answer, "application/protobuf")) {
		rejected = answer->body_kept == answer->body_bytes
		    ? rejected_count(answer->body, answer->body_kept, text)
		    : -1;
		if (rejected == 0)
			return RETRY_ACCEPTED;
		utf8_disarm(text, strlen(text));
		if (rejected > 0)
			return RETRY_REFUSED;
	}
	answer_text(answer, text);
	text_append(text, ANSWER_TEXT_BYTES, " (that is no answer of OTLP)");
	return RETRY_LATER;
}

const struct protocol otlp_protocol = {make_request, judge};
