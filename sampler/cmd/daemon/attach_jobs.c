/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/attach_jobs.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "proto/region_layout.h"
#include "sampler/books/arrivals.h"
#include "sampler/cmd/daemon/account_share.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/policy.h"
#include "sampler/cmd/daemon/process_facts.h"
#include "sampler/inject/attacher.h"
#include "sampler/inject/fitness.h"
#include "sampler/inject/preload_library.h"
#include "sampler/intake/target_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { LIVE_MAX = REGION_OFFER_SEGMENTS * REGION_SEGMENT_SLOTS };

/* All time limits of an attachment add up to a few minutes. A job that lasts longer waits for the memory
 * or the files of its target, which need not answer. */
static const uint64_t lasts_most_ns = UINT64_C(600) * CLOCK_NS_PER_S;

/* A process whose memory did not answer is examined again after this time. Each examination costs the loop
 * 200 to 600 ms, or about as much computing (memory_reader.c). */
static const uint64_t later_ns = UINT64_C(60) * CLOCK_NS_PER_S;

static int open_library(struct daemon *d)
{
	static char copy[PROC_PATH_BYTES];

	if (d->library_copy.fd >= 0)
		return 0;
	const int error = attach_job_open_library(&d->library_copy, copy);
	if (!error)
		*modules_library(d->core.modules) = (struct module_library){ATTACH_LIBRARY_NAME, copy};
	return error;
}

static struct region *make_region(struct daemon *d, uint64_t period_bytes)
{
	struct region *region = malloc(sizeof(*region));
	uint64_t key = 0;
	const struct region_options options = {
	    .period_bytes = period_bytes,
	    .clock_id = region_clock(),
	    .live_max = LIVE_MAX,
	    .mode = REGION_MODE_COPY,
	};

	if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
		key = clock_now_ns() << 16;
	if (region && region_open(region, d->next_region++, key & ~REGION_KEY_PLACE, &options) == 0) {
		region_header(region)->offered = 1; /* so that the next daemon takes it up */
		region_header(region)->session = (uint64_t)d->session.unix_ns;
		region_prefault(region);
		return region;
	}
	free(region);
	return NULL;
}

/* ---- the jobs */

struct attach_job *attach_jobs_empty(struct daemon *d, const char *account)
{
	struct attach_job *empty = NULL;
	size_t of_account = 0, empty_count = 0;

	for (size_t i = 0; i < DAEMON_ATTACH_JOBS; i++) {
		struct attach_job *job = &d->attach_jobs[i];

		if (job->region) {
			of_account += strcmp(job->facts.plan->account, account) == 0;
		} else {
			empty = job;
			empty_count++;
		}
	}
	return of_account < empty_count ? empty : NULL;
}

/* Does a job attach to this process? The process may have executed another program since the job began. */
static bool is_on_its_way(const struct daemon *d, pid_t pid)
{
	for (size_t i = 0; i < DAEMON_ATTACH_JOBS; i++)
		if (d->attach_jobs[i].region && d->attach_jobs[i].facts.pid == pid)
			return true;
	return false;
}

bool attach_jobs_has_region(const struct daemon *d, uint64_t ino)
{
	for (size_t i = 0; i < DAEMON_ATTACH_JOBS; i++)
		if (d->attach_jobs[i].region && d->attach_jobs[i].region->ino == ino)
			return true;
	return false;
}

/* 0, or -errno: then the job is empty again. */
static int begin(struct daemon *d, struct attach_job *job, const struct process_entry *entry,
    const struct policy_match *match, bool filtered)
{
	const uint64_t period_bytes = policy_match_period(d, match);

	*job = (struct attach_job){
	    .attacher.fd = -1, .region = make_region(d, period_bytes), .facts = attach_job_facts(entry->pid)};
	job->facts.period_bytes = period_bytes;
	job->facts.plan = calloc(1, sizeof(*job->facts.plan));
	if (!job->region || !job->facts.plan) {
		attach_job_drop(job);
		return -ENOMEM;
	}
	policy_match_plan(job->facts.plan, d, match);
	region_header(job->region)->filtered = filtered;
	const struct attachment_wish wish = {.pid = entry->pid,
	    .birth = entry->identity,
	    .modules = d->core.modules,
	    .library_copy = &d->library_copy};
	return attach_job_start(job, &wish, d->core.epoll_fd);
}

static void take_result(struct daemon *d, struct attach_job *job)
{
	struct attachment attachment;
	struct process_entry *entry = process_table_find(&d->processes, job->facts.pid);

	if (entry && entry->state != PROCESS_ATTACHING) /* the process has executed another program since */
		entry = NULL;
	int error = attach_job_result(job, d->core.epoll_fd, &attachment);
	if (error) {
		if (entry)
			process_entry_refuse(entry, "cannot be attached to: %s", attachment.reason);
		return;
	}
	const uint64_t ino = job->region->ino;
	error = attach_job_register(job, &d->core.heap.registry);
	if (error && entry)
		process_entry_refuse(entry, "cannot be attached to: %s", strerror(-error));
	if (error || !entry)
		return;
	entry->state = PROCESS_PROFILED;
	entry->ino = ino;
	entry->first = true;
	entry->since_ns = clock_now_ns();
	entry->since_unix_ns = clock_unix_ns();
	process_entry_set(&entry->reason, NULL);
	policy_match_again(d, entry); /* the rules may have changed meanwhile, or sampling was switched off */
	if (d->verbosity > 0)
		log_line_of(entry->uid, "pid %d: attached, service %s; paused one thread for %.1f ms",
		    (int)entry->pid, entry->service ? entry->service : "?",
		    (double)attachment.stood_ns / 1e6);
}

bool attach_jobs_event(struct daemon *d, int fd)
{
	for (size_t i = 0; i < DAEMON_ATTACH_JOBS; i++)
		if (d->attach_jobs[i].region && d->attach_jobs[i].attacher.fd == fd) {
			take_result(d, &d->attach_jobs[i]);
			return true;
		}
	return false;
}

void attach_jobs_give_up(struct daemon *d, uint64_t now_ns)
{
	for (size_t i = 0; i < DAEMON_ATTACH_JOBS; i++) {
		struct attach_job *job = &d->attach_jobs[i];

		if (job->region && now_ns > job->begun_ns + lasts_most_ns)
			attacher_give_up(&job->attacher);
		if (job->region && attacher_is_late(&job->attacher))
			take_result(d, job);
	}
}

void attach_jobs_end(struct daemon *d)
{
	for (size_t i = 0; i < DAEMON_ATTACH_JOBS; i++)
		if (d->attach_jobs[i].region)
			attacher_give_up(&d->attach_jobs[i].attacher);
	for (size_t i = 0; i < DAEMON_ATTACH_JOBS; i++)
		if (d->attach_jobs[i].region)
			take_result(d, &d->attach_jobs[i]);
}

/* ---- which processes */

/* True if the attachment has begun, or if the process is refused for a reason. False: try again later. */
static bool attach(struct daemon *d, struct process_entry *entry, const struct policy_match *match)
{
	struct fitness fitness;
	char account[TARGET_OWNER_BYTES];

	if (is_on_its_way(d, entry->pid))
		return false;
	process_facts_account(&match->facts, account, sizeof(account));
	struct attach_job *job = attach_jobs_empty(d, account);
	/* before the library is looked for: a machine on which no process can be attached to has none */
	const bool fit = fitness_examine(&fitness, entry->pid, false);
	if (fitness.later)
		entry->again_ns = clock_now_ns() + later_ns;
	if (!fit)
		return process_entry_refuse(
		    entry, "%s%s%s", fitness.cause, fitness.remedy[0] ? ": " : "", fitness.remedy);
	int error = open_library(d);
	if (error)
		return process_entry_refuse(
		    entry, "cannot be attached to: no " ATTACH_LIBRARY_NAME ": %s", strerror(-error));
	if (!job)
		return false;
	error = begin(d, job, entry, match, fitness.filtered);
	if (error)
		return process_entry_refuse(entry, "cannot be attached to: %s", strerror(-error));
	process_entry_set(&entry->reason, "is being attached to");
	entry->state = PROCESS_ATTACHING;
	return true;
}

bool attach_jobs_try(struct daemon *d, struct process_entry *entry, bool has_library)
{
	struct policy_match *match = policy_match_make(d, entry, has_library);
	bool decided = true;

	entry->state = PROCESS_WITHOUT_LIBRARY;
	if (!match)
		return true;
	/* Nobody asked for most processes: the table notes no reason for them. */
	const bool wanted = has_library || match->policy.answer == POLICY_PROFILE;
	if (wanted && !policy_match_refuses(d, entry, match))
		decided = account_share_has_run(d, &match->facts) && attach(d, entry, match);
	if (!decided) {
		entry->state = PROCESS_NOT_YET; /* at the next sweep */
		entry->looks--;
	}
	free(match);
	return decided;
}
