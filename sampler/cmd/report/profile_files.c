/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/profile_files.h"

#include "pprof/analysis/traces.h"
#include "pprof/codec/decode.h"
#include "pprof/codec/encode.h"
#include "pprof/codec/file.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/profile.h"
#include "pprof/model/sample_types.h"
#include "pprof/store/exit_code.h"
#include "pprof/store/store_list.h"
#include "pprof/table/index.h"
#include "pprof/text/amount.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/cmd/report/nothing.h"
#include "sampler/cmd/report/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 3, ERROR_BYTES = 1024 };

/* ---- reading */

/* Adds the profile's memory to *held_bytes. 0, or -errno with a line in `error`. */
static int file_read_profile(const char *path, const struct read_options *read,
    const struct profile_files_choice *choice, size_t *held_bytes, struct profile **profile,
    char error[ERROR_BYTES])
{
	char limit[AMOUNT_BYTES];
	size_t most = (size_t)(choice->half_memory ? read->memory_max_bytes / 2 : read->memory_max_bytes);
	int err = decode_file(path, *held_bytes < most ? most - *held_bytes : 0, profile, error, ERROR_BYTES);

	if (err == -EFBIG)
		text_append(error, ERROR_BYTES, ": more than %s; allow more with --max-memory",
		    amount_bytes((double)read->memory_max_bytes, limit));
	else if (!err)
		*held_bytes += profile_bytes(*profile);
	return err;
}

/* Files that are not profiles, for one line about all of them. */
struct passed_over {
	char names[512], error[ERROR_BYTES]; /* error: of the first */
	size_t count;
};

static void pass_over(struct passed_over *passed, const char *path, const char *error)
{
	if (!passed->count++ && error)
		snprintf(passed->error, sizeof(passed->error), "%s", error);
	if (passed->count <= NAMES_SHOWN)
		text_append(
		    passed->names, sizeof(passed->names), "%s%s", passed->count > 1 ? ", " : "", path);
}

static void say_passed_over(const struct passed_over *passed)
{
	if (passed->count > NAMES_SHOWN)
		log_line(
		    "not profiles, passed over: %s and %zu more", passed->names, passed->count - NAMES_SHOWN);
	else if (passed->count)
		log_line(
		    "not %s, passed over: %s", passed->count == 1 ? "a profile" : "profiles", passed->names);
}

static void say_later_peaks(const struct passed_over *peaks)
{
	if (peaks->count)
		log_line("left out: %s%s, the peak%s came later", peaks->names,
		    peaks->count > NAMES_SHOWN ? ", ..." : "", peaks->count == 1 ? "" : "s");
}

/* Says how a daemon's store is read, if the folder is one. */
static bool say_store(const char *folder)
{
	struct store_list list;

	if (store_list_read(&list, folder, NULL, false) != 0)
		return false;
	const size_t count = list.service_count;
	if (count)
		log_line("%s is a daemon's store: heaptap report --store %s %s%s", folder, folder,
		    count == 1 ? list.services[0] : "SERVICE; its services: heaptap ls ",
		    count == 1 ? "" : folder);
	store_list_fini(&list);
	return count > 0;
}

static int say_nothing_there(
    const struct operands *operands, const struct passed_over *passed, char *const *words)
{
	const char *first = operands->is_default ? "." : words[0];

	if (passed->count)
		log_line("%s", passed->error);
	else if (nothing_yet_say(first) || say_store(first))
		return 1;
	else if (operands->is_default)
		log_line("no PROFILE given, and none in this folder (" OPERANDS_ENDINGS
		         "); record one: heaptap record COMMAND");
	else
		log_line("cannot read %s: no profile in it (" OPERANDS_ENDINGS ")", first);
	return operands->is_default ? STATUS_USAGE : 1;
}

static bool is_inherited(const struct profile *p, size_t sample)
{
	for (size_t i = 0; i < profile_sample(p, sample).label_count; i++)
		if (strcmp(profile_sample_label(p, sample, i).key, "inherited") == 0)
			return true;
	return false;
}

static void sums_find(struct profile_file *file)
{
	const struct profile *p = file->profile;
	const size_t type = sample_type_find(p, SAMPLE_TYPE_INUSE_SPACE);
	int64_t sum = 0, inherited = 0;

	for (size_t i = 0; i < profile_sample_count(p) && type != SIZE_MAX; i++) {
		int64_t value = profile_sample(p, i).values[type];

		traces_sum(&sum, value);
		if (file->origin.ours && is_inherited(p, i))
			traces_sum(&inherited, value);
	}
	file->inuse_bytes = type == SIZE_MAX ? -1 : sum > 0 ? sum : 0;
	file->inherited_bytes = inherited > 0 ? inherited : 0;
}

/* Of a file that could not be read: 0 if the command goes on, after a line if the user has to know it. */
static int file_fail(struct profile_files *f, const struct operand_path *path,
    const struct profile_files_choice *choice, struct passed_over *passed, int err, const char *error)
{
	if (err == -ENOMSG && !choice->each_counts && !operands_is_profile_name(path->path)) {
		pass_over(passed, path->path, error);
		return 0;
	}
	if (err == -ENOENT && path->from_folder)
		return 0;
	const bool is_missing = err == -ENOENT, is_pid = !path->path[strspn(path->path, "0123456789")];
	const bool is_word = !strchr(path->path, '/') && !operands_is_profile_name(path->path);
	const char *no_store = is_missing && is_word && !is_pid ? f->operands.no_store : "";
	log_line("%s%s%s%s", error,
	    is_missing && is_pid ? "; heaptap snapshot PID writes a profile of a running process" : "",
	    *no_store ? "; and no store has a service of that name: " : "", no_store);
	f->unread_count++;
	return choice->pass_unread && err != -ENOMEM ? 0 : err;
}

/* Adds a file, or passes it over. 0, or -errno after a line. */
static int file_add(struct profile_files *f, const struct operand_path *path, const struct options *options,
    const struct profile_files_choice *choice, struct passed_over *passed, struct passed_over *later_peaks)
{
	struct profile_file *file = &f->files[f->count];
	char error[ERROR_BYTES];
	int err =
	    file_read_profile(path->path, &options->read, choice, &f->held_bytes, &file->profile, error);

	if (err)
		return file_fail(f, path, choice, passed, err, error);
	origin_read(&file->origin, file->profile);
	if (path->until_ns && file->origin.time_ns > path->until_ns) {
		f->held_bytes -= profile_bytes(file->profile);
		profile_free(file->profile);
		memset(file, 0, sizeof(*file));
		pass_over(later_peaks, path->path, NULL);
		return 0;
	}
	f->count++;
	file->path = path->path;
	file->operand = path->operand;
	sums_find(file);
	file->group = choice->each_counts ? file->operand : 0;
	profile_files_measure(file);
	if (choice->origins_only) {
		profile_free(file->profile);
		file->profile = NULL;
		f->held_bytes = 0;
	}
	return 0;
}

/* ---- files that do not count */

/* A hostile profile has one very long comment many times: of each, so much is looked at. */
enum { TEXT_BYTES = 128 };

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return index_mix_bytes(hash, text, strnlen(text, TEXT_BYTES));
}

/* Neither the order of samples nor their stacks: they change when names are found. */
static uint64_t measurement_of(const struct profile *p)
{
	uint64_t hash = index_mix(index_seed(), (uint64_t)profile_time_ns(p));

	hash = index_mix(hash, (uint64_t)profile_duration_ns(p));
	hash = index_mix(hash, (uint64_t)profile_period(p));
	for (size_t i = 0; i < profile_comment_count(p); i++)
		hash = mix_text(hash, profile_comment(p, i));
	for (size_t type = 0; type < profile_sample_type_count(p); type++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < profile_sample_count(p); i++)
			sum += (uint64_t)profile_sample(p, i).values[type];
		hash = index_mix(mix_text(hash, profile_sample_type(p, type).type), sum);
	}
	return hash;
}

void profile_files_measure(struct profile_file *file)
{
	const struct profile *p = file->profile;

	file->measurement = measurement_of(p);
	file->timed = profile_time_ns(p) > 0;
	for (uint32_t id = 1; id <= profile_location_count(p); id++)
		file->names += profile_location(p, id).line_count > 0;
}

static bool is_same(const struct profile_file *a, const struct profile_file *b)
{
	return a->timed && a->measurement == b->measurement && a->group == b->group;
}

static int compare(const void *left, const void *right)
{
	const struct profile_file *a = *(struct profile_file *const *)left,
	                          *b = *(struct profile_file *const *)right;

	if (a->measurement != b->measurement)
		return a->measurement < b->measurement ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->names != b->names)
		return a->names > b->names ? -1 : 1;
	return (a > b) - (a < b);
}

int profile_files_find_duplicates(struct profile_file *files, size_t count)
{
	struct profile_file **sorted = calloc(count + 1, sizeof(struct profile_file *)), *best = NULL;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &files[i];
	qsort(sorted, count, sizeof(*sorted), compare);
	for (size_t i = 0; i < count; i++) {
		if (!best || !is_same(sorted[i], best)) {
			best = sorted[i];
			continue;
		}
		sorted[i]->same_as = best->path;
		sorted[i]->is_copy = sorted[i]->names == best->names;
	}
	free(sorted);
	return 0;
}

/* Says which files are copies. A raw twin is what `heaptap symbolize` leaves: nobody has to know. */
static void say_copies(const struct profile_files *f)
{
	struct passed_over copies = {0};
	const char *original = "";

	for (size_t i = 0; i < f->count; i++) {
		if (!f->files[i].is_copy)
			continue;
		original = f->files[i].same_as;
		pass_over(&copies, f->files[i].path, NULL);
	}
	if (copies.count == 1)
		log_line("counted once: %s is a copy of %s", copies.names, original);
	else if (copies.count)
		log_line("counted once: %zu copies of other profiles, %s%s", copies.count, copies.names,
		    copies.count > NAMES_SHOWN ? ", ..." : "");
}

static bool is_beside_a_process(const struct profile_files *f, const struct profile_file *sum)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct profile_file *file = &f->files[i];

		if (!*file->origin.merged && file->group == sum->group &&
		    strcmp(sessions_kind(&file->origin), sessions_kind(&sum->origin)) == 0)
			return true;
	}
	return false;
}

/* A sum of processes in a folder beside profiles of processes would count them twice. */
static void leave_sums_out(struct profile_files *f)
{
	struct passed_over sums = {0};

	for (size_t i = 0; i < f->count; i++) {
		struct profile_file *file = &f->files[i];

		if (!*file->origin.merged || file->same_as || !is_beside_a_process(f, file))
			continue;
		if (f->operands.has_folder)
			pass_over(&sums, file->path, NULL);
		else
			log_line("%s is a sum of processes: a process in it that is here itself counts twice",
			    file->path);
		file->is_left_out = f->operands.has_folder;
	}
	if (sums.count)
		log_line("left out: %s%s, %s of processes beside profiles of processes; give files and no "
		         "folder to add them up",
		    sums.names, sums.count > NAMES_SHOWN ? ", ..." : "", sums.count == 1 ? "a sum" : "sums");
}

/* Moves the files that count to the front, in their order. */
static void move_counted(struct profile_files *f, struct profile_file *sorted)
{
	const size_t count = f->count;
	size_t last = count;

	f->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct profile_file *file = &f->files[i];

		if (!file->same_as && !file->is_left_out) {
			sorted[f->count++] = *file;
			continue;
		}
		profile_free(file->profile);
		file->profile = NULL;
		sorted[--last] = *file;
	}
	f->duplicate_count = count - f->count;
	free(f->files);
	f->files = sorted;
	for (size_t i = 0; i < count; i++)
		f->origins[i] = &f->files[i].origin;
}

/* Returns 0 or the exit status. */
static int drop_uncounted(struct profile_files *f, const struct profile_files_choice *choice)
{
	struct profile_file *sorted = calloc(f->count + 1, sizeof(*sorted));

	if (!sorted || profile_files_find_duplicates(f->files, f->count)) {
		log_line("not enough memory");
		free(sorted);
		return 1;
	}
	say_copies(f);
	if (!choice->origins_only)
		leave_sums_out(f);
	move_counted(f, sorted);
	return 0;
}

int profile_files_read(
    struct profile_files *f, const struct options *options, const struct profile_files_choice *choice)
{
	const struct operands_services services = {options->read.store,
	    options->read.state == READ_DELTA || options->read.state == READ_ALL ? STORE_MOMENT_ALL
	                                                                         : choice->services};
	struct passed_over passed = {0}, later_peaks = {0};

	memset(f, 0, sizeof(*f));
	if (operands_expand(&f->operands, options->operands, options->operand_count, &services))
		return 1;
	f->unread_count = f->operands.unread_count;
	if (f->unread_count && !choice->pass_unread)
		return 1;
	f->files = calloc(f->operands.count + 1, sizeof(*f->files));
	f->origins = calloc(f->operands.count + 1, sizeof(*f->origins));
	if (!f->files || !f->origins) {
		log_line("not enough memory");
		return 1;
	}
	for (size_t i = 0; i < f->operands.count; i++)
		if (file_add(f, &f->operands.paths[i], options, choice, &passed, &later_peaks))
			return 1;
	say_later_peaks(&later_peaks);
	if (!f->count)
		return f->unread_count ? 1 : say_nothing_there(&f->operands, &passed, options->operands);
	say_passed_over(&passed);
	return drop_uncounted(f, choice);
}

void profile_files_fini(struct profile_files *f)
{
	for (size_t i = 0; i < f->count + f->duplicate_count; i++)
		profile_free(f->files[i].profile);
	free(f->files);
	free(f->origins);
	operands_fini(&f->operands);
	memset(f, 0, sizeof(*f));
}

/* ---- choosing */

static void say_left_out(const struct selection *s)
{
	if (s->session_count > 1 && s->session)
		log_line("this is session %zu of %zu%s; heaptap ls lists them, --session N or all chooses",
		    s->session, s->session_count, s->session == 1 ? ", the newest" : "");
	if (s->session_count > 1 && !s->session)
		log_line("%zu sessions added up", s->session_count);
	if (s->events_left)
		log_line("%zu profile%s of perf events left out: give %s alone to read %s", s->events_left,
		    s->events_left == 1 ? "" : "s", s->events_left == 1 ? "it" : "them",
		    s->events_left == 1 ? "it" : "them");
	if (s->peaks_missing && s->state == READ_PEAK)
		log_line("%zu process%s no peak profile: the newest profile counts instead", s->peaks_missing,
		    s->peaks_missing == 1 ? " has" : "es have");
	if (s->state == READ_ALL && s->process_count < s->count)
		log_line(
		    "%zu profiles of %zu process%s added up: blocks in several of them count several times",
		    s->count, s->process_count, s->process_count == 1 ? "" : "es");
}

int profile_files_say_no_session(int32_t number, size_t session_count)
{
	log_line("--session %d: there %s only %zu session%s", (int)number, session_count == 1 ? "is" : "are",
	    session_count, session_count == 1 ? "" : "s");
	return 1;
}

int profile_files_select(const struct profile_files *f, size_t first, size_t count,
    const struct selection_choice *choice, struct selection *s)
{
	int err = selection_make(s, f->origins + first, count, choice);

	if (err == -ERANGE)
		return err;
	if (err == -ENODATA)
		log_line("--state delta: none of these profiles is a delta; record with --delta");
	else if (err)
		log_line("not enough memory");
	else
		say_left_out(s);
	for (size_t i = 0; i < s->count && !err; i++)
		s->pairs[i].file += first;
	return err ? 1 : 0;
}

/* ---- writing */

int profile_files_write(const struct profile *profile, const char *path, unsigned int flags)
{
	uint8_t *raw = NULL, *packed = NULL;
	size_t raw_bytes = 0, packed_bytes = 0;
	int err = encode_profile(profile, &raw, &raw_bytes);

	if (!err)
		err = gzip_encode(raw, raw_bytes, GZIP_LEVEL_SMALL, &packed, &packed_bytes);
	if (!err && path)
		err = file_publish(path, packed, packed_bytes, 0666, flags);
	else if (!err && (fwrite(packed, 1, packed_bytes, stdout) != packed_bytes || fflush(stdout)))
		err = -errno;
	free(raw);
	free(packed);
	if (err)
		log_line("cannot write %s: %s", path ? path : "standard output", strerror(-err));
	return err;
}
