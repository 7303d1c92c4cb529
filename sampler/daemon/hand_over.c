/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/hand_over.h"

#include "pprof/text/log_line.h"
#include "sampler/daemon/attaching.h"
#include "sampler/daemon/daemon_state.h"
#include "sampler/daemon/verdict.h"
#include "sampler/linux/clock.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/linux/exit_status.h"
#include "sampler/linux/proc.h"
#include "sampler/region/region_offer.h"
#include "sampler/target/target_plan.h"

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
	/* An image costs the daemon 20 to 100 KiB, and the memory that is prefaulted for it. */
	IMAGE_BYTES = 128 << 10,
	PREFAULT_BYTES = 224 << 10,
	PREFAULT_SHARE = 4, /* of the daemon's memory: one in so many bytes */
};

/* ---- taking an offer */

static uint64_t random_key(void)
{
	uint64_t key;
	if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
		key = clock_now_ns() * UINT64_C(0x9e3779b97f4a7c15);
	return key & ~REGION_KEY_PLACE;
}

static uint64_t memory_bytes(const struct daemon *d)
{
	return d->rules->daemon.memory_bytes;
}

/* The pages that it needs at once are charged to us, as long as we have some to give. */
static void prefault(struct daemon *d, const struct region *region)
{
	uint64_t images = 0;
	for (const struct image *image = d->heap.intake.images; image; image = image->next)
		images++;
	if ((images + 1) * PREFAULT_BYTES <= memory_bytes(d) / PREFAULT_SHARE)
		region_prefault(region);
}

/* A pidfd proves later which process has ended; it is this one's if it still is who it was. */
static void watch(struct daemon *d, struct roster_entry *entry)
{
	entry->pidfd = (int)syscall(SYS_pidfd_open, entry->pid, 0);
	if (entry->pidfd >= 0 &&
	    (thread_facts_birth(entry->pid).ticks != entry->identity.ticks ||
	        epoll_set_add(d->epoll_fd, entry->pidfd) != 0)) {
		close(entry->pidfd);
		entry->pidfd = -1;
	}
}

static void say_taken(const struct daemon *d, const struct roster_entry *entry, const char *what)
{
	if (d->options.verbosity > 0)
		log_line("pid %d (%s): %s, service %s", (int)entry->pid, entry->comm ? entry->comm : "?", what,
		    entry->service ? entry->service : "?");
}

static bool take(struct daemon *d, struct roster_entry *entry, struct region_offer *offer,
    const struct verdict *verdict)
{
	struct region *region = malloc(sizeof(*region));
	struct target_plan *plan = calloc(1, sizeof(*plan));
	const struct region_offer_terms terms = {
	    .id = d->next_region++,
	    .key = random_key(),
	    .period_bytes = verdict_period(d, verdict),
	    .clock_id = region_clock(),
	    .session = (uint64_t)d->identity.unix_ns,
	};
	if (!region || !plan) {
		free(region);
		free(plan);
		region_close(&offer->region);
		return false;
	}
	*region = offer->region;
	region_offer_accept(region, &terms);
	prefault(d, region);
	verdict_plan(plan, d, verdict);
	const struct registry_offer given = {region, plan, terms.period_bytes, entry->pid, offer->used};
	if (registry_take_offer(&d->heap.registry, &given) != 0)
		return false;
	region_offer_turn(region, true);
	entry->state = ROSTER_PROFILED;
	entry->ino = region->ino;
	entry->first = true;
	entry->since_ns = clock_now_ns();
	entry->since_unix_ns = clock_unix_ns();
	watch(d, entry);
	say_taken(d, entry, offer->used ? "taken up again" : "profiled");
	return true;
}

/* How many images there are, and of one user. */
static bool has_room(const struct daemon *d, const struct roster_entry *entry, uid_t uid)
{
	const uint64_t most = memory_bytes(d) / IMAGE_BYTES;
	uint64_t all = 0, of_user = 0;
	(void)entry;
	for (size_t i = 0; i < d->roster.count; i++) {
		const struct roster_entry *other = d->roster.entries[i];
		if (other->state != ROSTER_PROFILED || !other->first)
			continue;
		all++;
		of_user += other->uid == uid;
	}
	return all < most && (uid == 0 || uid == geteuid() || of_user < most / 2);
}

/* A forked child, which has its parent's region. */
static bool join(struct daemon *d, struct roster_entry *entry, const struct image *image)
{
	struct verdict *verdict = verdict_make(d, entry, true);
	free(verdict);
	entry->state = ROSTER_PROFILED;
	entry->ino = image->region->ino;
	entry->first = false;
	entry->since_ns = clock_now_ns();
	entry->since_unix_ns = clock_unix_ns();
	return true;
}

static bool on_offer(struct daemon *d, struct roster_entry *entry, struct region_offer *offer)
{
	const struct image *image = registry_image_of(&d->heap.registry, offer->region.ino);
	if (image) {
		region_close(&offer->region);
		return join(d, entry, image);
	}
	struct verdict *verdict = verdict_make(d, entry, true);
	bool done = true;
	if (verdict && !verdict_is_no(d, entry, verdict) && has_room(d, entry, verdict->facts.uid)) {
		entry->uid = verdict->facts.uid;
		done = take(d, entry, offer, verdict);
	} else {
		if (offer->session == (uint64_t)d->identity.unix_ns) /* an earlier daemon has turned it on */
			region_offer_turn(&offer->region, false);
		region_close(&offer->region);
		if (verdict && entry->state != ROSTER_REFUSED) {
			roster_set(&entry->reason, "too many processes are profiled already");
			done = false;
		}
	}
	free(verdict);
	return done;
}

/* ---- a look at a process */

static bool on_other_version(struct roster_entry *entry, uint32_t abi)
{
	if (abi)
		return verdict_refuse(entry,
		    "its library is of another version (ABI %" PRIu32 ", the daemon's is %u): restart it", abi,
		    REGION_ABI);
	return verdict_refuse(entry, "its shared memory is not what the library makes");
}

/* A process without the library: it is attached to if a rule says so. */
static bool on_nothing(struct daemon *d, struct roster_entry *entry, bool noticed)
{
	entry->state = ROSTER_NOTHING;
	if (noticed || ++entry->looks < LOOKS)
		return false;
	entry->state = ROSTER_OTHER;
	(void)attaching_try(d, entry, false);
	return true;
}

static bool is_ours(pid_t pid)
{
	char path[PROC_PATH_BYTES];
	struct stat status;
	return geteuid() == 0 || (stat(proc_path(path, pid, "."), &status) == 0 && status.st_uid == geteuid());
}

static bool look(struct daemon *d, struct roster_entry *entry, bool noticed)
{
	struct region_offer offer;
	if (!is_ours(entry->pid)) {
		entry->state = ROSTER_OTHER;
		return true;
	}
	int error = region_offer_open(&offer, entry->pid);
	switch (-error) {
	case 0:
		return on_offer(d, entry, &offer);
	case ENOENT:
		return on_nothing(d, entry, noticed);
	case EPROTO:
		return on_other_version(entry, offer.abi);
	case EBUSY:
		return verdict_refuse(entry, "another sampler of heaptap reads its memory");
	case EPERM:
		return attaching_try(d, entry, true);
	case ESRCH:
		return true;
	default:
		return false; /* no descriptor or memory is left: another sweep may have some */
	}
}

bool hand_over_look(void *context, pid_t pid, bool noticed)
{
	struct daemon *d = context;
	const struct thread_birth identity = thread_facts_birth(pid);
	bool is_new;
	if (!identity.ticks) /* gone */
		return true;
	struct roster_entry *entry = roster_enter(&d->roster, pid, &identity, &is_new);
	if (!entry)
		return false;
	entry->round = d->round;
	if (is_new)
		entry->since_unix_ns = clock_unix_ns();
	if (d->off.off)
		return true;
	if (entry->state == ROSTER_OTHER && noticed)
		entry->state = ROSTER_NOTHING;
	return (entry->state != ROSTER_NEW && entry->state != ROSTER_NOTHING) || look(d, entry, noticed);
}

void hand_over_swept(void *context)
{
	struct daemon *d = context;
	roster_forget(&d->roster, d->round);
	d->round++;
}

/* ---- ends */

/* Another program has another name, unless it was given the same. */
static bool has_executed(const struct roster_entry *entry)
{
	char text[256];
	if (proc_read(entry->pid, "stat", text, sizeof(text)) < 0 || !entry->comm)
		return false; /* reaped already */
	const char *begin = strchr(text, '('), *end = strrchr(text, ')');
	size_t length = begin && end > begin ? (size_t)(end - begin - 1) : 0;
	return begin && (strlen(entry->comm) != length || memcmp(begin + 1, entry->comm, length) != 0);
}

static void note_end(struct daemon *d, const struct roster_entry *entry)
{
	int status;
	if (exit_status_read(entry->pidfd, entry->pid, &status) != 0 || !WIFSIGNALED(status) || !entry->exe ||
	    has_executed(entry))
		return;
	const struct crash_guard_death death = {
	    .exe = entry->exe,
	    .library = entry->library ? entry->library : "",
	    .signal = WTERMSIG(status),
	    .age_ns = clock_now_ns() - entry->since_ns,
	    .now_ns = clock_now_ns(),
	    .now_unix_ns = clock_unix_ns(),
	};
	const struct crash_guard_denied *denied = crash_guard_note(d->guard, &death);
	if (!denied)
		return;
	log_line("%s is not profiled any more: %s", denied->exe, denied->reason);
	int error = crash_guard_save(d->guard, d->guard_path);
	if (error)
		log_line("%s: %s: this will be forgotten when the daemon ends", d->guard_path, strerror(-error));
}

bool hand_over_ended(struct daemon *d, int fd)
{
	for (size_t i = 0; i < d->roster.count; i++) {
		struct roster_entry *entry = d->roster.entries[i];
		if (entry->pidfd != fd)
			continue;
		note_end(d, entry);
		epoll_set_remove(d->epoll_fd, fd);
		roster_remove(&d->roster, entry->pid);
		return true;
	}
	return false;
}

/* ---- again */

static struct image *image_of(const struct daemon *d, const struct roster_entry *entry)
{
	return entry->state == ROSTER_PROFILED ? registry_image_of(&d->heap.registry, entry->ino) : NULL;
}

static void decide_about_profiled(struct daemon *d, struct roster_entry *entry, struct image *image)
{
	struct verdict *verdict = verdict_make(d, entry, true);
	if (!verdict)
		return;
	if (verdict_is_no(d, entry, verdict)) {
		region_offer_turn(image->region, false);
		entry->state = ROSTER_PROFILED; /* its books stay, and the entry says why it is off */
	} else {
		if (image->plan)
			verdict_plan(image->plan, d, verdict);
		roster_set(&entry->reason, NULL);
		region_offer_turn(image->region, true);
	}
	free(verdict);
}

void hand_over_decide_again(struct daemon *d)
{
	for (size_t i = 0; i < d->roster.count; i++) {
		struct roster_entry *entry = d->roster.entries[i];
		struct image *image = image_of(d, entry);
		if (image && entry->first)
			decide_about_profiled(d, entry, image);
		else if (!image && entry->state != ROSTER_NEW) {
			entry->state = ROSTER_NOTHING;
			entry->looks = entry->looks ? entry->looks - 1 : 0;
		}
	}
	hand_over_scale(d);
	finder_hurry(d->finder);
}

void hand_over_stop(struct daemon *d)
{
	for (struct image *image = d->heap.intake.images; image; image = image->next)
		region_offer_turn(image->region, false);
}

/* ---- periods */

static void set_period(struct image *image, double period_bytes)
{
	image->period_bytes = period_bytes < 1 ? 1
	    : period_bytes > (double)PERIOD_BYTES_MAX ? PERIOD_BYTES_MAX
	                                              : (uint64_t)period_bytes;
	atomic_store(&region_header(image->region)->period_bytes, image->period_bytes);
}

void hand_over_scale(struct daemon *d)
{
	for (struct image *image = d->heap.intake.images; image; image = image->next)
		if (image->plan && image->plan->period_bytes)
			set_period(image, (double)image->plan->period_bytes * (double)(1u << d->load.raised));
}

/* The rate that would have been had the period been another one is inversely proportional to it. */
void hand_over_tune(struct daemon *d)
{
	for (struct image *image = d->heap.intake.images; image; image = image->next) {
		const struct target_plan *plan = image->plan;
		uint64_t samples = 0;
		for (uint32_t i = 0; i < image->places_end; i++)
			samples += image->process[i] ? process_samples(image->process[i]) : 0;
		uint64_t now_ns = clock_now_ns();
		uint64_t came = samples > image->tuned_samples ? samples - image->tuned_samples : 0;
		uint64_t passed_ns = now_ns - (image->tuned_ns ? image->tuned_ns : image->claimed_ns);
		if (!plan || !plan->samples_per_hour || passed_ns == 0)
			continue;
		double rate = ((double)came + 1) * 3600e9 / (double)passed_ns;
		double factor = rate / (double)plan->samples_per_hour;
		factor = factor > 4 ? 4 : factor < 0.25 ? 0.25 : factor;
		image->tuned_samples = samples;
		image->tuned_ns = now_ns;
		set_period(image, (double)image->period_bytes * factor);
	}
}
