/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/sheet.h"

#include "pprof/codec/encode.h"
#include "pprof/codec/gzip.h"
#include "pprof/profile/origin.h"
#include "sampler/symbol/debuginfod.h"
#include "sampler/symbol/symbol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

/* ---- comments */

void sheet_comment(struct profile *profile, const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	profile_add_comment(profile, text);
	free(text);
}

bool sheet_text_open(struct sheet_text *text)
{
	*text = (struct sheet_text){0};
	text->out = open_memstream(&text->text, &text->bytes);
	return text->out != NULL;
}

void sheet_text_add(struct sheet_text *text, struct profile *profile)
{
	if (fclose(text->out) == 0)
		profile_add_comment(profile, text->text);
	free(text->text);
}

void sheet_print_outcomes(FILE *out, const uint64_t outcomes[UNWIND_COUNTS])
{
	for (uint32_t i = 0; i < UNWIND_COUNTS; i++)
		if (outcomes[i] && i != UNWIND_COMPLETE)
			fprintf(
			    out, ", %s %" PRIu64, unwind_outcome_name((enum unwind_outcome)i), outcomes[i]);
}

/* ---- writing */

static struct symbolizer *name_stacks(
    struct profile *profile, const struct snapshot *s, const struct sheet *sheet, struct symbols *symbols)
{
	const struct target *target = s->target;
	const struct symbolizer_source source = {
	    .stacks = target->stacks,
	    .maps = target->maps,
	    .program = target->name,
	    .called = target->called[0] ? target->called : NULL,
	    .perf_map = &target->perf_map,
	    .jitdump = &target->jitdump,
	    .symbols = symbols,
	    .detail = s->item.detail,
	    .allocator_stays = sheet->kind->allocator_stays,
	};
	bool *used = calloc(stacks_node_count(target->stacks), sizeof(*used));

	if (!used)
		return NULL;
	sheet->kind->mark_stacks(sheet, used);
	struct symbolizer *symbolizer = symbolizer_new(profile, &source, used);
	free(used);
	return symbolizer;
}

static int fill(
    struct profile *profile, const struct snapshot *s, const struct sheet *sheet, struct symbols *symbols)
{
	char fetched[512];

	sheet_comment(profile, "heaptap " HEAPTAP_VERSION);
	sheet_comment(profile, "pid=%d comm=%s host=%s", (int)s->target->pid, s->target->title, s->host);
	if (s->target->full_name[0])
		sheet_comment(profile, ORIGIN_NAME "%s", s->target->full_name);
	if (s->identity[0])
		profile_add_comment(profile, s->identity);
	sheet->kind->describe(profile, s, sheet);
	struct symbolizer *symbolizer = name_stacks(profile, s, sheet, symbols);
	if (!symbolizer)
		return -ENOMEM;
	if (s->debuginfod && debuginfod_describe(fetched, sizeof(fetched)))
		profile_add_comment(profile, fetched);
	int error = sheet->kind->fill_rows(profile, symbolizer, s, sheet);
	symbolizer_free(symbolizer);
	profile_compute_mapping_flags(profile);
	return error;
}

static int write_sheet(const struct snapshot *s, const struct sheet *sheet, struct symbols *symbols)
{
	struct profile *profile = profile_new();
	uint8_t *raw = NULL, *packed = NULL;
	size_t raw_bytes, packed_bytes;

	if (!profile)
		return -ENOMEM;
	int error = fill(profile, s, sheet, symbols);
	if (!error)
		error = encode_profile(profile, &raw, &raw_bytes);
	if (!error)
		error = gzip_encode(raw, raw_bytes,
		    s->kind == SNAPSHOT_EXIT ? GZIP_LEVEL_SMALL : GZIP_LEVEL_FAST, &packed, &packed_bytes);
	if (!error)
		error = s->sink->publish(s->sink, sheet->path, packed, packed_bytes);
	free(raw);
	free(packed);
	profile_free(profile);
	return error;
}

int sheets_write(const struct snapshot *s, const struct sheet *const sheets[], size_t count, void **shared)
{
	if (!*shared)
		*shared = symbolizer_symbols(s->item.detail, s->debuginfod);
	struct symbols *symbols = *shared;
	int first = symbols ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && symbols; i++) {
		int error = sheets[i]->path ? write_sheet(s, sheets[i], symbols) : 0;

		first = first ? first : error;
	}
	return first;
}
