/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap merge: several profiles added up into one profile. */
#include "pprof/analysis/merge.h"
#include "pprof/codec/file.h"
#include "pprof/model/profile.h"
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/report/process_set.h"
#include "sampler/cmd/report/profile_files.h"
#include "sampler/cmd/report/selection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_comment(struct profile *merged, const char *what)
{
	char text[1024];

	snprintf(text, sizeof(text), "merged: %s", what);
	profile_add_comment(merged, text);
}

/* Says what was added up, to the user and in a comment: else a reader takes the sum for one process. */
static int describe(
    const struct profile_files *files, const struct selection *s, char *text, size_t text_bytes)
{
	const struct origin **origins = calloc(s->count + 1, sizeof(*origins));
	struct process_set set;
	int err = origins ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->count && !err; i++)
		origins[i] = files->origins[s->pairs[i].file];
	if (!err)
		err = process_set_make(&set, origins, s->count, s->process_count);
	free(origins);
	if (err)
		return err;
	text[0] = '\0';
	text_append(text, text_bytes, "%zu %s%s of %zu process%s: %s", s->count,
	    s->state == READ_DELTA ? "delta" : "profile", s->count == 1 ? "" : "s", s->process_count,
	    s->process_count == 1 ? "" : "es", set.programs);
	if (*set.samples)
		text_append(text, text_bytes, ORIGIN_MERGED_SAMPLES "%s", set.samples);
	return 0;
}

/* Nothing if each file is of another process. */
static void say(const struct selection *s, const char *what)
{
	const char *state = s->state == READ_PEAK ? "peak" : "newest";

	if (s->left || s->session_count > 1 || s->count > s->process_count)
		log_line("merged: %s", what);
	if (s->left)
		log_line(
		    "left out: %zu other profile%s of the same process%s: the %s counts (--state all adds "
		    "all up, --state delta the deltas)",
		    s->left, s->left == 1 ? "" : "s", s->process_count == 1 ? "" : "es", state);
}

static int merge_selected(
    const struct profile_files *files, const struct selection *s, const struct options *options)
{
	struct profile **profiles = calloc(s->count + 1, sizeof(struct profile *)), *merged = NULL;
	size_t culprit = 0;
	char what[512];
	int err = profiles ? describe(files, s, what, sizeof(what)) : -ENOMEM;

	for (size_t i = 0; i < s->count && !err; i++)
		profiles[i] = files->files[s->pairs[i].file].profile;
	if (!err)
		err = merge_profiles(profiles, s->count, options->read.anonymize, &merged, &culprit);
	free(profiles);
	if (err == -ENODATA)
		log_line("%s cannot be merged with %s: they have no sample type in common, or different "
		         "period types",
		    files->files[s->pairs[culprit].file].path, files->files[s->pairs[0].file].path);
	else if (err)
		log_line("cannot merge: %s", strerror(-err));
	if (err)
		return 1;
	if (!options->read.anonymize && s->count > 1)
		add_comment(merged, what);
	err = profile_files_write(merged, options->output, FILE_FOLLOW);
	profile_free(merged);
	if (!err)
		say(s, what);
	return err ? 1 : 0;
}

/* Files that the user names are added up whatever their session is; of a folder only the newest session. The
 * merged profile may be as large as all inputs together. */
int merge_run(struct options *options)
{
	const struct profile_files_choice whole = {.half_memory = true};
	struct selection_choice choice = {
	    .state = options->read.state, .session = options->read.session, .one_column = true};
	struct selection selection = {0};
	struct profile_files files;
	int status;

	if (!options->output && isatty(STDOUT_FILENO)) {
		log_line("a profile is not for a terminal: use -o FILE, or redirect the output");
		return STATUS_USAGE;
	}
	status = profile_files_read(&files, options, &whole);
	if (!files.operands.has_folder && choice.session == SESSION_DEFAULT)
		choice.session = SESSION_ALL;
	if (!status)
		status = profile_files_select(&files, 0, files.count, &choice, &selection);
	if (status == -ERANGE)
		status = profile_files_say_no_session(choice.session, selection.session_count);
	if (!status)
		status = merge_selected(&files, &selection, options);
	selection_fini(&selection);
	profile_files_fini(&files);
	return status;
}
