/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_file.h"

#include "pprof/analysis/excerpt.h"
#include "pprof/analysis/merge.h"
#include "pprof/analysis/thread_names.h"
#include "pprof/profile/profile.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"
#include "serve/debug_answer.h"
#include "serve/decoded.h"
#include "serve/parameters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME  "profile.pb.gz"
#define MEMORY_MAX ((size_t)512 << 20)

struct file {
	const struct api_question *question;
	struct parameters parameters;
	struct api_query query;
	struct profile **profiles;
	size_t count;
	char error[512];
};

static const char *get(const void *context, const char *name)
{
	return parameters_get(context, name);
}

/* ---- from profiles to one */

static int decode_all(struct file *file)
{
	struct decoded_budget budget = {MEMORY_MAX, DECODED_FOREIGN_BYTES};
	int err = 0;

	file->profiles = calloc(file->question->count + 1, sizeof(struct profile *));
	if (!file->profiles)
		return -ENOMEM;
	while (file->count < file->question->count && !err) {
		err = decoded_make(file->question->blobs[file->count], &budget, &file->profiles[file->count]);
		file->count += !err;
	}
	return err;
}

/* One profile with the label is enough: a process that has freed everything has no ages. */
static int check_labels(struct file *file)
{
	const char *missing = NULL;

	for (size_t i = 0; i < file->count; i++) {
		missing = filter_missing_label(&file->query.filter, file->profiles[i]);
		if (!missing)
			return 0;
	}
	if (!missing)
		return 0;
	snprintf(file->error, sizeof(file->error), "no sample has the label %s; record with --labels %s",
	    missing, missing);
	return -EINVAL;
}

/* Each by what is selected of it. */
static int select_all(struct file *file)
{
	struct late_names names = {0};
	int err = check_labels(file);

	for (size_t i = 0; i < file->count && !err && file->query.filter.thread; i++)
		err = thread_names_learn(&names, file->profiles[i]);
	for (size_t i = 0; i < file->count && !err; i++) {
		struct profile *part;

		err = excerpt_make(file->profiles[i], &file->query.filter, &names, &part);
		if (err)
			break;
		profile_free(file->profiles[i]);
		file->profiles[i] = part;
	}
	late_names_fini(&names);
	return err;
}

/* A comment, so that nobody takes the part for the state of a process. */
static void describe(struct profile *profile, const struct parameters *parameters)
{
	static const char *const names[] = {"focus", "ignore", "hide", "module", "thread", "size", "age"};
	char text[1024] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = parameters_get(parameters, names[i]);

		if (value && *value)
			text_append(text, sizeof(text), "%s %s=%s",
			    *text ? "" : "merged: what these filters select:", names[i], value);
	}
	utf8_disarm(text, strlen(text));
	profile_add_comment(profile, text);
}

static int make(struct file *file, struct blob **blob)
{
	struct profile *sum = NULL;
	const bool whole = api_query_selects_all(&file->query);
	size_t culprit;
	int err = decode_all(file);

	if (!err && !whole)
		err = select_all(file);
	if (err)
		return err;
	err = merge_profiles(file->profiles, file->count, false, &sum, &culprit);
	if (err == -ENODATA)
		snprintf(file->error, sizeof(file->error), "the profiles have no sample type in common");
	if (err)
		return err;
	if (!whole)
		describe(sum, &file->parameters);
	err = profile_error(sum);
	if (!err)
		err = debug_answer_encode(sum, blob);
	profile_free(sum);
	return err;
}

/* ---- the reply */

static void refuse(struct reply *reply, const struct file *file, int err)
{
	api_answer_refuse(reply, err,
	    *file->error          ? file->error
	        : err == -EBADMSG ? "no valid profile"
	        : err == -EFBIG   ? "the profiles take too much memory"
	                          : "");
}

void api_file_make(struct reply *reply, const struct api_question *question)
{
	struct file file = {.question = question};
	struct blob *blob = NULL;
	int err;

	if (parameters_parse(&file.parameters, question->query)) {
		api_answer_refuse(reply, -ENOMEM, "");
		return;
	}
	err = api_query_parse(&file.query, get, &file.parameters, file.error, sizeof(file.error));
	if (!err && question->count == 1 && api_query_selects_all(&file.query))
		blob = blob_hold(question->blobs[0]);
	else if (!err)
		err = make(&file, &blob);
	if (err)
		refuse(reply, &file, err);
	else
		debug_answer_file(reply, FILE_NAME, blob);
	for (size_t i = 0; i < file.count; i++)
		profile_free(file.profiles[i]);
	free(file.profiles);
	api_query_fini(&file.query);
	parameters_fini(&file.parameters);
}
