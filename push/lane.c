/* SPDX-License-Identifier: Apache-2.0 */
#include "push/lane.h"

#include "pprof/analysis/since.h"
#include "pprof/codec/decode.h"
#include "pprof/profile/origin.h"
#include "pprof/profile/profile.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "push/command_line.h"
#include "push/delivery.h"
#include "push/identity.h"
#include "push/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* A profile of that age is not taken any more even where the target has no window; processes that were
 * silent for longer are forgotten. */
#define OLDEST_NS (INT64_C(30) * 24 * 3600 * 1000000000)

#define RETRY_DISK_NS (UINT64_C(1) * 1000000000)
#define RESCAN_NS     (UINT64_C(1) * 1000000000)  /* for what other processes add, or send, or add no more */
#define SAY_NS        (UINT64_C(60) * 1000000000) /* between lines about processes whose clock went back */
#define FORGET_NS     (UINT64_C(3600) * 1000000000)

int lane_open(struct lane *lane, struct target *target)
{
	char path[PATH_MAX];
	int err = spool_path(target->name, path, sizeof(path));

	*lane = (struct lane){.target = target, .spool = {.folder_fd = -1, .state_fd = -1, .lock_fd = -1}};
	if (!err)
		err = spool_open(&lane->spool, path, target->spool_bytes);
	if (err) {
		log_line("cannot use the spool %s: %s", err == -ENOENT ? target->name : path, strerror(-err));
		return err;
	}
	return 0;
}

/* A process of which nothing was heard for longer than any of its files could be taken is forgotten, else the
 * notes of a machine that starts a program each second would fill its disk. Of one that may live still the
 * totals that were accepted are kept for longer. */
static void forget_some(struct lane *lane)
{
	uint64_t past_ns = target_limits(lane->target)->past_ns, now = clock_now_ns();
	int64_t age_ns = OLDEST_NS + OLDEST_NS / 4;

	if (lane->spool.lock_fd < 0 || lane->forget_ns > now)
		return;
	spool_forget(&lane->spool, age_ns, past_ns ? 2 * (int64_t)past_ns : age_ns);
	spool_tidy(&lane->spool);
	lane->forget_ns = now + FORGET_NS;
}

static void lane_clear(struct lane *lane)
{
	http_request_fini(&lane->request);
	profile_free(lane->kept);
	lane->kept = NULL;
	lane->next_due = lane->unwanted = false;
}

void lane_close(struct lane *lane, struct http *http)
{
	if (lane->call)
		http_cancel(http, lane->call);
	lane->call = NULL;
	lane_clear(lane);
	version_set_fini(&lane->said);
	spool_close(&lane->spool);
}

/* ---- into the spool */

/* An older one than was taken: whether it was taken, too, cannot be told by its time any more. What was
 * allocated until then is in the next one that is sent. */
static void pass_over_new(struct lane *lane, const struct origin *origin, uint64_t process, int64_t taken_ns)
{
	uint64_t now = clock_now_ns();

	if (lane->passed_over_ns == origin->time_ns) /* it is offered again, because of another lane */
		return;
	lane->passed_over_ns = origin->time_ns;
	spool_passed_over(&lane->spool);
	if (lane->say_ns > now || version_set_has(&lane->said, process))
		return;
	version_set_add(&lane->said, process);
	lane->say_ns = now + SAY_NS;
	log_line(
	    "%s: profiles of pid %d are passed over until the clock catches up: it was set back by %.0f s",
	    lane->target->name, (int)origin->pid, (double)(taken_ns - origin->time_ns) / 1e9);
}

int lane_offer(struct lane *lane, const struct origin *origin, const void *bytes, size_t length,
    bool may_wait, bool is_new)
{
	uint64_t process = identity_of_process(origin);
	struct spool_entry entry = {.time_ns = origin->time_ns, .process = process};
	int64_t now = clock_unix_ns(), taken_ns;
	int err;

	if (!process || origin->kind != ORIGIN_LIVE || *origin->event || origin->time_ns <= 0 ||
	    origin->time_ns < now - OLDEST_NS ||
	    delivery_age(lane->target, origin->time_ns, now) != DELIVERY_IN_TIME)
		return 0;
	if (lane->spool.lock_fd < 0 && !spool_lock(&lane->spool))
		spool_scan(&lane->spool);
	taken_ns = spool_taken(&lane->spool, process);
	if (is_new && origin->time_ns < taken_ns)
		pass_over_new(lane, origin, process, taken_ns);
	if (origin->time_ns <= taken_ns)
		return 0;
	if (may_wait && !lane->failures && lane->spool.lock_fd >= 0 && spool_is_full(&lane->spool, length))
		return -EAGAIN;
	entry.last = origin_is_last(origin);
	err = spool_add(&lane->spool, &entry, bytes, length);
	if (!err)
		err = spool_take(&lane->spool, process, origin->time_ns);
	if (err && !lane->spool_full)
		log_line("%s: cannot write to the spool: %s; profiles wait where they are", lane->spool.path,
		    strerror(-err));
	lane->spool_full = err != 0;
	return err;
}

/* ---- out of it */

/* Removes the head if there is no point in sending it; true: look at the next. */
static bool pass_over(struct lane *lane, const struct spool_entry *head, const struct since *accepted)
{
	/* We were killed between the acknowledgement and its removal, before it was counted or after that. */
	if (accepted->time_ns >= head->time_ns) {
		if (lane->spool.counters.sending == head->number) {
			spool_sent(&lane->spool);
			return true;
		}
		/* Or a later one was sent before it, as a probe. */
		if (accepted->time_ns > head->time_ns)
			spool_passed_over(&lane->spool);
		spool_skip(&lane->spool);
		return true;
	}
	if (delivery_age(lane->target, head->time_ns, clock_unix_ns()) == DELIVERY_TOO_OLD) {
		log_line("%s: a profile dropped: it is older than %s takes", lane->target->name,
		    url_protocol_title(lane->target->url.protocol));
		spool_drop(&lane->spool);
		return true;
	}
	return false;
}

/* Makes the request of the head. 0; -ENODATA: nothing of it is wanted; or -errno with a line in error. */
static int prepare(struct lane *lane, const struct since *accepted, char *error, size_t error_bytes)
{
	struct delivery delivery = {0};
	struct profile *profile;
	struct origin origin;
	char cuts[512];
	uint8_t *bytes;
	size_t length;
	enum decode_error fault;
	int err = spool_read(&lane->spool, &bytes, &length);

	if (err) {
		snprintf(error, error_bytes, "cannot be read: %s", strerror(-err));
		return err;
	}
	fault = decode_profile(bytes, length, DECODE_MAX_BYTES, &profile);
	free(bytes);
	if (fault) {
		snprintf(error, error_bytes, "%s", decode_error_string(fault));
		return fault == DECODE_NO_MEMORY ? -ENOMEM : -EBADMSG;
	}
	origin_read(&origin, profile);
	err = delivery_make(&delivery, lane->target, profile, &origin, accepted);
	profile_free(lane->kept);
	lane->kept = NULL;
	if (!err)
		err = since_keep(profile, &origin, &lane->kept);
	if (err)
		snprintf(error, error_bytes, "%s", strerror(-err));
	else if (!delivery.part_count)
		err = -ENODATA;
	else
		err = request_make(lane->target, &delivery, &lane->request, error, error_bytes);
	delivery_cuts(&delivery, cuts, sizeof(cuts));
	if (!err && *cuts && !lane->failures)
		log_line("%s: of pid %d: %s", lane->target->name, (int)origin.pid, cuts + 2);
	delivery_fini(&delivery);
	profile_free(profile);
	return err;
}

static void wait_longer(struct lane *lane, uint64_t asked_ns, const char *why)
{
	uint64_t random, delay;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = clock_now_ns();
	delay = retry_delay_ns(++lane->failures, random, asked_ns);
	lane->due_ns = clock_now_ns() + delay;
	if (strcmp(lane->trouble, why) != 0 || verbosity > 0)
		log_line("%s: %s; again in %.1f s", lane->target->name, why, (double)delay / 1e9);
	snprintf(lane->trouble, sizeof(lane->trouble), "%s", why);
}

/* The server took a probe: what it did not take for so long is no more tried. */
static void give_up_suspect(struct lane *lane, const char *answer)
{
	const struct spool_entry *head;

	lane->spool.in_flight = lane->suspect.number;
	head = spool_head(&lane->spool);
	if (head && head->number == lane->suspect.number) {
		log_line("%s: a profile was given up, for the server takes others; it is in %s/rejected: %s",
		    lane->target->name, lane->spool.path, answer);
		spool_give_up(&lane->spool, answer);
	}
	lane->spool.in_flight = 0;
}

/* It was acknowledged: first that is noted, then it is removed. */
static void commit(struct lane *lane)
{
	int err = spool_accept_head(&lane->spool, lane->kept);
	bool probed = lane->suspect.probe && spool_head(&lane->spool)->number == lane->suspect.probe;
	char answer[ANSWER_TEXT_BYTES];

	lane->next_due = err != 0;
	if (err) {
		/* Not sent again, and nothing else is, until it is. */
		lane->due_ns = clock_now_ns() + RETRY_DISK_NS;
		if (!lane->spool_full)
			log_line("%s: cannot write to the spool: %s; nothing is sent until that works",
			    lane->spool.path, strerror(-err));
		lane->spool_full = true;
		return;
	}
	if (lane->spool_full)
		log_line("%s: writing to the spool works again", lane->spool.path);
	lane->spool_full = false;
	if (*lane->trouble)
		log_line("%s: sending works again", lane->target->name);
	snprintf(answer, sizeof(answer), "%s", lane->trouble);
	*lane->trouble = '\0';
	lane->failures = 0;
	lane->due_ns = 0;
	if (verbosity > 0 && !lane->unwanted)
		log_line("%s: sent, %zu wait", lane->target->name, lane->spool.count - 1);
	if (lane->unwanted)
		spool_skip(&lane->spool);
	else
		spool_sent(&lane->spool);
	if (probed && !lane->unwanted)
		give_up_suspect(lane, answer);
	lane->suspect = (struct suspect){0};
	lane_clear(lane);
}

/* The head cannot be sent now, or never. True: look at the next. */
static bool put_aside(struct lane *lane, int err, const char *error)
{
	lane_clear(lane);
	if (err == -EBADMSG || err == -ENOENT || err == -EFBIG || err == -EINVAL || err == -EOVERFLOW) {
		log_line("%s: a profile in the spool cannot be sent: %s", lane->target->name, error);
		spool_reject(&lane->spool, error);
		return true;
	}
	lane->spool.in_flight = lane->spool.counters.sending = 0;
	wait_longer(lane, 0, *error ? error : strerror(-err));
	return false;
}

/* Deals with the head. True: look at the next. */
static bool start_head(struct lane *lane, struct http *http)
{
	const struct spool_entry *head = spool_head(&lane->spool);
	char error[ANSWER_TEXT_BYTES] = "";
	struct since accepted;
	int err = spool_accepted(&lane->spool, head->process, &accepted);

	if (err)
		return put_aside(lane, err, error);
	if (pass_over(lane, head, &accepted)) {
		profile_free((struct profile *)accepted.first);
		return true;
	}
	lane->spool.in_flight = head->number;
	err = prepare(lane, &accepted, error, sizeof(error));
	if (accepted.unknown && !err)
		log_line("%s: what was sent before is not known any more: no alloc_* this time",
		    lane->target->name);
	profile_free((struct profile *)accepted.first);
	lane->unwanted = err == -ENODATA;
	if (lane->unwanted) {
		commit(lane);
		return !lane->next_due;
	}
	if (!err) {
		spool_sending(&lane->spool);
		lane->call = http_start(http, &lane->request, &lane->answer, lane);
		err = lane->call ? 0 : -ENOMEM;
	}
	return err ? put_aside(lane, err, error) : false;
}

/* The probe that is due is sent instead of the head, if it is there still. */
static void choose_probe(struct lane *lane)
{
	if (!lane->suspect.probe || lane->next_due)
		return;
	lane->spool.in_flight = lane->suspect.probe;
	if (spool_head(&lane->spool) && spool_head(&lane->spool)->number == lane->suspect.probe)
		return;
	lane->spool.in_flight = lane->suspect.probe = 0;
}

uint64_t lane_step(struct lane *lane, struct http *http)
{
	uint64_t now = clock_now_ns();

	if (lane->spool.lock_fd < 0) {
		bool locked = spool_lock(&lane->spool);

		spool_scan(&lane->spool);
		if (!locked)
			return RESCAN_NS;
	}
	forget_some(lane);
	if (lane->call)
		return UINT64_MAX;
	if (lane->due_ns > now)
		return lane->due_ns - now;
	lane->due_ns = 0;
	if (lane->look_ns <= now && !lane->next_due) {
		spool_look(&lane->spool);
		lane->look_ns = now + RESCAN_NS;
	}
	if (lane->next_due)
		commit(lane);
	choose_probe(lane);
	while (!lane->next_due && spool_head(&lane->spool) && start_head(lane, http))
		;
	now = clock_now_ns();
	if (lane->call)
		return UINT64_MAX;
	if (lane->due_ns)
		return lane->due_ns > now ? lane->due_ns - now : 0;
	return lane->look_ns > now ? lane->look_ns - now : 0;
}

/* Was all of the request sent, so that the server may have taken it, and no answer read? */
static bool is_unread(const struct lane *lane, const char *error)
{
	return *error && lane->answer.request_sent;
}

/* Another attempt is due, after a time; but a probe at once, whatever the server asked for: it is one request
 * in `give-up`. */
static void try_later(struct lane *lane, const char *error, const char *text)
{
	uint64_t number = lane->spool.in_flight;
	bool probe =
	    suspect_failed(&lane->suspect, number, !*error, clock_now_ns(), lane->target->give_up_ns);

	spool_retried(&lane->spool, is_unread(lane, error));
	wait_longer(lane, retry_after_ns(lane->answer.retry_after, clock_unix_ns()), text);
	lane->suspect.probe = probe ? spool_another(&lane->spool, number) : 0;
	if (lane->suspect.probe)
		lane->due_ns = 0;
}

void lane_answered(struct lane *lane, const char *error)
{
	char text[ANSWER_TEXT_BYTES] = "";
	enum retry_verdict verdict = RETRY_LATER;

	lane->call = NULL;
	if (*error)
		snprintf(text, sizeof(text), "%s", error);
	else
		verdict = request_judge(lane->target, &lane->request, &lane->answer, text);
	spool_judged(&lane->spool, verdict);
	switch (verdict) {
	case RETRY_ACCEPTED:
		commit(lane);
		return;
	case RETRY_OTHER_PATH:
		lane->target->path_missing = true;
		lane->spool.in_flight = lane->spool.counters.sending = 0;
		break;
	case RETRY_LATER:
	case RETRY_DENIED:
		try_later(lane, error, text);
		break;
	case RETRY_REFUSED:
		log_line("%s: a profile was refused, it is in %s/rejected: %s", lane->target->name,
		    lane->spool.path, text);
		spool_reject(&lane->spool, text);
		lane->suspect = (struct suspect){0};
		/* Neither path is known there now; the next one begins with the first again. */
		if (lane->answer.http_status == 404)
			lane->target->path_missing = false;
		lane->failures = 0;
		lane->due_ns = 0;
		break;
	}
	lane_clear(lane);
}
