/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/candidate.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/books/arrivals.h"
#include "sampler/cmd/daemon/account_share.h"
#include "sampler/cmd/daemon/attach_jobs.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/policy.h"
#include "sampler/intake/region_mapped.h"
#include "sampler/intake/region_offer.h"
#include "sampler/intake/target_plan.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LOOKS = 3, /* sweeps after which a process that offers nothing is taken for one without the library */
	PREFAULT_BYTES = 224 << 10,
	PREFAULT_SHARE = 4, /* of the daemon's memory: one in so many bytes */
	/* A refused process is looked at again after so long: one whose region another sampler reads, and
	 * one for which there was no room. */
	BUSY_S = 10,
	FULL_S = 30,
};

static const uint64_t second_ns = UINT64_C(1000000000);
static const char busy[] = "another sampler of heaptap reads its memory";

/* The functions below that return bool return true if the process need not be looked at again before it opens
 * the library once more. That is why process_entry_refuse() returns true. */

/* ---- taking an offer */

static uint64_t random_key(void)
{
	uint64_t key;

	if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
		key = clock_now_ns() * UINT64_C(0x9e3779b97f4a7c15);
	return key & ~REGION_KEY_PLACE;
}

/* Makes the pages that the process needs at once, so that they are charged to us, while the daemon's
 * memory allows that. */
static void prefault(struct daemon *d, const struct region *region)
{
	const uint64_t runs = d->core.heap.intake.books.runs.count;

	if ((runs + 1) * PREFAULT_BYTES <= d->rules->daemon.memory_bytes / PREFAULT_SHARE)
		region_prefault(region);
}

/* Opens a pidfd, which tells later that this process has ended. It is closed again if the pid has another
 * process by now. */
static void watch(struct daemon *d, struct process_entry *entry)
{
	entry->pidfd = (int)syscall(SYS_pidfd_open, entry->pid, 0);
	if (entry->pidfd >= 0 &&
	    (thread_facts_birth(entry->pid).ticks != entry->identity.ticks ||
	        epoll_set_add(d->core.epoll_fd, entry->pidfd) != 0)) {
		close(entry->pidfd);
		entry->pidfd = -1;
	}
}

static void say_taken(const struct daemon *d, const struct process_entry *entry, const char *what)
{
	if (d->verbosity > 0)
		log_line_of(entry->uid, "pid %d (%s): %s, service %s", (int)entry->pid,
		    entry->comm ? entry->comm : "?", what, entry->service ? entry->service : "?");
}

static bool refuse_for_now(struct process_entry *entry, unsigned int seconds, const char *why)
{
	entry->again_ns = clock_now_ns() + seconds * second_ns;
	return process_entry_refuse(entry, "%s", why);
}

static bool take(struct daemon *d, struct process_entry *entry, struct region_offer *offer,
    const struct policy_match *match)
{
	struct region *region = malloc(sizeof(*region));
	struct target_plan *plan = calloc(1, sizeof(*plan));
	const struct region_offer_terms terms = {
	    .id = d->next_region++,
	    .key = random_key(),
	    .period_bytes = policy_match_period(d, match),
	    .clock_id = region_clock(),
	    .session = (uint64_t)d->session.unix_ns,
	    .used = offer->used,
	    .sampler_pid = offer->sampler_pid,
	};
	const int error = region && plan ? region_offer_accept(&offer->region, &terms) : -ENOMEM;

	if (error) {
		free(region);
		free(plan);
		region_close(&offer->region);
		return error == -EBUSY && refuse_for_now(entry, BUSY_S, busy);
	}
	*region = offer->region;
	prefault(d, region);
	policy_match_plan(plan, d, match);
	const struct arrivals_offer given = {region, plan, terms.period_bytes, entry->pid,
	    thread_facts_age_ns(entry->identity.ticks), offer->used};
	if (arrivals_offer(&d->core.heap.registry, &given) != 0)
		return false;
	region_offer_turn(region, true);
	entry->state = PROCESS_PROFILED;
	entry->ino = region->ino;
	entry->first = true;
	entry->since_ns = clock_now_ns();
	entry->since_unix_ns = clock_unix_ns();
	watch(d, entry);
	say_taken(d, entry, offer->used ? "taken up again" : "profiled");
	return true;
}

/* Profiles a forked child, which has the region of its parent. */
static bool join(struct daemon *d, struct process_entry *entry, const struct program_run *run)
{
	struct policy_match *match = policy_match_make(d, entry, true);

	free(match);
	entry->state = PROCESS_PROFILED;
	entry->ino = run->region->ino;
	entry->first = false;
	entry->since_ns = clock_now_ns();
	entry->since_unix_ns = clock_unix_ns();
	/* The rules may have been asked while no process of the program run was known. */
	if (run->plan && run->plan->decided != d->policy_checks)
		policy_match_again(d, entry);
	return true;
}

static bool on_offer(struct daemon *d, struct process_entry *entry, struct region_offer *offer)
{
	const struct program_run *run = books_run_of_region(&d->core.heap.intake.books, offer->region.ino);

	if (run) {
		region_close(&offer->region);
		return join(d, entry, run);
	}
	/* A child of a process that is being attached to: the program run is not made yet. */
	if (attach_jobs_has_region(d, offer->region.ino)) {
		region_close(&offer->region);
		entry->state = PROCESS_NOT_YET;
		return false;
	}
	struct policy_match *match = policy_match_make(d, entry, true);
	/* The facts must be those of the program that has mapped this region. If they are not, the process
	 * has executed another program, which the next sweep meets. */
	if (match && region_mapped_by(&offer->region, entry->pid) != REGION_MAPPED) {
		free(match);
		region_close(&offer->region);
		entry->state = PROCESS_NOT_YET;
		return false;
	}
	const bool wanted = match && !policy_match_refuses(d, entry, match);
	bool done = true;
	if (wanted && account_share_has_run(d, &match->facts)) {
		done = take(d, entry, offer, match);
	} else {
		/* An earlier daemon may have turned sampling on. */
		if (offer->session == (uint64_t)d->session.unix_ns)
			region_offer_turn(&offer->region, false);
		region_close(&offer->region);
		if (wanted)
			done = refuse_for_now(entry, FULL_S, "too many processes are profiled already");
	}
	free(match);
	return done;
}

/* ---- a look at a process */

/* The process has the library, but its region cannot be used. The entry says why, unless the rules leave
 * the process alone anyway. */
static bool on_unusable(struct daemon *d, struct process_entry *entry, int error, uint32_t abi)
{
	struct policy_match *match = policy_match_make(d, entry, true);
	const bool unwanted = !match || policy_match_refuses(d, entry, match);

	free(match);
	if (unwanted)
		return true;
	if (error == -EBUSY)
		return refuse_for_now(entry, BUSY_S, busy);
	if (abi)
		return process_entry_refuse(entry,
		    "its library is of another version (ABI %" PRIu32 ", the daemon's is %u): restart it",
		    abi, REGION_ABI);
	return process_entry_refuse(entry, "its shared memory is not what the library makes");
}

/* The process offers no region. After a few looks it counts as one without the library, and is attached to
 * if a rule says so. */
static bool on_nothing(struct daemon *d, struct process_entry *entry, bool noticed)
{
	entry->state = PROCESS_NOT_YET;
	if (noticed || ++entry->looks < LOOKS)
		return false;
	entry->state = PROCESS_WITHOUT_LIBRARY;
	(void)attach_jobs_try(d, entry, false);
	return true;
}

/* A child of the daemon that writes a profile or attaches has the regions mapped, as the daemon has. */
static bool is_own_child(pid_t pid)
{
	char own[PATH_MAX], exe[PATH_MAX];

	return thread_facts_read(pid).parent == getpid() && proc_read_exe(pid, exe, sizeof(exe)) > 0 &&
	    proc_read_exe(getpid(), own, sizeof(own)) > 0 && strcmp(exe, own) == 0;
}

static bool is_ours(pid_t pid)
{
	char path[PROC_PATH_BYTES];
	struct stat status;

	return geteuid() == 0 ||
	    (stat(proc_path(path, pid, "."), &status) == 0 && status.st_uid == geteuid());
}

static bool look(struct daemon *d, struct process_entry *entry, bool noticed)
{
	struct region_offer offer = {.effort = &d->effort};

	if (!is_ours(entry->pid) || is_own_child(entry->pid)) {
		entry->state = PROCESS_WITHOUT_LIBRARY;
		return true;
	}
	int error = region_offer_open(&offer, entry->pid);
	switch (-error) {
	case 0:
		return on_offer(d, entry, &offer);
	case ENOENT:
		return on_nothing(d, entry, noticed);
	case EAGAIN: /* the process is making its region just now */
		entry->state = PROCESS_NOT_YET;
		return false;
	case EPROTO:
	case EBUSY:
		return on_unusable(d, entry, error, offer.abi);
	case EPERM:
		return attach_jobs_try(d, entry, true);
	case ESRCH:
		return true;
	default:
		return false; /* there was no descriptor or memory; a later sweep may have some */
	}
}

/* Turns sampling off in a process where an earlier daemon has left it on: the daemon is switched off. Does
 * so once for each program. */
static void silence(struct daemon *d, struct process_entry *entry)
{
	struct region_offer offer = {.effort = &d->effort};

	if (entry->silenced || entry->state != PROCESS_NEW || !is_ours(entry->pid))
		return;
	entry->silenced = true;
	if (region_offer_open(&offer, entry->pid) != 0)
		return;
	region_offer_turn(&offer.region, false);
	region_close(&offer.region);
}

static bool is_to_be_looked_at(const struct process_entry *entry)
{
	return entry->state == PROCESS_NEW || entry->state == PROCESS_NOT_YET ||
	    (entry->state == PROCESS_REFUSED && entry->again_ns && clock_now_ns() >= entry->again_ns);
}

bool candidate_look(void *context, pid_t pid, bool noticed)
{
	struct daemon *d = context;
	const struct thread_birth identity = thread_facts_birth(pid);
	bool is_new;

	if (!identity.ticks) /* gone */
		return true;
	struct process_entry *entry = process_table_enter(&d->processes, pid, &identity, &is_new);
	if (!entry)
		return false;
	entry->round = d->round;
	if (is_new)
		entry->since_unix_ns = clock_unix_ns();
	if (d->off.off) {
		silence(d, entry);
		return true;
	}
	if (entry->state == PROCESS_WITHOUT_LIBRARY && noticed)
		entry->state = PROCESS_NOT_YET;
	if (!is_to_be_looked_at(entry))
		return true;
	entry->again_ns = 0;
	return look(d, entry, noticed);
}

void candidate_opened(void *context, pid_t pid)
{
	const struct daemon *d = context;
	struct process_entry *entry = process_table_find(&d->processes, pid);

	if (entry && entry->state == PROCESS_PROFILED)
		entry->opened_again = true;
}

void candidate_passed(void *context, pid_t pid)
{
	const struct daemon *d = context;
	struct process_entry *entry = process_table_find(&d->processes, pid);

	if (entry)
		entry->round = d->round; /* so the entry stays */
}

void candidate_swept(void *context)
{
	struct daemon *d = context;

	process_table_forget(&d->processes, d->round);
	d->round++;
}

/* ---- ends */

/* Had the process executed another program before it ended? Another program has another comm, unless it
 * was given the same one. If the process was reaped before we could read comm, another program has opened
 * the library, unless it is static. True also if that cannot be told: the guard must not be unjust. */
static bool has_executed(struct daemon *d, const struct process_entry *entry)
{
	char text[256];

	if (proc_read(entry->pid, "stat", text, sizeof(text)) < 0 || !entry->comm)
		return !finder_read(d->finder, clock_now_ns()) || entry->opened_again;
	const char *begin = strchr(text, '('), *end = strrchr(text, ')');
	size_t length = begin && end > begin ? (size_t)(end - begin - 1) : 0;
	return begin && (strlen(entry->comm) != length || memcmp(begin + 1, entry->comm, length) != 0);
}

static void note_end(struct daemon *d, const struct process_entry *entry)
{
	int status;

	if (pidfd_exit_status(entry->pidfd, entry->pid, &status) != 0 || !WIFSIGNALED(status) ||
	    !entry->exe || has_executed(d, entry))
		return;
	const struct crash_guard_death death = {
	    .exe = entry->exe,
	    .library = entry->library ? entry->library : "",
	    .uid = entry->uid,
	    .signal = WTERMSIG(status),
	    .age_ns = clock_now_ns() - entry->since_ns,
	    .now_ns = clock_now_ns(),
	    .now_unix_ns = clock_unix_ns(),
	};
	const struct crash_guard_denied *denied = crash_guard_note(d->guard, &death);
	if (denied)
		log_line_of(entry->uid, "%s is not profiled any more: %s", denied->exe, denied->reason);
}

bool candidate_ended(struct daemon *d, int fd)
{
	for (size_t i = 0; i < d->processes.count; i++) {
		struct process_entry *entry = d->processes.entries[i];

		if (entry->pidfd != fd)
			continue;
		note_end(d, entry);
		process_table_remove(&d->processes, entry->pid);
		return true;
	}
	return false;
}

/* ---- the switch */

void candidate_stop_all(struct daemon *d)
{
	books_each_run(run, &d->core.heap.intake.books) region_offer_turn(run->region, false);
}
