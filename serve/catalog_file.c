/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog_file.h"

#include "pprof/codec/decode.h"
#include "pprof/profile/labels.h"
#include "pprof/profile/profile.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy(char *to, size_t room, const char *from)
{
	size_t length = strlen(from);

	if (length >= room)
		length = utf8_valid_prefix(from, room - 1);
	memcpy(to, from, length);
	to[length] = '\0';
}

static void note(struct catalog_file *file, const struct origin *origin)
{
	const char *slash = strrchr(file->path, '/');

	file->kind = origin->kind;
	file->pid = origin->pid;
	copy(file->program, sizeof(file->program),
	    origin->program[0] ? origin->program
	        : slash        ? slash + 1
	                       : file->path);
	copy(file->name, sizeof(file->name), origin->name[0] ? origin->name : file->program);
	copy(file->host, sizeof(file->host), origin->host);
	copy(file->session, sizeof(file->session), origin->session);
	copy(file->event, sizeof(file->event), origin->event);
	copy(file->cause, sizeof(file->cause), origin->merged[0] ? origin->merged : origin->cause);
	file->session_ns = origin->session_ns;
	file->start_ns = origin->start_ns;
	file->time_ns = origin->time_ns ? origin->time_ns : file->mtime_ns;
	file->duration_ns = origin->duration_ns;
	if (!origin_has_process(origin)) { /* a sum, or another tool's: a process of its own */
		file->pid = 0;
		file->start_ns = 0;
	}
}

/* As the daemon's profiles have it. */
static void note_service(struct catalog_file *file, const struct profile *profile)
{
	struct labels labels = {0};
	const char *service;

	for (size_t i = 0; i < profile_comment_count(profile); i++) {
		const char *text = profile_comment(profile, i);

		if (strncmp(text, LABELS_COMMENT, strlen(LABELS_COMMENT)) != 0)
			continue;
		if (labels_add_comment(&labels, text + strlen(LABELS_COMMENT)))
			break;
	}
	service = labels_find(&labels, "service_name");
	copy(file->service, sizeof(file->service), service ? service : "");
	labels_fini(&labels);
}

int catalog_file_read(struct catalog_file *file, const struct blob *bytes)
{
	const struct api_query all = {.max_bytes = CATALOG_FILE_MEMORY};
	struct origin *origin = malloc(sizeof(*origin));
	struct profile *profile;

	if (!origin)
		return -ENOMEM;
	if (decode_profile(bytes->bytes, bytes->length, CATALOG_FILE_MEMORY, &profile) != DECODE_OK) {
		free(origin);
		return -EINVAL;
	}
	origin_read(origin, profile);
	note(file, origin);
	note_service(file, profile);
	if (!catalog_file_is_heap(file) || api_point_make(&file->point, profile, &all))
		file->point.time_ns = 0;
	profile_free(profile);
	free(origin);
	return 0;
}

void catalog_file_free(struct catalog_file *file)
{
	if (file)
		free(file->path);
	free(file);
}

const char *catalog_file_kind(const struct catalog_file *file)
{
	if (file->event[0])
		return file->event;
	return file->kind == ORIGIN_PEAK ? "peak" : file->kind == ORIGIN_DELTA ? "delta" : "live";
}

bool catalog_file_is_heap(const struct catalog_file *file)
{
	return file->kind == ORIGIN_LIVE && !file->event[0];
}

bool catalog_file_is_state(const struct catalog_file *file)
{
	return file->state == CATALOG_FILE_READ && catalog_file_is_heap(file);
}

bool catalog_file_is_last(const struct catalog_file *file)
{
	return strncmp(file->cause, "exit", 4) == 0 || strncmp(file->cause, "detach", 6) == 0;
}
