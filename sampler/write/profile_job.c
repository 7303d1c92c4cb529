/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/profile_job.h"

#include "pprof/codec/encode.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/origin.h"
#include "sampler/symbol/debuginfod.h"
#include "sampler/symbol/symbol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

/* ---- comments */

void profile_job_comment(struct profile *profile, const char *format, ...)
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

bool profile_job_text_open(struct profile_job_text *text)
{
	*text = (struct profile_job_text){0};
	text->out = open_memstream(&text->text, &text->bytes);
	return text->out != NULL;
}

void profile_job_text_add(struct profile_job_text *text, struct profile *profile)
{
	if (fclose(text->out) == 0)
		profile_add_comment(profile, text->text);
	free(text->text);
}

void profile_job_print_outcomes(FILE *out, const uint64_t outcomes[UNWIND_COUNTS])
{
	for (uint32_t i = 0; i < UNWIND_COUNTS; i++)
		if (outcomes[i] && i != UNWIND_COMPLETE)
			fprintf(
			    out, ", %s %" PRIu64, unwind_outcome_name((enum unwind_outcome)i), outcomes[i]);
}

/* ---- writing */

static struct symbolizer *name_stacks(struct profile *profile, const struct snapshot *snapshot,
    const struct profile_job *job, struct symbols *symbols)
{
	const struct target *target = snapshot->target;
	const struct symbolizer_source source = {
	    .stacks = target->stacks,
	    .maps = target->maps,
	    .program = target->name,
	    .called = target->called[0] ? target->called : NULL,
	    .perf_map = &target->generated.perf_map,
	    .jitdump = &target->generated.jitdump,
	    .symbols = symbols,
	    .detail = snapshot->item.detail,
	    .allocator_stays = job->kind->allocator_stays,
	};
	bool *used = calloc(stacks_node_count(target->stacks), sizeof(*used));

	if (!used)
		return NULL;
	job->kind->mark_stacks(job, used);
	struct symbolizer *symbolizer = symbolizer_new(profile, &source, used);
	free(used);
	return symbolizer;
}

static int fill(struct profile *profile, const struct snapshot *snapshot, const struct profile_job *job,
    struct symbols *symbols)
{
	char fetched[512];

	profile_job_comment(profile, "heaptap " HEAPTAP_VERSION);
	profile_job_comment(profile, "pid=%d comm=%s host=%s", (int)snapshot->target->pid,
	    snapshot->target->title, snapshot->host);
	if (snapshot->target->full_name[0])
		profile_job_comment(profile, ORIGIN_NAME "%s", snapshot->target->full_name);
	if (snapshot->identity[0])
		profile_add_comment(profile, snapshot->identity);
	job->kind->describe(profile, snapshot, job);
	struct symbolizer *symbolizer = name_stacks(profile, snapshot, job, symbols);
	if (!symbolizer)
		return -ENOMEM;
	if (snapshot->debuginfod && debuginfod_describe(fetched, sizeof(fetched)))
		profile_add_comment(profile, fetched);
	int error = job->kind->fill_rows(profile, symbolizer, snapshot, job);
	symbolizer_free(symbolizer);
	profile_compute_mapping_flags(profile);
	return error;
}

static int write_job(const struct snapshot *snapshot, const struct profile_job *job, struct symbols *symbols)
{
	struct profile *profile = profile_new();
	uint8_t *raw = NULL, *packed = NULL;
	size_t raw_bytes, packed_bytes;

	if (!profile)
		return -ENOMEM;
	int error = fill(profile, snapshot, job, symbols);
	if (!error)
		error = encode_profile(profile, &raw, &raw_bytes);
	if (!error)
		error = gzip_encode(raw, raw_bytes,
		    snapshot->kind == SNAPSHOT_EXIT ? GZIP_LEVEL_SMALL : GZIP_LEVEL_FAST, &packed,
		    &packed_bytes);
	if (!error)
		error = snapshot->sink->publish(snapshot->sink, job->path, packed, packed_bytes);
	free(raw);
	free(packed);
	profile_free(profile);
	return error;
}

int profile_jobs_write(
    const struct snapshot *snapshot, const struct profile_job *const jobs[], size_t count, void **shared)
{
	if (!*shared)
		*shared = symbolizer_symbols(snapshot->item.detail, snapshot->debuginfod);
	struct symbols *symbols = *shared;
	int first = symbols ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && symbols; i++) {
		int error = jobs[i]->path ? write_job(snapshot, jobs[i], symbols) : 0;

		first = first ? first : error;
	}
	return first;
}
