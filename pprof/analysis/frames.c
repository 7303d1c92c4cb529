/* SPDX-License-Identifier: Apache-2.0 */
/* The table of frames: what a frame is called, and which frames count as one. */
#include "pprof/analysis/frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/filter.h"
#include "pprof/model/anonymous.h"
#include "pprof/table/array.h"
#include "pprof/text/short_name.h"

void frames_fini(struct frames *f)
{
	intern_fini(&f->strings);
	index_fini(&f->index);
	free(f->rows);
}

static const char *intern(struct frames *f, const char *text)
{
	uint32_t number;

	return intern_add(&f->strings, text, strlen(text), &number) ? NULL : intern_at(&f->strings, number);
}

/* The file's name without its folders. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Interned strings are equal if their pointers are. */
static int find_or_append(struct frames *f, const struct frames_row *frame, uint32_t *number)
{
	uint64_t hash = index_seed();
	size_t cursor;
	uint32_t id, fold;

	hash = index_mix(hash, (uintptr_t)frame->name);
	hash = index_mix(hash, f->lines ? (uintptr_t)frame->file : 0);
	hash = index_mix(hash, f->lines ? (uint64_t)frame->line : 0);
	fold = index_fold(hash);
	cursor = index_start(fold);
	while ((id = index_next(&f->index, fold, &cursor))) {
		struct frames_row *old = &f->rows[id - 1];

		if (old->name == frame->name &&
		    (!f->lines || (old->file == frame->file && old->line == frame->line))) {
			/* A function that is in several files matches a filter if one of the files does. */
			old->marks |= frame->marks;
			*number = id - 1;
			return 0;
		}
	}
	if (f->count == UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&f->rows, &f->capacity, (size_t)f->count + 1, sizeof(*f->rows)) ||
	    index_add(&f->index, fold, f->count + 1))
		return -ENOMEM;
	f->rows[f->count] = *frame;
	*number = f->count++;
	return 0;
}

/* The short form of a name, in memory of its own. NULL if there is no memory. */
static char *shorten(const char *name)
{
	size_t length = strlen(name);
	char *text = malloc(length + 1);

	if (text)
		short_name(name, length, text);
	return text;
}

static int name_set(struct frames *f, struct frames_row *frame, const char *name, const char *brief)
{
	frame->name = intern(f, f->names == FRAMES_SHORT ? brief : name);
	frame->label = f->names == FRAMES_LABELS ? intern(f, brief) : frame->name;
	return frame->name && frame->label ? 0 : -ENOMEM;
}

/* Filters match what the profile says and its short form, as it is shown; not hashes. */
int frames_add(
    struct frames *f, const char *name, const char *file, const char *module, int64_t line, uint32_t *number)
{
	struct frames_row frame = {.line = f->lines ? line : 0};
	char bare[256], hashed[3][ANONYMOUS_BYTES], *brief = shorten(name);
	int err;

	if (!brief)
		return -ENOMEM;
	frame.role = (uint8_t)frame_role(name, brief, module);
	if (f->filter)
		frame.marks = filter_frame(f->filter, name, file, module) |
		    (strcmp(name, brief) ? filter_frame(f->filter, brief, file, module) : 0);
	if (f->anonymize) {
		name = anonymous_name('f', name, hashed[0]);
		file = anonymous_name('s', file, hashed[1]);
		module = anonymous_name('m', module, hashed[2]);
	}
	if (!*name && *module)
		snprintf(bare, sizeof(bare), *module == '[' ? "%s" : "[%s]", base_name(module));
	if (!*name)
		name = *module ? bare : "<unknown>";
	frame.file = intern(f, file);
	frame.module = intern(f, module);
	err = name_set(f, &frame, name, *brief && !f->anonymize ? brief : name);
	free(brief);
	return err || !frame.file || !frame.module ? -ENOMEM : find_or_append(f, &frame, number);
}
