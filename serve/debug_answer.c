/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/debug_answer.h"

#include "pprof/analysis/merge.h"
#include "pprof/analysis/since.h"
#include "pprof/codec/encode.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "serve/blob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the plan */

#define TOO_LONG "profile duration exceeds server's WriteTimeout"

static bool refuse_plan(struct reply *reply, unsigned int status, const char *text)
{
	reply_go_error(reply, status, text);
	return false;
}

/* seconds= of everything but a CPU profile. */
static bool plan_difference(struct debug_plan *plan, const struct parameters *parameters, const char *text,
    bool supported, struct reply *reply)
{
	int64_t seconds;

	if (parameters_integer(text, &seconds) || seconds <= 0)
		return refuse_plan(reply, 400, "invalid value for \"seconds\" - must be a positive integer");
	if (!supported)
		return refuse_plan(
		    reply, 400, "\"seconds\" parameter is not supported for this profile type");
	if (seconds > DEBUG_SECONDS_MAX)
		return refuse_plan(reply, 400, TOO_LONG);
	if (parameters_integer_or_0(parameters, "debug") != 0)
		return refuse_plan(reply, 400, "seconds and debug params are incompatible");
	plan->kind = DEBUG_DIFFERENCE;
	plan->seconds = (uint32_t)seconds;
	return true;
}

static bool plan_cpu(struct debug_plan *plan, const struct parameters *parameters, struct reply *reply)
{
	const char *text = parameters_get(parameters, "seconds");
	int64_t seconds = 0;

	/* As in Go, where ParseInt fails for a number out of range. */
	if (!text || parameters_integer(text, &seconds) || seconds <= 0)
		seconds = DEBUG_CPU_SECONDS_DEFAULT;
	if (seconds > DEBUG_SECONDS_MAX)
		return refuse_plan(reply, 400, TOO_LONG);
	*plan = (struct debug_plan){.kind = DEBUG_CPU, .name = "profile", .seconds = (uint32_t)seconds};
	return true;
}

bool debug_answer_plan(
    struct debug_plan *plan, const char *name, const struct parameters *parameters, struct reply *reply)
{
	static const struct debug_plan plans[] = {
	    {.kind = DEBUG_HEAP, .name = "heap"},
	    {.kind = DEBUG_HEAP, .name = "allocs", .default_type = "alloc_space"},
	    {.kind = DEBUG_DELTA, .name = "delta_heap"},
	    {.kind = DEBUG_CMDLINE, .name = "cmdline"},
	    {.kind = DEBUG_SYMBOL, .name = "symbol"},
	};
	const char *seconds = parameters_get(parameters, "seconds");

	if (!*name) {
		*plan = (struct debug_plan){.kind = DEBUG_INDEX, .name = ""};
		return true;
	}
	if (strcmp(name, "profile") == 0)
		return plan_cpu(plan, parameters, reply);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		bool is_profile = plans[i].kind == DEBUG_HEAP || plans[i].kind == DEBUG_DELTA;

		if (strcmp(name, plans[i].name) != 0)
			continue;
		*plan = plans[i];
		if (is_profile && seconds && *seconds)
			return plan_difference(plan, parameters, seconds, plans[i].kind == DEBUG_HEAP, reply);
		plan->text = is_profile && parameters_integer_or_0(parameters, "debug") != 0;
		return true;
	}
	return refuse_plan(reply, 404, "Unknown profile");
}

/* ---- the difference of two profiles of one process */

enum { TYPES_MAX = 256 };

static int64_t negative_of(int64_t value)
{
	return value == INT64_MIN ? INT64_MAX : -value;
}

/* values: NULL, or what they are instead, samples by sample types. */
static int add_samples(struct profile *to, const struct profile *from, const int64_t *values, bool negative)
{
	size_t types = profile_sample_type_count(from), room = 0;
	int64_t row[TYPES_MAX];
	struct profile_label *labels = NULL;
	int err = 0;

	for (size_t i = 0; i < profile_sample_count(from) && !err; i++) {
		struct profile_sample sample = profile_sample(from, i);

		if (sample.label_count > room) {
			struct profile_label *grown =
			    reallocarray(labels, sample.label_count, sizeof(*labels));

			if (!grown) {
				err = -ENOMEM;
				break;
			}
			labels = grown;
			room = sample.label_count;
		}
		for (size_t j = 0; j < sample.label_count; j++)
			labels[j] = profile_sample_label(from, i, j);
		for (size_t t = 0; t < types; t++) {
			row[t] = values ? values[i * types + t] : sample.values[t];
			row[t] = negative ? negative_of(row[t]) : row[t];
		}
		err = profile_add_sample(to, sample.locations, sample.depth, row, labels, sample.label_count);
	}
	free(labels);
	return err;
}

static int copy(const struct profile *from, const int64_t *values, bool negative, struct profile **out)
{
	struct profile *to = profile_new();
	int err = to ? 0 : -ENOMEM;

	if (!err && profile_sample_type_count(from) > TYPES_MAX)
		err = -EOVERFLOW;
	if (!err) {
		profile_copy_header(to, from);
		profile_copy_tables(to, from);
		err = profile_error(to);
	}
	if (!err)
		err = add_samples(to, from, values, negative);
	if (err) {
		profile_free(to);
		return err;
	}
	profile_compute_mapping_flags(to);
	*out = to;
	return 0;
}

/* Of all values, which may become negative. */
static int subtract(struct profile *first, struct profile *last, struct profile **out)
{
	struct profile *negative, *pair[2] = {last};
	size_t culprit;
	int err = copy(first, NULL, true, &negative);

	if (err)
		return err;
	pair[1] = negative;
	err = merge_profiles(pair, 2, false, out, &culprit);
	profile_free(negative);
	return err;
}

static int make_since(const struct since *since, const struct profile *last, struct profile **out)
{
	struct origin origin;
	int64_t fallen, *values;
	int err;

	origin_read(&origin, last);
	values = since_values(since, last, &origin, &fallen);
	err = values ? copy(last, values, false, out) : -ENOMEM;
	free(values);
	return err;
}

int debug_answer_difference(
    struct profile *first, struct profile *last, bool totals_only, bool unknown, struct profile **out)
{
	const struct since since = {.first = first, .unknown = unknown};
	int64_t began_ns = first ? profile_time_ns(first) : 0, time_ns = profile_time_ns(last);
	int err = first && !totals_only ? subtract(first, last, out) : make_since(&since, last, out);

	if (err)
		return err;
	/* A duration above 0 says that the profile is a difference. */
	profile_set_time(*out, time_ns, began_ns && time_ns > began_ns ? time_ns - began_ns : 1);
	profile_set_default_sample_type(*out, profile_default_sample_type(last));
	err = profile_error(*out);
	if (err)
		profile_free(*out);
	return err;
}

/* ---- the answer */

#define MEMORY_MAX ((size_t)512 << 20) /* of all profiles of an answer */

void debug_answer_file(struct reply *reply, const char *name, struct blob *body)
{
	reply_bytes(reply, 200, REPLY_PROFILE, body);
	if (reply->body)
		reply_header(reply, "Content-Disposition", "attachment; filename=\"%s\"", name);
}

static void refuse(struct reply *reply, int err, const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", what,
	    err == -ENODATA       ? "the profiles have nothing in common"
	        : err == -EBADMSG ? "no valid profile"
	        : err == -EFBIG   ? "the profiles take too much memory"
	                          : strerror(-err));
	reply_go_error(reply, 500, text);
}

/* Makes the profile of one process. */
static int make_one(const struct debug_plan *plan, const struct debug_input *input,
    struct blob_budget *budget, struct profile **profile)
{
	const size_t before_bytes = budget->left_bytes;
	struct profile *first = NULL, *last = NULL;
	int err = blob_decode(input->last, budget, &last);
	size_t made;
	bool differs = plan->kind == DEBUG_DIFFERENCE || plan->kind == DEBUG_DELTA;

	if (err || !differs) {
		*profile = last;
		return err;
	}
	if (input->first)
		err = blob_decode(input->first, budget, &first);
	if (!err)
		err =
		    debug_answer_difference(first, last, plan->kind == DEBUG_DELTA, input->unknown, profile);
	profile_free(first);
	profile_free(last);
	if (err)
		return err;
	made = profile_bytes(*profile); /* both inputs are freed */
	budget->left_bytes = made < before_bytes ? before_bytes - made : 0;
	return 0;
}

/* Makes the profile of all processes: their sum, with the comments of all. */
static int make_all(
    const struct debug_plan *plan, const struct debug_input *inputs, size_t count, struct profile **profile)
{
	struct profile **each = calloc(count, sizeof(struct profile *));
	struct blob_budget budget = {MEMORY_MAX, BLOB_FOREIGN_BYTES};
	size_t made = 0, culprit;
	int err = each ? 0 : -ENOMEM;

	while (!err && made < count) {
		err = make_one(plan, &inputs[made], &budget, &each[made]);
		made += !err;
	}
	if (!err && count == 1) {
		*profile = each[0];
		made = 0;
	} else if (!err) {
		err = merge_profiles(each, count, false, profile, &culprit);
	}
	for (size_t i = 0; i < made; i++)
		profile_free(each[i]);
	free(each);
	return err;
}

int debug_answer_encode(const struct profile *profile, struct blob **blob)
{
	uint8_t *raw, *packed;
	size_t raw_bytes, packed_bytes;
	int err = encode_profile(profile, &raw, &raw_bytes);

	if (err)
		return err;
	err = gzip_encode(raw, raw_bytes, GZIP_LEVEL_FAST, &packed, &packed_bytes);
	free(raw);
	if (err)
		return err;
	*blob = blob_new(packed, packed_bytes);
	return *blob ? 0 : -ENOMEM;
}

static void answer_profile(struct reply *reply, const struct debug_plan *plan, struct profile *profile)
{
	char name[32];
	struct blob *blob;
	int err;

	if (plan->default_type)
		profile_set_default_sample_type(profile, plan->default_type);
	err = debug_answer_encode(profile, &blob);
	if (err) {
		refuse(reply, err, "no profile can be made");
		return;
	}
	snprintf(name, sizeof(name), "%s%s", plan->name, plan->kind == DEBUG_DIFFERENCE ? "-delta" : "");
	debug_answer_file(reply, name, blob);
}

static void answer_text(
    struct reply *reply, const struct debug_plan *plan, const struct profile *profile, const char *query)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int err = out ? 0 : -ENOMEM;

	if (!err && plan->kind == DEBUG_SYMBOL)
		err = debug_answer_write_symbols(out, query, profile);
	else if (!err && !debug_answer_write_heap(out, profile))
		debug_answer_write_any(out, profile);
	if (out && fclose(out) && !err)
		err = -ENOMEM;
	if (!err) {
		reply_bytes(reply, 200, REPLY_TEXT, blob_new(text, length));
		return;
	}
	free(text);
	refuse(reply, err, "no text can be made");
}

void debug_answer_make(struct reply *reply, const struct debug_plan *plan, const struct debug_input *inputs,
    size_t count, const char *query)
{
	struct profile *profile;
	int err;

	/* Unchanged: the sampler's bytes. */
	if (count == 1 && (plan->kind == DEBUG_HEAP || plan->kind == DEBUG_CPU) && !plan->text &&
	    !plan->default_type) {
		debug_answer_file(reply, plan->name, blob_hold(inputs[0].last));
		return;
	}
	err = make_all(plan, inputs, count, &profile);
	if (err) {
		refuse(reply, err, "no profile can be made");
		return;
	}
	if (plan->text || plan->kind == DEBUG_SYMBOL)
		answer_text(reply, plan, profile, query);
	else
		answer_profile(reply, plan, profile);
	profile_free(profile);
}

static const struct {
	const char *name, *link, *text;
} descriptions[] = {
    {"allocs", "allocs?debug=1", "All memory that was ever allocated, by where it was; also what is in use"},
    {"cmdline", "cmdline?debug=1", "The command line of the process"},
    {"delta_heap", "delta_heap", "What was allocated since the same client asked the last time"},
    {"heap", "heap?debug=1",
        "Memory in use, by where it was allocated. With seconds=N, what changes within N seconds"},
    {"profile", "profile",
        "CPU profile. seconds=N says for how long. The file is for the command go tool pprof"},
    {"symbol", "symbol", "Names of the addresses that follow, for pprof: symbol?0x4005d0+0x4005e0"},
};

void debug_answer_index(struct reply *reply, const char *title)
{
	char *text = NULL;
	size_t length = 0, count = sizeof(descriptions) / sizeof(descriptions[0]);
	FILE *out = open_memstream(&text, &length);

	if (out) {
		fprintf(out,
		    "<html>\n<head>\n<title>/debug/pprof/</title>\n<style>\n.profile-name{\n"
		    "\tdisplay:inline-block;\n\twidth:6rem;\n}\n</style>\n</head>\n<body>\n/debug/pprof/"
		    "\n<br>\n"
		    "<p>%s</p>\nTypes of profiles available:\n<table>\n"
		    "<thead><td>Count</td><td>Profile</td></thead>\n",
		    title);
		for (size_t i = 0; i < count; i++)
			fprintf(out, "<tr><td></td><td><a href='%s'>%s</a></td></tr>\n", descriptions[i].link,
			    descriptions[i].name);
		fputs("</table>\n<br>\n<p>\nProfile Descriptions:\n<ul>\n", out);
		for (size_t i = 0; i < count; i++)
			fprintf(out, "<li><div class=profile-name>%s: </div> %s</li>\n", descriptions[i].name,
			    descriptions[i].text);
		fputs("</ul>\n</p>\n</body>\n</html>", out);
	}
	if (out && fclose(out) == 0)
		reply_bytes(reply, 200, "text/html; charset=utf-8", blob_new(text, length));
	else
		reply_bytes(reply, 500, REPLY_TEXT, NULL);
}
