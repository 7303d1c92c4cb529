/* SPDX-License-Identifier: Apache-2.0 */
#include "push/follow.h"

#include "push/command_line.h"
#include "push/config.h"
#include "push/feed.h"
#include "push/http.h"
#include "push/instant.h"
#include "push/lane.h"
#include "push/notice.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { STATUS_USAGE = 2 };

#define END_NS (UINT64_C(10) * 1000000000) /* record --push: how long its end may wait */

struct follow {
	struct lane lanes[CONFIG_TARGETS_MAX];
	size_t lane_count;
	struct feed *feed;
	struct http *http;
	int signal_fd;
	bool stopping;   /* a signal: what is under way is finished, no more */
	bool reload;     /* SIGHUP: begin again with the same words */
	uint64_t end_ns; /* paths from a descriptor have ended: instant_now_ns() of the end; 0: not yet */
};

/* ---- one turn */

static bool is_idle(const struct follow *f)
{
	for (size_t i = 0; i < f->lane_count; i++)
		if (f->lanes[i].call)
			return false;
	return true;
}

static bool is_empty(const struct follow *f)
{
	for (size_t i = 0; i < f->lane_count; i++)
		if (f->lanes[i].call || f->lanes[i].spool.count)
			return false;
	return true;
}

static bool is_over(struct follow *f)
{
	if (f->stopping)
		return is_idle(f);
	if (!f->end_ns && feed_has_ended(f->feed))
		f->end_ns = instant_now_ns() + END_NS;
	return f->end_ns && (is_empty(f) || instant_now_ns() >= f->end_ns);
}

static void read_signals(struct follow *f)
{
	struct signalfd_siginfo info;

	while (read(f->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		/* A second one: at once. The profile stays in the spool. */
		if (f->stopping)
			for (size_t i = 0; i < f->lane_count; i++)
				lane_close(&f->lanes[i], f->http);
		f->stopping = true;
		f->reload = info.ssi_signo == SIGHUP;
	}
}

static void turn(struct follow *f)
{
	struct pollfd fds[FEED_FDS_MAX + 1] = {{.fd = f->signal_fd, .events = POLLIN}};
	size_t count = 1 + feed_fds(f->feed, fds + 1);
	uint64_t wait_ns = feed_due_ns(f->feed), step_ns;
	char error[HTTP_ERROR_BYTES];
	void *owner;

	for (size_t i = 0; i < f->lane_count && !f->stopping; i++) {
		step_ns = lane_step(&f->lanes[i], f->http);
		wait_ns = step_ns < wait_ns ? step_ns : wait_ns;
	}
	if (f->end_ns) {
		step_ns = instant_now_ns();
		step_ns = f->end_ns > step_ns ? f->end_ns - step_ns : 0;
		wait_ns = step_ns < wait_ns ? step_ns : wait_ns;
	}
	/* Something that was sent may be answered at once: then the next turn has more to do. */
	if (http_wait(f->http, fds, count, is_over(f) ? 0 : wait_ns, &owner, error))
		lane_answered(owner, error);
	if (fds[0].revents)
		read_signals(f);
	if (!f->stopping)
		feed_read(f->feed, fds + 1, f->lanes, f->lane_count);
}

/* ---- start and end */

static void say_left(const struct follow *f)
{
	for (size_t i = 0; i < f->lane_count; i++) {
		const struct spool *spool = &f->lanes[i].spool;

		if (!f->end_ns || !spool->count)
			continue;
		notice("%zu profile%s (%" PRIu64
		       " bytes) not sent yet: in %s, sent by the next `record --push` to "
		       "this server, or by `heaptap push --follow --to %s`",
		    spool->count, spool->count == 1 ? "" : "s", spool->bytes, spool->path, "URL FOLDER");
	}
}

static int open_lanes(struct follow *f, struct target *targets, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int err = lane_open(&f->lanes[f->lane_count++], &targets[i]);

		if (err)
			return err;
		if (f->lanes[i].spool.lock_fd < 0 && notice_verbosity > 0)
			notice(
			    "%s: another process sends from its spool; this one adds to it", targets[i].name);
	}
	return 0;
}

static int open_signals(bool ignore)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* The terminal sends them to all of `record`, which ends us in its own way. */
	if (ignore) {
		signal(SIGINT, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
	}
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(struct follow *f, struct command_line *line, struct config *config)
{
	bool named = line->has_target;
	struct target *targets = named ? &line->target : config->targets;
	char *const store[] = {config->store, NULL};
	char *const *folders = line->operand_count ? line->operands : store;

	if (named && !*line->target.name)
		strcpy(line->target.name, line->target.url.name);
	if (!*folders && line->paths_fd == COMMAND_LINE_NO_FD) {
		notice("no folder to follow: give one, or --config with [daemon] store");
		return STATUS_USAGE;
	}
	f->http = http_new();
	f->signal_fd = open_signals(line->paths_fd != COMMAND_LINE_NO_FD);
	f->feed = feed_new(folders, line->paths_fd);
	if (!f->http || !f->feed || f->signal_fd < 0) {
		notice("cannot start: %s", strerror(errno ? errno : ENOMEM));
		return 1;
	}
	if (open_lanes(f, targets, named ? 1 : config->count))
		return 1;
	while (!is_over(f))
		turn(f);
	say_left(f);
	return 0;
}

int follow_run(struct command_line *line)
{
	struct follow f = {.signal_fd = -1};
	struct config config = {0};
	char error[1024];
	int status;

	if (line->config && config_read(&config, line->config, error, sizeof(error))) {
		notice("%s", error);
		config_fini(&config);
		return STATUS_USAGE;
	}
	if (line->config && !config.count) {
		notice("%s has no section [push NAME]", line->config);
		config_fini(&config);
		return STATUS_USAGE;
	}
	status = run(&f, line, &config);
	for (size_t i = 0; i < f.lane_count; i++)
		lane_close(&f.lanes[i], f.http);
	http_free(f.http);
	feed_free(f.feed);
	if (f.signal_fd >= 0)
		close(f.signal_fd);
	config_fini(&config);
	if (f.reload && !status)
		return FOLLOW_AGAIN;
	return status;
}
