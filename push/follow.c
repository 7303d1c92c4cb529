/* SPDX-License-Identifier: Apache-2.0 */
#include "push/follow.h"
#include "pprof/store/exit_code.h"

#include "pprof/store/config_file.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "push/command_line.h"
#include "push/http.h"
#include "push/source.h"
#include "push/target_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define END_NS (UINT64_C(10) * 1000000000) /* record --push: how long its end may wait */

struct follow {
	struct target_queue queues[CONFIG_TARGETS_MAX];
	size_t queue_count;
	struct source *source;
	struct http *http;
	int signal_fd;
	int end_fd;    /* to `record`, which waits for us once it has shut it down; -1: none, or told */
	bool stopping; /* a signal: what is under way is finished, no more */
	bool reload;   /* SIGHUP: begin again with the same words */
	bool passing;  /* who names the same server with the same options again may never come */
	const char *config_path; /* of the configuration that is in force; NULL: none */
	uint64_t end_ns; /* paths from a descriptor have ended: clock_now_ns() of the end; 0: not yet */
};

/* ---- one turn */

static bool is_idle(const struct follow *f)
{
	for (size_t i = 0; i < f->queue_count; i++)
		if (f->queues[i].call)
			return false;
	return true;
}

static bool is_empty(const struct follow *f)
{
	for (size_t i = 0; i < f->queue_count; i++)
		if (f->queues[i].call || f->queues[i].spool.count)
			return false;
	return true;
}

static uint64_t left_ns(const struct follow *f)
{
	uint64_t now = clock_now_ns();

	return f->end_ns > now ? f->end_ns - now : 0;
}

static bool is_over(struct follow *f)
{
	if (f->stopping)
		return is_idle(f);
	if (!f->end_ns && source_has_ended(f->source))
		f->end_ns = clock_now_ns() + END_NS;
	return source_has_ended(f->source) && (is_empty(f) || !left_ns(f));
}

static void say_left(const struct follow *f)
{
	for (size_t i = 0; i < f->queue_count; i++) {
		const struct spool *spool = &f->queues[i].spool;

		if (spool->count)
			log_line("%zu profile%s (%" PRIu64
			         " bytes) could not be sent yet, and wait%s in %s; the next "
			         "`heaptap record --push` with the same options sends %s",
			    spool->count, spool->count == 1 ? "" : "s", spool->bytes,
			    spool->count == 1 ? "s" : "", spool->path, spool->count == 1 ? "it" : "them");
	}
}

/* `record` need not wait any more. Should processes that it profiles still live, we go on, in silence. */
static void release_record(struct follow *f)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	say_left(f);
	if (send(f->end_fd, "", 1, MSG_NOSIGNAL) < 0 && verbosity > 0)
		log_line("heaptap record has ended already");
	close(f->end_fd);
	f->end_fd = -1;
	f->end_ns = 0;
	if (null >= 0) {
		dup2(null, STDERR_FILENO);
		close(null);
	}
}

/* Has `record` shut its end down, or is it gone? */
static void look_at_end(struct follow *f, const struct pollfd *fd)
{
	char byte;

	if (f->end_fd < 0)
		return;
	if (!f->end_ns && fd->revents && recv(f->end_fd, &byte, 1, MSG_DONTWAIT) == 0)
		f->end_ns = clock_now_ns() + END_NS;
	if (f->end_ns && (is_empty(f) || !left_ns(f)))
		release_record(f);
}

/* 0, or -errno with one line in error. command_line_fini_config() is due in any case. */
static int read_config(struct config *config, const char *path, char *error, size_t error_bytes)
{
	int err = command_line_read_config(config, path, error, error_bytes);

	if (err || config->count)
		return err;
	snprintf(error, error_bytes, "%.512s has no section [push NAME]", path);
	return -EINVAL;
}

/* A service must not end because of a slip in a file that is edited. */
static bool can_reload(const struct follow *f)
{
	struct config config = {0};
	char error[1024];
	int err = f->config_path ? read_config(&config, f->config_path, error, sizeof(error)) : 0;

	if (err)
		log_line("%s: what was read before stays in force", error);
	command_line_fini_config(&config);
	return !err;
}

static void close_queues(struct follow *f)
{
	for (size_t i = 0; i < f->queue_count; i++)
		target_queue_close(&f->queues[i], f->http);
}

static void read_signals(struct follow *f)
{
	struct signalfd_siginfo info;

	while (read(f->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			/* It ends already: a service manager, and a terminal that is closed, send this
			 * after the other. */
			if (f->stopping || !can_reload(f))
				continue;
			f->reload = true;
		} else {
			/* A second one: at once. The profile stays in the spool. */
			if (f->stopping && !f->reload)
				close_queues(f);
			f->reload = false;
		}
		f->stopping = true;
	}
}

static uint64_t step_queues(struct follow *f, uint64_t wait_ns)
{
	for (size_t i = 0; i < f->queue_count && !f->stopping; i++) {
		uint64_t due_ns = target_queue_step(&f->queues[i], f->http);

		wait_ns = due_ns < wait_ns ? due_ns : wait_ns;
	}
	return f->end_ns && left_ns(f) < wait_ns ? left_ns(f) : wait_ns;
}

static void turn(struct follow *f)
{
	struct pollfd fds[SOURCE_FDS_MAX + 2] = {{.fd = f->signal_fd, .events = POLLIN}};
	size_t source_count = source_fds(f->source, fds + 1), count = 1 + source_count;
	uint64_t wait_ns = step_queues(f, source_due_ns(f->source));
	char error[HTTP_ERROR_BYTES];
	void *owner;

	/* Once it is shut down it is always readable. */
	if (f->end_fd >= 0 && !f->end_ns)
		fds[count++] = (struct pollfd){.fd = f->end_fd, .events = POLLIN};
	if (http_wait(f->http, fds, count, is_over(f) ? 0 : wait_ns, &owner, error))
		target_queue_answered(owner, error);
	if (fds[0].revents)
		read_signals(f);
	if (!f->stopping)
		source_read(f->source, fds + 1, f->queues, f->queue_count);
	look_at_end(f, &fds[1 + source_count]);
}

/* ---- start and end */

static int open_queues(struct follow *f, struct target *targets, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int err = target_queue_open(&f->queues[f->queue_count++], &targets[i]);

		if (err)
			return err;
		target_warn(&targets[i]);
		if (f->queues[i].spool.lock_fd < 0 && verbosity > 0)
			log_line("%s: another process sends what is in the spool of this target; this "
			         "process only adds to it",
			    targets[i].name);
	}
	return 0;
}

static bool is_ignored(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

/* ignore: a terminal and a service manager send them to all of `record`, which ends us in its own way. They
 * must not be blocked then: the kernel ignores no signal that is. */
static int open_signals(bool ignore)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (ignore)
			signal(numbers[i], SIG_IGN);
		else if (!is_ignored(numbers[i])) /* nohup, or a shell's job in the background */
			sigaddset(&set, numbers[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The store of the daemon that has this configuration; without one the user's or the machine's, whichever
 * exists. 0, or -ENOENT after a line. */
static int find_store(const struct follow *f, const struct config *config, char store[PATH_MAX])
{
	char places[CONFIG_FILE_STORES][DAEMON_SECTION_PATH_BYTES];
	size_t count, at = 0;

	if (config->store) {
		snprintf(store, PATH_MAX, "%s", config->store);
		return 0;
	}
	if (f->config_path && !daemon_section_store(store))
		return 0;
	count = f->config_path ? 0 : config_file_stores(NULL, places);
	while (at < count && access(places[at], F_OK))
		at++;
	if (count) {
		strcpy(store, places[at < count ? at : 0]);
		return 0;
	}
	log_line("no folder to follow: give one, or --config with [daemon] store");
	return -ENOENT;
}

static int start(struct follow *f, struct command_line *line, struct config *config, char *const *folders)
{
	bool named = line->has_target, is_record = line->paths_fd != COMMAND_LINE_NO_FD;
	struct target *targets = named ? &line->target : config->targets;

	if (named && !*line->target.name)
		f->passing = target_name_spool(&line->target, is_record ? "record-" : "") && is_record;
	f->end_fd = line->end_fd;
	f->http = http_new();
	f->signal_fd = open_signals(is_record);
	f->source = source_new(folders, line->paths_fd);
	if (!f->http || !f->source || f->signal_fd < 0) {
		log_line("cannot start: %s", strerror(errno ? errno : ENOMEM));
		return -ENOMEM;
	}
	return open_queues(f, targets, named ? 1 : config->count);
}

static int run(struct follow *f, struct command_line *line, struct config *config)
{
	char store[PATH_MAX] = "";
	char *const stores[] = {store, NULL};
	char *const *folders = line->operands;

	if (!line->operand_count && line->paths_fd == COMMAND_LINE_NO_FD) {
		if (find_store(f, config, store))
			return STATUS_USAGE;
		folders = stores;
		if (verbosity > 0)
			log_line("following %s", store);
	}
	if (start(f, line, config, folders))
		return 1;
	while (!is_over(f))
		turn(f);
	if (f->end_fd >= 0)
		release_record(f);
	/* Else there would be a spool for each --label build=N that ever was. */
	for (size_t i = 0; i < f->queue_count && f->passing; i++)
		spool_remove(&f->queues[i].spool);
	return 0;
}

/* The file that was given, or the usual one where no target is named. 0, or -errno after a line. */
static int open_config(
    struct follow *f, const struct command_line *line, struct config *config, char usual[PATH_MAX])
{
	char error[1024];
	bool is_usual = !line->config && !line->has_target;

	if (is_usual && daemon_section_file(usual)) {
		log_line("no target: give --to URL or --config FILE");
		return -ENOENT;
	}
	f->config_path = is_usual ? usual : line->config;
	if (!f->config_path || !read_config(config, f->config_path, error, sizeof(error)))
		return 0;
	log_line("%s%s", error, is_usual ? "; give --to URL or --config FILE" : "");
	return -EINVAL;
}

int follow_run(struct command_line *line)
{
	struct follow f = {.signal_fd = -1, .end_fd = -1};
	struct config config = {0};
	char usual[PATH_MAX];
	int status = STATUS_USAGE;

	if (!open_config(&f, line, &config, usual))
		status = run(&f, line, &config);
	close_queues(&f);
	http_free(f.http);
	source_free(f.source);
	if (f.signal_fd >= 0)
		close(f.signal_fd);
	command_line_fini_config(&config);
	return f.reload && !status ? FOLLOW_AGAIN : status;
}
