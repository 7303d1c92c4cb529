/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/control_list.h"

#include "pprof/table/array.h"
#include "pprof/text/utf8.h"
#include "sampler/core/control_request.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_TEXT, KIND_PID, KIND_TIME, KIND_COUNT, KIND_TRUTH, KIND_ESTIMATE };

/* A key of a record and the member that holds its value. */
struct field {
	const char *key;
	enum kind kind;
	size_t offset;
};

static const struct field daemon_fields[] = {
    {"pid", KIND_PID, offsetof(struct control_daemon, pid)},
    {"since", KIND_TIME, offsetof(struct control_daemon, since_unix_ns)},
    {"cpu_ns", KIND_COUNT, offsetof(struct control_daemon, cpu_ns)},
    {"rss_bytes", KIND_COUNT, offsetof(struct control_daemon, rss_bytes)},
    {"disk_bytes", KIND_COUNT, offsetof(struct control_daemon, disk_bytes)},
    {"disk_budget_bytes", KIND_COUNT, offsetof(struct control_daemon, disk_budget_bytes)},
    {"version", KIND_TEXT, offsetof(struct control_daemon, version)},
    {"store", KIND_TEXT, offsetof(struct control_daemon, store)},
    {"store_depth", KIND_COUNT, offsetof(struct control_daemon, store_depth)},
    {"store_since", KIND_TIME, offsetof(struct control_daemon, store_since_unix_ns)},
    {"config", KIND_TEXT, offsetof(struct control_daemon, config)},
    {"off", KIND_TEXT, offsetof(struct control_daemon, off)},
};

static const struct field process_fields[] = {
    {"pid", KIND_PID, offsetof(struct control_process, pid)},
    {"service", KIND_TEXT, offsetof(struct control_process, service)},
    {"exe", KIND_TEXT, offsetof(struct control_process, exe)},
    {"comm", KIND_TEXT, offsetof(struct control_process, comm)},
    {"name", KIND_TEXT, offsetof(struct control_process, name)},
    {"container_id", KIND_TEXT, offsetof(struct control_process, container_id)},
    {"since", KIND_TIME, offsetof(struct control_process, since_unix_ns)},
    {"start", KIND_TIME, offsetof(struct control_process, start_unix_ns)},
    {"next_snapshot", KIND_TIME, offsetof(struct control_process, next_unix_ns)},
    {"profiled", KIND_TRUTH, offsetof(struct control_process, profiled)},
    {"reason", KIND_TEXT, offsetof(struct control_process, reason)},
    {"inuse_bytes", KIND_ESTIMATE, offsetof(struct control_process, inuse_bytes)},
    {"inuse_bytes_error", KIND_ESTIMATE, offsetof(struct control_process, inuse_bytes_error)},
    {"inuse_objects", KIND_ESTIMATE, offsetof(struct control_process, inuse_objects)},
    {"alloc_bytes", KIND_ESTIMATE, offsetof(struct control_process, alloc_bytes)},
    {"growth", KIND_TEXT, offsetof(struct control_process, growth.kind)},
    {"growth_bytes", KIND_ESTIMATE, offsetof(struct control_process, growth.bytes)},
    {"growth_bytes_error", KIND_ESTIMATE, offsetof(struct control_process, growth.bytes_error)},
    {"growth_since", KIND_TIME, offsetof(struct control_process, growth.since_unix_ns)},
    {"growth_until", KIND_TIME, offsetof(struct control_process, growth.until_unix_ns)},
    {"growth_bytes_per_hour", KIND_ESTIMATE, offsetof(struct control_process, growth.bytes_per_hour)},
    {"growth_bytes_per_hour_error", KIND_ESTIMATE,
        offsetof(struct control_process, growth.bytes_per_hour_error)},
    {"rss_bytes", KIND_COUNT, offsetof(struct control_process, rss_bytes)},
    {"samples", KIND_COUNT, offsetof(struct control_process, samples)},
    {"backend", KIND_TEXT, offsetof(struct control_process, backend)},
};

static const struct field denied_fields[] = {
    {"exe", KIND_TEXT, offsetof(struct control_denied, exe)},
    {"library_build_id", KIND_TEXT, offsetof(struct control_denied, library_build_id)},
    {"since", KIND_TIME, offsetof(struct control_denied, since_unix_ns)},
    {"reason", KIND_TEXT, offsetof(struct control_denied, reason)},
};

enum { ROOM_FOR_OTHERS = CONTROL_LIST_BYTES_MAX / 4 };

#define LOST  "lost."
#define LABEL "label."

/* ---- writing */

static void write_string(struct control_list_writer *writer, const char *string)
{
	size_t length = strlen(string) + 1;

	if (writer->error)
		return;
	if (writer->bytes + length > CONTROL_LIST_BYTES_MAX)
		writer->error = -E2BIG;
	else
		writer->error = array_reserve(&writer->text, &writer->capacity, writer->bytes + length, 1);
	if (writer->error)
		return;
	memcpy(writer->text + writer->bytes, string, length);
	writer->bytes += length;
}

__attribute__((format(printf, 2, 3))) static void write_formatted(
    struct control_list_writer *writer, const char *format, ...)
{
	char *string;
	va_list arguments;

	va_start(arguments, format);
	int length = vasprintf(&string, format, arguments);
	va_end(arguments);
	if (length < 0) {
		writer->error = writer->error ? writer->error : -ENOMEM;
		return;
	}
	write_string(writer, string);
	free(string);
}

static void write_field(struct control_list_writer *writer, const struct field *field, const void *record)
{
	const void *at = (const char *)record + field->offset;
	const char *key = field->key;

	switch (field->kind) {
	case KIND_TEXT:
		if (*(const char *const *)at && **(const char *const *)at)
			write_formatted(writer, "%s=%s", key, *(const char *const *)at);
		break;
	case KIND_PID:
		write_formatted(writer, "%s=%d", key, (int)*(const pid_t *)at);
		break;
	case KIND_TIME:
		write_formatted(writer, "%s=%" PRId64, key, *(const int64_t *)at);
		break;
	case KIND_COUNT:
		write_formatted(writer, "%s=%" PRIu64, key, *(const uint64_t *)at);
		break;
	case KIND_TRUTH:
		write_formatted(writer, "%s=%d", key, *(const bool *)at);
		break;
	case KIND_ESTIMATE:
		if (isfinite(*(const double *)at))
			write_formatted(writer, "%s=%.17g", key, *(const double *)at);
		break;
	}
}

/* Writes a record without its end. */
static void write_fields(struct control_list_writer *writer, const char *name, const struct field *fields,
    size_t count, const void *record)
{
	write_string(writer, name);
	for (size_t i = 0; i < count; i++)
		write_field(writer, &fields[i], record);
}

void control_list_write_daemon(struct control_list_writer *writer, const struct control_daemon *daemon)
{
	write_fields(writer, "daemon", daemon_fields, ARRAY_COUNT(daemon_fields), daemon);
	write_string(writer, "");
}

void control_list_write_process(struct control_list_writer *writer, const struct control_process *process)
{
	const size_t before = writer->bytes;

	if (writer->error)
		return;
	write_fields(writer, "process", process_fields, ARRAY_COUNT(process_fields), process);
	for (size_t i = 0; i < process->loss_count && i < CONTROL_LOSSES_MAX; i++)
		write_formatted(
		    writer, LOST "%s=%" PRIu64, process->losses[i].cause, process->losses[i].count);
	for (size_t i = 0; i < process->label_count && i < CONTROL_LABELS_MAX; i++)
		write_formatted(writer, LABEL "%s=%s", process->labels[i].key, process->labels[i].value);
	write_string(writer, "");
	if (writer->error == -E2BIG || writer->bytes > CONTROL_LIST_BYTES_MAX - ROOM_FOR_OTHERS) {
		writer->error = 0;
		writer->bytes = before;
		writer->left_out++;
	}
}

void control_list_write_denied(struct control_list_writer *writer, const struct control_denied *denied)
{
	write_fields(writer, "denied", denied_fields, ARRAY_COUNT(denied_fields), denied);
	write_string(writer, "");
}

void control_list_write_note(struct control_list_writer *writer, const char *note)
{
	write_string(writer, "note");
	write_formatted(writer, "text=%s", note);
	write_string(writer, "");
}

void control_list_writer_fini(struct control_list_writer *writer)
{
	free(writer->text);
	memset(writer, 0, sizeof(*writer));
}

/* ---- reading */

/* The strings of the text, one after the other. */
struct strings {
	char *at, *end;
};

/* The next string. "" at the end of a record, NULL at the end of the text. */
static char *next_string(struct strings *strings)
{
	char *string = strings->at;

	if (string == strings->end)
		return NULL;
	strings->at += strlen(string) + 1;
	return string;
}

static void read_value(const struct field *field, void *record, char *value)
{
	void *at = (char *)record + field->offset;

	switch (field->kind) {
	case KIND_TEXT:
		*(const char **)at = value;
		break;
	case KIND_PID:
		*(pid_t *)at = (pid_t)strtol(value, NULL, 10);
		break;
	case KIND_TIME:
		*(int64_t *)at = strtoll(value, NULL, 10);
		break;
	case KIND_COUNT:
		*(uint64_t *)at = *value == '-' ? 0 : strtoull(value, NULL, 10);
		break;
	case KIND_TRUTH:
		*(bool *)at = strcmp(value, "1") == 0;
		break;
	case KIND_ESTIMATE:
		*(double *)at = strtod(value, NULL);
		break;
	}
}

static void begin_fields(const struct field *fields, size_t count, void *record)
{
	for (size_t i = 0; i < count; i++) {
		void *at = (char *)record + fields[i].offset;

		if (fields[i].kind == KIND_TEXT)
			*(const char **)at = "";
		if (fields[i].kind == KIND_ESTIMATE)
			*(double *)at = NAN;
	}
}

/* Cuts KEY=VALUE in two, and returns the value. NULL if there is no '='. */
static char *cut_value(char *string)
{
	char *equals = strchr(string, '=');

	if (!equals)
		return NULL;
	*equals = '\0';
	return equals + 1;
}

static bool begins(const char *string, const char *with)
{
	return strncmp(string, with, strlen(with)) == 0;
}

/* Reads a key that is no field: it belongs to one of the lists, or to a newer version. */
static void read_list_item(struct control_list *list, struct control_process *process, char *key, char *value)
{
	if (begins(key, LOST) && process->loss_count < CONTROL_LOSSES_MAX) {
		const struct control_loss loss = {
		    key + strlen(LOST), *value == '-' ? 0 : strtoull(value, NULL, 10)};

		process->losses[process->loss_count++] = loss;
		list->loss_count++;
	} else if (begins(key, LABEL) && process->label_count < CONTROL_LABELS_MAX) {
		process->labels[process->label_count++] = (struct control_label){key + strlen(LABEL), value};
		list->label_count++;
	}
}

/* Reads a record into the struct. process: the same struct if the record is of a process, else NULL. */
static void read_record(struct control_list *list, struct strings *strings, const struct field *fields,
    size_t count, void *record, struct control_process *process)
{
	char *string, *value;

	begin_fields(fields, count, record);
	while ((string = next_string(strings)) && *string) {
		size_t i = 0;

		value = cut_value(string);
		if (!value)
			continue;
		while (i < count && strcmp(fields[i].key, string) != 0)
			i++;
		if (i < count)
			read_value(&fields[i], record, value);
		else if (process)
			read_list_item(list, process, string, value);
	}
}

static int read_process(struct control_list *list, struct strings *strings)
{
	if (list->process_count == CONTROL_PROCESSES_MAX)
		return -E2BIG;
	int error = array_reserve(
	    &list->processes, &list->process_capacity, list->process_count + 1, sizeof(*list->processes));
	if (error)
		return error;
	struct control_process *process = &list->processes[list->process_count++];
	*process = (struct control_process){
	    .losses = list->losses + list->loss_count, .labels = list->labels + list->label_count};
	read_record(list, strings, process_fields, ARRAY_COUNT(process_fields), process, process);
	return 0;
}

static int read_denied(struct control_list *list, struct strings *strings)
{
	int error = array_reserve(
	    &list->denied, &list->denied_capacity, list->denied_count + 1, sizeof(*list->denied));

	if (error)
		return error;
	struct control_denied *denied = &list->denied[list->denied_count++];
	memset(denied, 0, sizeof(*denied));
	read_record(list, strings, denied_fields, ARRAY_COUNT(denied_fields), denied, NULL);
	return 0;
}

static int read_note(struct control_list *list, struct strings *strings)
{
	static const struct field fields[] = {{"text", KIND_TEXT, 0}};
	int error =
	    array_reserve(&list->notes, &list->note_capacity, list->note_count + 1, sizeof(*list->notes));

	if (error)
		return error;
	read_record(list, strings, fields, 1, &list->notes[list->note_count++], NULL);
	return 0;
}

static int read_records(struct control_list *list, struct strings strings)
{
	char *name;
	int error = 0;

	while (!error && (name = next_string(&strings))) {
		if (strcmp(name, "daemon") == 0)
			read_record(
			    list, &strings, daemon_fields, ARRAY_COUNT(daemon_fields), &list->daemon, NULL);
		else if (strcmp(name, "process") == 0)
			error = read_process(list, &strings);
		else if (strcmp(name, "denied") == 0)
			error = read_denied(list, &strings);
		else if (strcmp(name, "note") == 0)
			error = read_note(list, &strings);
		else
			while (*name && (name = next_string(&strings)))
				;
		if (!name)
			break;
	}
	return error;
}

/* Makes room for the items of the lists of all processes. */
static int reserve_lists(struct control_list *list, struct strings strings)
{
	const char *string;
	size_t losses = 0, labels = 0;

	while ((string = next_string(&strings))) {
		losses += begins(string, LOST);
		labels += begins(string, LABEL);
	}
	list->losses = calloc(losses + 1, sizeof(*list->losses));
	list->labels = calloc(labels + 1, sizeof(*list->labels));
	return list->losses && list->labels ? 0 : -ENOMEM;
}

/* Makes each string safe to print on a terminal. */
static void disarm_strings(struct strings strings)
{
	char *string;

	while ((string = next_string(&strings)))
		utf8_disarm(string, strlen(string));
}

int control_list_parse(struct control_list *list, const void *bytes, size_t length)
{
	struct strings strings;

	memset(list, 0, sizeof(*list));
	begin_fields(daemon_fields, ARRAY_COUNT(daemon_fields), &list->daemon);
	if (length > CONTROL_LIST_BYTES_MAX)
		return -E2BIG;
	if (length && ((const char *)bytes)[length - 1])
		return -EPROTO;
	list->text = malloc(length + 1);
	if (!list->text)
		return -ENOMEM;
	memcpy(list->text, bytes, length);
	strings = (struct strings){list->text, list->text + length};
	disarm_strings(strings);
	int error = reserve_lists(list, strings);
	if (!error)
		error = read_records(list, strings);
	if (error)
		control_list_fini(list);
	return error;
}

void control_list_fini(struct control_list *list)
{
	free(list->processes);
	free(list->denied);
	free(list->notes);
	free(list->text);
	free(list->losses);
	free(list->labels);
	memset(list, 0, sizeof(*list));
}

/* The next string. "" at the end of a record, NULL at the end of the text. */
static const char *next_of_rows(struct control_rows *rows)
{
	const char *string = rows->at;
	const char *nul = string < rows->end ? memchr(string, '\0', (size_t)(rows->end - string)) : NULL;

	if (nul)
		rows->at = nul + 1;
	return nul ? string : NULL;
}

/* Parses a pid as a writer writes it. 0 for anything that two readers could read in two ways. */
static pid_t pid_of(const char *value)
{
	const size_t digits = strspn(value, "0123456789");
	const long pid = digits && digits <= 10 && !value[digits] ? strtol(value, NULL, 10) : 0;

	return pid <= INT_MAX ? (pid_t)pid : 0;
}

/* The value if the string has this key, else NULL. */
static const char *value_of(const char *string, const char *key)
{
	const size_t length = strlen(key);

	return strncmp(string, key, length) == 0 && string[length] == '=' ? string + length + 1 : NULL;
}

struct control_store control_rows_store(const struct control_rows *rows)
{
	struct control_rows left = *rows;
	struct control_store store = {.path = ""};
	const char *string = next_of_rows(&left), *value;

	if (!string || strcmp(string, "daemon") != 0)
		return store;
	while ((string = next_of_rows(&left)) && *string) {
		if ((value = value_of(string, "store")))
			store.path = value;
		else if ((value = value_of(string, "store_depth")))
			store.depth = (unsigned int)strtoul(value, NULL, 10);
		else if ((value = value_of(string, "store_since")))
			store.since_unix_ns = strtoll(value, NULL, 10);
	}
	return store;
}

int control_rows_next(struct control_rows *rows, struct control_row *row)
{
	const char *name, *string;

	while ((name = next_of_rows(rows))) {
		unsigned int said = 0;

		*row = (struct control_row){.text = name};
		for (string = name; string && *string; string = next_of_rows(rows)) {
			if (strncmp(string, "pid=", 4) != 0)
				continue;
			row->pid = said++ ? 0 : pid_of(string + 4);
		}
		if (!string)
			return 0;
		row->bytes = (size_t)(rows->at - name);
		if (strcmp(name, "process") == 0)
			return 1;
	}
	return 0;
}
