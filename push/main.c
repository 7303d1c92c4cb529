/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap-push: sends profiles to servers. `heaptap push` starts it; nothing else of heaptap speaks HTTP.
 *
 * `heaptap push --to URL PROFILE...` is here: it sends the named files, says which of them were not taken,
 * and ends. With --follow, and for `heaptap record --push`, follow.c goes on.
 */
#include "pprof/analysis/since.h"
#include "pprof/codec/decode.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/store/exit_code.h"
#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "pprof/text/utf8.h"
#include "push/command_line.h"
#include "push/delivery.h"
#include "push/follow.h"
#include "push/http.h"
#include "push/protocols.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ERROR_BYTES = 1024 };

struct one_file {
	char *path; /* owned */
	struct profile
	    *profile;     /* NULL: the file is read again when it is sent, which standard input cannot be */
	uint64_t process; /* delivery_process(); 0 unknown */
	int64_t time_ns;
	size_t place; /* on the command line, or in its folder */
};

struct one_shot {
	struct target *target;
	bool dry_run;
	struct http *http;
	struct one_file *files;
	size_t count, capacity, places, sent, failed;
	uint64_t base_process; /* the process of `base` */
	struct profile *base;  /* what the process of base_process was last sent; owned */
	bool given_up;         /* the server took none for a whole timeout: the rest is not tried */
	bool unmade;           /* the last one was not sent at all */
};

/* ---- the files, in the order in which they must be sent */

static int file_read_head(struct one_file *file, bool keep)
{
	char error[ERROR_BYTES];
	struct origin origin;

	if (decode_file(file->path, DECODE_MAX_BYTES, &file->profile, error, sizeof(error))) {
		log_line("%s", error);
		return -EINVAL;
	}
	origin_read(&origin, file->profile);
	file->process = delivery_process(&origin);
	file->time_ns = origin.time_ns;
	if (!keep) {
		profile_free(file->profile);
		file->profile = NULL;
	}
	return 0;
}

/* Profiles of one process one after the other, by time, since each is sent as the difference to the one
 * before. */
static int compare_files(const void *a, const void *b)
{
	const struct one_file *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static bool is_profile_name(const char *name)
{
	static const char *const endings[] = {".pb.gz", ".pb"};
	const size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && *name != '.'; i++) {
		const size_t ending = strlen(endings[i]);

		if (length > ending && strcmp(name + length - ending, endings[i]) == 0)
			return true;
	}
	return false;
}

/* Takes the path. 0 or -ENOMEM. A file that cannot be read is reported and counted. */
static int add_file(struct one_shot *shot, char *path, bool keep)
{
	struct one_file file = {.path = path, .place = shot->places++};

	if (!path || array_reserve(&shot->files, &shot->capacity, shot->count + 1, sizeof(file))) {
		free(path);
		return -ENOMEM;
	}
	if (file_read_head(&file, keep)) {
		shot->failed++;
		free(path);
	} else {
		shot->files[shot->count++] = file;
	}
	return 0;
}

/* The profiles that lie in the folder itself. */
static int add_folder(struct one_shot *shot, const char *folder)
{
	const size_t length = strlen(folder), before = shot->count + shot->failed;
	const char *slash = length && folder[length - 1] == '/' ? "" : "/";
	struct dirent *entry;
	DIR *listing = opendir(folder);
	int err = 0;

	if (!listing) {
		log_line("cannot read %s: %s", folder, strerror(errno));
		shot->failed++;
		return 0;
	}
	while (!err && (entry = readdir(listing))) {
		char *path;

		if (!is_profile_name(entry->d_name))
			continue;
		err = add_file(
		    shot, asprintf(&path, "%s%s%s", folder, slash, entry->d_name) < 0 ? NULL : path, false);
	}
	closedir(listing);
	if (!err && shot->count + shot->failed == before) {
		log_line("%s: there is no profile in it", folder);
		shot->failed++;
	}
	return err;
}

static bool is_folder(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int read_heads(struct one_shot *shot, char *const *paths, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = is_folder(paths[i])
		    ? add_folder(shot, paths[i])
		    : add_file(shot, strdup(paths[i]), count == 1 || strcmp(paths[i], "-") == 0);
	if (shot->count)
		qsort(shot->files, shot->count, sizeof(*shot->files), compare_files);
	return err;
}

/* ---- one request and its retries */

/* One attempt. text: why it failed. */
static enum answer_verdict attempt(struct one_shot *shot, const struct delivery *delivery,
    uint64_t timeout_ns, char text[ANSWER_TEXT_BYTES], uint64_t *asked_ns)
{
	enum answer_verdict verdict = ANSWER_REFUSED;
	char error[HTTP_ERROR_BYTES];
	struct http_request request;
	struct answer answer;
	void *owner;

	*asked_ns = 0;
	shot->unmade = protocols_request(shot->target, delivery, &request, text, ANSWER_TEXT_BYTES) != 0;
	if (shot->unmade) {
		http_request_fini(&request);
		return ANSWER_REFUSED;
	}
	request.timeout_ns = timeout_ns;
	if (!http_start(shot->http, &request, &answer, shot)) {
		snprintf(text, ANSWER_TEXT_BYTES, "out of memory");
	} else {
		while (!http_wait(shot->http, NULL, 0, timeout_ns, &owner, error))
			;
		verdict = ANSWER_LATER;
		if (*error)
			snprintf(text, ANSWER_TEXT_BYTES, "%s", error);
		else
			verdict = protocols_judge(shot->target, &request, &answer, text);
		/* Who waits for us gives us no other token. */
		if (verdict == ANSWER_DENIED)
			verdict = ANSWER_REFUSED;
		*asked_ns = answer_retry_after_ns(answer.retry_after, clock_unix_ns());
	}
	http_request_fini(&request);
	return verdict;
}

static void wait_ns(struct one_shot *shot, uint64_t ns)
{
	uint64_t end = clock_now_ns() + ns, now;
	char error[HTTP_ERROR_BYTES];
	void *owner;

	while ((now = clock_now_ns()) < end)
		http_wait(shot->http, NULL, 0, end - now, &owner, error);
}

/* Until it is accepted or refused, or --timeout is up. */
static enum answer_verdict send_one(
    struct one_shot *shot, const struct delivery *delivery, char text[ANSWER_TEXT_BYTES])
{
	uint64_t end = clock_now_ns() + shot->target->timeout_ns, left, asked_ns, delay, random;
	char last[ANSWER_TEXT_BYTES] = "";
	enum answer_verdict verdict;
	unsigned int failures = 0;

	while (true) {
		left = clock_now_ns() < end ? end - clock_now_ns() : 1;
		verdict = attempt(shot, delivery, left, last, &asked_ns);
		/* The last attempt had little time left: what it ran into says less than what the attempts
		 * before it did. */
		if (verdict != ANSWER_LATER || !failures || left > shot->target->timeout_ns / 2)
			memcpy(text, last, ANSWER_TEXT_BYTES);
		if (verdict == ANSWER_OTHER_PATH) {
			shot->target->path_missing = true;
			continue;
		}
		if (verdict != ANSWER_LATER)
			return verdict;
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
			random = clock_now_ns();
		delay = answer_retry_delay_ns(++failures, random, asked_ns);
		if (clock_now_ns() + delay >= end)
			return verdict;
		if (verbosity > 0)
			log_line("%s; again in %.1f s", last, (double)delay / 1e9);
		wait_ns(shot, delay);
	}
}

/* ---- --dry-run: what would be sent, on standard output */

/* Valid UTF-8, unsafe characters as '?'. */
static void put(const char *text)
{
	while (*text)
		text = utf8_put(stdout, text, '?');
}

static void put_label(const char *name, const char *value)
{
	printf(" %s=", name);
	put(value);
}

static void dry_run_print(const struct target *target, const char *path, const struct delivery *delivery)
{
	bool pyroscope = target->url.protocol == URL_PYROSCOPE;
	char cuts[512], name[4096];
	size_t bytes = 0, packed = 0;

	snprintf(name, sizeof(name), "%s", path);
	utf8_disarm(name, strlen(name));
	printf("%s\n  to      %s %s\n  labels ", name, url_protocol_title(target->url.protocol),
	    target->url.address);
	put_label("__name__", delivery->series);
	for (size_t i = 0; i < delivery->labels.count; i++)
		put_label(delivery->labels.rows[i].name, delivery->labels.rows[i].value);
	if (pyroscope)
		fputs(" __delta__=false pyroscope_spy=heaptap", stdout);
	if (*delivery->session)
		put_label("__session_id__", delivery->session);
	for (size_t i = 0; i < delivery->part_count; i++) {
		bytes += delivery->parts[i].profile_bytes;
		packed += delivery->parts[i].packed_bytes;
	}
	printf(
	    "\n  size    %zu bytes, %zu compressed, %zu stacks\n", bytes, packed, delivery->fitted.samples);
	if (delivery->end_ns > delivery->start_ns)
		printf(
		    "  window  alloc_* of %.3f s\n", (double)(delivery->end_ns - delivery->start_ns) / 1e9);
	delivery_cuts(delivery, cuts, sizeof(cuts));
	printf("  cut     %s\n", *cuts ? cuts + 2 : "nothing");
}

/* ---- one file */

static bool is_in_time(const struct one_shot *shot, const struct one_file *file)
{
	const char *title = url_protocol_title(shot->target->url.protocol);
	int64_t now = clock_unix_ns();

	switch (delivery_age(shot->target, file->time_ns, now)) {
	case DELIVERY_TOO_OLD:
		log_line("%s: not sent, it is %" PRId64 " min old: %s takes profiles of the last %" PRIu64
		         " min",
		    file->path, (now - file->time_ns) / 60000000000, title,
		    target_limits(shot->target)->past_ns / 60000000000);
		return false;
	case DELIVERY_TOO_NEW:
		log_line("%s: not sent, its time is %" PRId64 " min in the future: is a clock wrong?",
		    file->path, (file->time_ns - now) / 60000000000);
		return false;
	default:
		return true;
	}
}

/* What the next profile of the process is a difference to. */
static void set_base(struct one_shot *shot, struct one_file *file, const struct origin *origin)
{
	if (!file->process || origin->kind != ORIGIN_LIVE)
		return;
	profile_free(shot->base);
	shot->base = file->profile;
	file->profile = NULL;
	shot->base_process = file->process;
}

static bool deliver(struct one_shot *shot, const struct one_file *file, const struct delivery *delivery)
{
	char text[ANSWER_TEXT_BYTES], cuts[512];
	const char *url = shot->target->url.address;
	enum answer_verdict verdict;

	delivery_cuts(delivery, cuts, sizeof(cuts));
	if (shot->dry_run) {
		dry_run_print(shot->target, file->path, delivery);
		return true;
	}
	if (shot->given_up) {
		log_line("%s: not sent, the server did not take the one before", file->path);
		return false;
	}
	verdict = send_one(shot, delivery, text);
	if (verdict == ANSWER_ACCEPTED) {
		shot->sent++;
		if (*cuts || verbosity > 0)
			log_line("%s: sent, %zu stacks%s", file->path, delivery->fitted.samples, cuts);
		return true;
	}
	shot->given_up = verdict == ANSWER_LATER;
	log_line(verdict == ANSWER_REFUSED && !shot->unmade ? "%s: refused by %s: %s"
	                                                    : "%s: not delivered to %s: %s",
	    file->path, url, text);
	return false;
}

static bool process_file(struct one_shot *shot, struct one_file *file)
{
	struct since since = {0};
	struct delivery delivery;
	struct origin origin;
	bool done = false;
	int err;

	if (!is_in_time(shot, file) || (!file->profile && file_read_head(file, true)))
		return false;
	origin_read(&origin, file->profile);
	if (shot->base && file->process == shot->base_process)
		since = (struct since){.first = shot->base, .time_ns = profile_time_ns(shot->base)};
	err = delivery_make(&delivery, shot->target, file->profile, &origin, &since);
	if (err)
		log_line("%s: cannot be made ready: %s", file->path, strerror(-err));
	else if (!delivery.part_count)
		log_line("%s: not sent, it has none of the sample types that are wanted", file->path);
	else
		done = deliver(shot, file, &delivery);
	if (done)
		set_base(shot, file, &origin);
	delivery_fini(&delivery);
	profile_free(file->profile);
	file->profile = NULL;
	return done;
}

/* Returns the exit status: 1 if a file was not delivered. */
static int send_files(struct command_line *line)
{
	struct one_shot shot = {.target = &line->target, .dry_run = line->dry_run, .http = http_new()};
	const bool ready = shot.http && read_heads(&shot, line->operands, (size_t)line->operand_count) == 0;

	if (!ready) {
		log_line("out of memory");
		shot.failed++;
	}
	target_warn(shot.target);
	for (size_t i = 0; i < shot.count && ready; i++)
		shot.failed += !process_file(&shot, &shot.files[i]);
	if (shot.sent && !verbosity)
		log_line("%zu profile%s sent to %s", shot.sent, shot.sent == 1 ? "" : "s",
		    line->target.url.address);
	profile_free(shot.base);
	for (size_t i = 0; i < shot.count; i++)
		free(shot.files[i].path);
	free(shot.files);
	http_free(shot.http);
	return shot.failed ? 1 : 0;
}

/* ---- the program */

static int run(struct command_line *line)
{
	return line->follow || line->paths_fd != COMMAND_LINE_NO_FD ? follow_run(line) : send_files(line);
}

int main(int argc, char *argv[])
{
	struct command_line line;
	char error[1024];
	int status = STATUS_USAGE;
	sigset_t none;

	/* As after SIGHUP, when the signals are still blocked. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (command_line_parse(&line, argc, argv, error, sizeof(error)))
		log_line("%s", error);
	else
		status = run(&line);
	command_line_fini(&line);
	if (status == FOLLOW_AGAIN) {
		execv("/proc/self/exe", argv);
		log_line("cannot start again with the new configuration: %s", strerror(errno));
		status = 1;
	}
	exit(status);
}
