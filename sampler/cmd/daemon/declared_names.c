/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/declared_names.h"

#include "pprof/codec/wire.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"
#include "proto/region_pool.h"

#include <stdlib.h>
#include <string.h>

/* Takes a name as valid UTF-8 without control characters, cut to fit. A name that is set already stays:
 * the first one counts. */
static void take(char name[DECLARED_NAME_BYTES], const void *value, size_t length)
{
	char clean[UTF8_SANITIZED_MAX(DECLARED_NAME_BYTES)];

	if (*name || !length)
		return;
	if (length > DECLARED_NAME_BYTES - 1)
		length = DECLARED_NAME_BYTES - 1;
	length = utf8_sanitize(clean, value, length);
	if (length > DECLARED_NAME_BYTES - 1)
		length = utf8_valid_prefix(clean, DECLARED_NAME_BYTES - 1);
	memcpy(name, clean, length);
	name[length] = '\0';
	for (char *at = name; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = ' ';
}

/* ---- OpenTelemetry's attributes */

enum service_source { SERVICE_OF_ENVIRONMENT, SERVICE_OF_CONTEXT };

/* Takes an attribute by its key, as the semantic conventions name it. */
static void take_attribute(struct declared_names *names, enum service_source source, const char *key,
    size_t key_length, const void *value, size_t length)
{
	const struct {
		const char *key;
		char *name;
	} known[] = {
	    {"service.name", source == SERVICE_OF_CONTEXT ? names->context_service : names->service},
	    {"deployment.environment.name", names->environment},
	    {"deployment.environment", names->environment},
	    {"service.version", names->version},
	    {"k8s.namespace.name", names->namespace},
	    {"k8s.pod.name", names->pod},
	    {"k8s.container.name", names->container},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].key) == key_length && memcmp(known[i].key, key, key_length) == 0)
			take(known[i].name, value, length);
}

/* ---- the environment */

static void trim(const char **text, size_t *length)
{
	while (*length && (**text == ' ' || **text == '\t')) {
		++*text;
		--*length;
	}
	while (*length && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
		--*length;
}

/* Takes the attributes of "service.name=shop,service.version=1.2"; values are percent-encoded. */
static void take_resource(struct declared_names *names, const char *text, size_t length)
{
	const char *end = text + length;

	while (text < end) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		size_t bytes = (size_t)((comma ? comma : end) - text);
		const char *equals = memchr(text, '=', bytes), *key = text,
		           *value = equals ? equals + 1 : text;
		size_t key_length = equals ? (size_t)(equals - text) : 0,
		       value_length = equals ? bytes - key_length - 1 : 0;
		char decoded[3 * DECLARED_NAME_BYTES];

		trim(&key, &key_length);
		trim(&value, &value_length);
		if (value_length > sizeof(decoded))
			value_length = sizeof(decoded);
		memcpy(decoded, value, value_length);
		take_attribute(names, SERVICE_OF_ENVIRONMENT, key, key_length, decoded,
		    text_percent_decode(decoded, value_length));
		text += bytes + 1;
	}
}

/* The text behind "NAME=" in the string, or NULL if it is another variable. */
static const char *value_of(const char *string, size_t length, const char *name)
{
	size_t bytes = strlen(name);

	return length > bytes && string[bytes] == '=' && memcmp(string, name, bytes) == 0 ? string + bytes + 1
	                                                                                  : NULL;
}

/* Finds the value of a variable. False if it is not set. */
static bool find(const char *bytes, size_t length, const char *name, const char **value, size_t *value_length)
{
	const char *end = bytes + length;

	while (bytes < end) {
		const char *zero = memchr(bytes, '\0', (size_t)(end - bytes));
		size_t string = (size_t)((zero ? zero : end) - bytes);

		*value = value_of(bytes, string, name);
		if (*value) {
			*value_length = (size_t)(bytes + string - *value);
			return true;
		}
		bytes += string + 1;
	}
	return false;
}

void declared_names_of_environment(struct declared_names *names, const void *bytes, size_t length)
{
	/* For Kubernetes, the usual names of the variables that the downward API sets. */
	const struct {
		const char *variable;
		char *name;
	} plain[] = {
	    {"DD_SERVICE", names->service},
	    {"POD_NAMESPACE", names->namespace},
	    {"K8S_NAMESPACE", names->namespace},
	    {"POD_NAME", names->pod},
	    {"K8S_POD_NAME", names->pod},
	    {"CONTAINER_NAME", names->container},
	    {"K8S_CONTAINER_NAME", names->container},
	};
	const char *value;
	size_t value_length;

	if (find(bytes, length, "OTEL_SERVICE_NAME", &value, &value_length))
		take(names->service, value, value_length);
	if (find(bytes, length, "OTEL_RESOURCE_ATTRIBUTES", &value, &value_length))
		take_resource(names, value, value_length);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (find(bytes, length, plain[i].variable, &value, &value_length))
			take(plain[i].name, value, value_length);
	/* any value but "" and "0" counts, as in the library */
	names->disabled = find(bytes, length, REGION_DISABLE_ENV, &value, &value_length) && value_length &&
	    (value_length != 1 || *value != '0');
}

/* ---- the process context */

bool declared_names_is_context(const char *line, uint64_t *address)
{
	static const char *const prefixes[] = {"/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"};
	const char *name = line;
	char *end;

	/* address perms offset device inode, then the name */
	for (int field = 0; field < 5; field++) {
		name += strcspn(name, " ");
		name += strspn(name, " ");
	}
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) != 0)
			continue;
		*address = strtoull(line, &end, 16);
		return *end == '-';
	}
	return false;
}

bool declared_names_context_header(const void *bytes, size_t length, struct declared_context *context)
{
	static const char signature[8] = "OTEL_CTX";
	struct {
		char signature[8];
		uint32_t version, payload_bytes;
		uint64_t published_ns, payload;
	} header;

	_Static_assert(sizeof(header) == DECLARED_CONTEXT_HEADER_BYTES, "OTEP 4719");
	if (length < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (memcmp(header.signature, signature, sizeof(signature)) != 0 || header.version != 2)
		return false;
	*context = (struct declared_context){header.published_ns, header.payload, header.payload_bytes};
	return header.payload_bytes <= DECLARED_CONTEXT_BYTES_MAX;
}

/* Finds the first field with that number. False if there is none that holds bytes. */
static bool field_find(struct wire message, uint32_t number, struct wire *bytes)
{
	struct wire_field field;

	while (wire_next(&message, &field) > 0) {
		if (field.number != number || field.type != WIRE_BYTES)
			continue;
		*bytes = field.bytes;
		return true;
	}
	return false;
}

/* KeyValue: key = 1, value = 2, whose string_value is 1. */
static void take_key_value(struct declared_names *names, struct wire message)
{
	struct wire key, value, text;

	if (field_find(message, 1, &key) && field_find(message, 2, &value) && field_find(value, 1, &text))
		take_attribute(names, SERVICE_OF_CONTEXT, (const char *)key.at, wire_left(&key), text.at,
		    wire_left(&text));
}

/* Resource: attributes = 1. */
static void take_attributes(struct declared_names *names, struct wire resource)
{
	struct wire_field field;

	while (wire_next(&resource, &field) > 0)
		if (field.number == 1 && field.type == WIRE_BYTES)
			take_key_value(names, field.bytes);
}

void declared_names_of_context(struct declared_names *names, const void *bytes, size_t length)
{
	struct wire message = {bytes, (const uint8_t *)bytes + length};
	struct wire_field field;

	/* A Resource has KeyValues in field 1. A ProcessContext has a Resource in field 1, and KeyValues
	 * in field 2. A message that is read as the wrong one of the two has no known key. */
	take_attributes(names, message);
	while (wire_next(&message, &field) > 0) {
		if (field.type == WIRE_BYTES && field.number == 1)
			take_attributes(names, field.bytes);
		else if (field.type == WIRE_BYTES && field.number == 2)
			take_key_value(names, field.bytes);
	}
}
