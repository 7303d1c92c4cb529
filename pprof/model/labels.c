/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/model/labels.h"

#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void labels_fini(struct labels *labels)
{
	for (size_t i = 0; i < labels->count; i++) {
		free(labels->rows[i].name);
		free(labels->rows[i].value);
	}
	*labels = (struct labels){0};
}

void labels_name_clean(const char *from, size_t length, char *name)
{
	size_t to = 0;

	if (length && *from >= '0' && *from <= '9')
		name[to++] = '_';
	for (size_t i = 0; i < length && to < LABELS_NAME_BYTES; i++) {
		bool letter = (from[i] >= 'a' && from[i] <= 'z') || (from[i] >= 'A' && from[i] <= 'Z');

		name[to++] = (char)(letter || (from[i] >= '0' && from[i] <= '9') ? from[i] : '_');
	}
	name[to] = '\0';
}

/* A copy in valid UTF-8 without control characters, of at most LABELS_VALUE_BYTES. NULL if there is no
 * memory. */
static char *value_clean(const char *value, size_t length)
{
	char *clean;

	if (length > LABELS_VALUE_BYTES)
		length = LABELS_VALUE_BYTES;
	clean = malloc(UTF8_SANITIZED_MAX(length) + 1);
	if (!clean)
		return NULL;
	length = utf8_sanitize(clean, value, length);
	if (length > LABELS_VALUE_BYTES)
		length = utf8_valid_prefix(clean, LABELS_VALUE_BYTES);
	clean[length] = '\0';
	for (char *at = clean; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = ' ';
	return clean;
}

const char *labels_find(const struct labels *labels, const char *name)
{
	for (size_t i = 0; i < labels->count; i++)
		if (strcmp(labels->rows[i].name, name) == 0)
			return labels->rows[i].value;
	return NULL;
}

static int add(struct labels *labels, const char *name, size_t name_length, const char *value, size_t length)
{
	char clean[LABELS_NAME_BYTES + 2];
	struct label row;

	labels_name_clean(name, name_length, clean);
	if (!*clean || strncmp(clean, "__", 2) == 0)
		return -EINVAL;
	if (!length || labels_find(labels, clean))
		return 0;
	if (labels->count == LABELS_MAX) {
		labels->left_out++;
		return 0;
	}
	row = (struct label){strdup(clean), value_clean(value, length)};
	if (!row.name || !row.value) {
		free(row.name);
		free(row.value);
		return -ENOMEM;
	}
	labels->rows[labels->count++] = row;
	return 0;
}

int labels_add(struct labels *labels, const char *name, const char *value)
{
	return add(labels, name, strlen(name), value, strlen(value));
}

int labels_add_text(struct labels *labels, const char *text)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return -EINVAL;
	return add(labels, text, (size_t)(equals - text), equals + 1, strlen(equals + 1));
}

int labels_add_comment(struct labels *labels, const char *text)
{
	int err = 0;

	while (*text && err != -ENOMEM) {
		size_t length = strcspn(text, " ");
		const char *equals = memchr(text, '=', length);

		if (equals && equals > text) {
			size_t name_length = (size_t)(equals - text);
			char *value = strndup(equals + 1, length - name_length - 1);

			if (!value)
				return -ENOMEM;
			err =
			    add(labels, text, name_length, value, text_percent_decode(value, strlen(value)));
			free(value);
		}
		text += length + (text[length] == ' ');
	}
	return err == -ENOMEM ? err : 0;
}

/* Spaces part labels; what is no printable ASCII is encoded too, so that the comment is readable anywhere. */
static void put_encoded(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value > ' ' && *value < 0x7f && *value != '%')
			putc(*value, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*value);
	}
}

char *labels_comment(const struct labels *labels)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	fputs(LABELS_COMMENT, out);
	for (size_t i = 0; i < labels->count; i++) {
		fprintf(out, "%s%s=", i ? " " : "", labels->rows[i].name);
		put_encoded(out, labels->rows[i].value);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int read_comments(struct labels *labels, const struct profile *profile, bool *found)
{
	int err = 0;

	*found = false;
	for (size_t i = 0; i < profile_comment_count(profile) && !err; i++) {
		const char *text = profile_comment(profile, i);

		if (strncmp(text, LABELS_COMMENT, strlen(LABELS_COMMENT)) != 0)
			continue;
		*found = true;
		err = labels_add_comment(labels, text + strlen(LABELS_COMMENT));
	}
	return err;
}

bool labels_may_send(const char *name)
{
	return strcmp(name, "pid") != 0;
}

/* Adds a label that is sent: there is less room for these. */
static int add_sent(struct labels *labels, const char *name, const char *value)
{
	if (!labels_may_send(name))
		return 0;
	if (labels->count < LABELS_SENT_MAX || !*value || labels_find(labels, name))
		return labels_add(labels, name, value);
	labels->left_out++;
	return 0;
}

int labels_of_profile(struct labels *labels, const struct profile *profile, const struct origin *origin,
    const struct labels *given)
{
	struct labels found = {0};
	const char *service = labels_find(given, "service_name");
	bool has_comment;
	int err = read_comments(&found, profile, &has_comment);

	if (!service)
		service = labels_find(&found, "service_name");
	if (!service)
		service = *origin->program ? origin->program : "unspecified";
	if (!err)
		err = labels_add(labels, "service_name", service);
	for (size_t i = 0; i < given->count && !err; i++)
		err = add_sent(labels, given->rows[i].name, given->rows[i].value);
	for (size_t i = 0; i < found.count && !err; i++)
		err = add_sent(labels, found.rows[i].name, found.rows[i].value);
	if (!has_comment && !err)
		err = add_sent(labels, "host", origin->host);
	labels->left_out += found.left_out;
	labels_fini(&found);
	return err;
}
