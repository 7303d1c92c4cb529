/* SPDX-License-Identifier: Apache-2.0 */
#include "push/target_queue.h"

#include "pprof/analysis/since.h"
#include "pprof/codec/decode.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "push/command_line.h"
#include "push/delivery.h"
#include "push/protocols.h"

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

int target_queue_open(struct target_queue *queue, struct target *target)
{
	char path[PATH_MAX];
	int err = spool_path(target->name, path, sizeof(path));

	*queue = (struct target_queue){
	    .target = target, .spool = {.folder_fd = -1, .state_fd = -1, .lock_fd = -1}};
	if (!err)
		err = spool_open(&queue->spool, path, target->spool_bytes);
	if (err) {
		log_line("cannot use the spool %s: %s", err == -ENOENT ? target->name : path, strerror(-err));
		return err;
	}
	return 0;
}

/* Forgets processes that were silent for so long that no file of theirs would be taken: otherwise the notes
 * of a machine that starts a program each second would fill its disk. What was accepted of a process that may
 * still live is kept for longer. */
static void forget_some(struct target_queue *queue)
{
	uint64_t past_ns = target_limits(queue->target)->past_ns, now = clock_now_ns();
	int64_t age_ns = OLDEST_NS + OLDEST_NS / 4;

	if (queue->spool.lock_fd < 0 || queue->forget_ns > now)
		return;
	spool_forget(&queue->spool, age_ns, past_ns ? 2 * (int64_t)past_ns : age_ns);
	spool_tidy(&queue->spool);
	queue->forget_ns = now + FORGET_NS;
}

static void target_queue_clear(struct target_queue *queue)
{
	http_request_fini(&queue->request);
	profile_free(queue->kept);
	queue->kept = NULL;
	queue->next_due = queue->unwanted = false;
}

void target_queue_close(struct target_queue *queue, struct http *http)
{
	if (queue->call)
		http_cancel(http, queue->call);
	queue->call = NULL;
	target_queue_clear(queue);
	number_set_fini(&queue->said);
	spool_close(&queue->spool);
}

/* ---- into the spool */

/* The profile is older than one that was taken. Its time does not tell any more whether it was taken, too.
 * What was allocated until then is in the next profile that is sent. */
static void pass_over_new(
    struct target_queue *queue, const struct origin *origin, uint64_t process, int64_t taken_ns)
{
	uint64_t now = clock_now_ns();

	if (queue->passed_over_ns == origin->time_ns) /* it is offered again, because of another queue */
		return;
	queue->passed_over_ns = origin->time_ns;
	spool_passed_over(&queue->spool);
	if (queue->say_ns > now || number_set_has(&queue->said, process))
		return;
	number_set_add(&queue->said, process);
	queue->say_ns = now + SAY_NS;
	log_line(
	    "%s: profiles of pid %d are passed over until the clock catches up: it was set back by %.0f s",
	    queue->target->name, (int)origin->pid, (double)(taken_ns - origin->time_ns) / 1e9);
}

int target_queue_offer(struct target_queue *queue, const struct origin *origin, const void *bytes,
    size_t length, bool may_wait, bool is_new)
{
	uint64_t process = delivery_process(origin);
	struct spool_entry entry = {.time_ns = origin->time_ns, .process = process};
	int64_t now = clock_unix_ns(), taken_ns;
	int err;

	if (!process || origin->kind != ORIGIN_LIVE || *origin->event || origin->time_ns <= 0 ||
	    origin->time_ns < now - OLDEST_NS ||
	    delivery_age(queue->target, origin->time_ns, now) != DELIVERY_IN_TIME)
		return 0;
	if (queue->spool.lock_fd < 0 && !spool_lock(&queue->spool))
		spool_scan(&queue->spool);
	taken_ns = spool_taken(&queue->spool, process);
	if (is_new && origin->time_ns < taken_ns)
		pass_over_new(queue, origin, process, taken_ns);
	if (origin->time_ns <= taken_ns)
		return 0;
	if (may_wait && !queue->failures && queue->spool.lock_fd >= 0 && spool_is_full(&queue->spool, length))
		return -EAGAIN;
	entry.last = origin_is_last(origin);
	err = spool_add(&queue->spool, &entry, bytes, length);
	if (!err)
		err = spool_take(&queue->spool, process, origin->time_ns);
	if (err && !queue->spool_full)
		log_line("%s: cannot write to the spool: %s; profiles wait where they are", queue->spool.path,
		    strerror(-err));
	queue->spool_full = err != 0;
	return err;
}

/* ---- out of it */

/* Removes the head if there is no point in sending it; true: look at the next. */
static bool pass_over(
    struct target_queue *queue, const struct spool_entry *head, const struct since *accepted)
{
	/* We were killed between the acknowledgement and its removal, before it was counted or after that. */
	if (accepted->time_ns >= head->time_ns) {
		if (queue->spool.counters.sending == head->number) {
			spool_sent(&queue->spool);
			return true;
		}
		/* Or a later one was sent before it, as a probe. */
		if (accepted->time_ns > head->time_ns)
			spool_passed_over(&queue->spool);
		spool_skip(&queue->spool);
		return true;
	}
	if (delivery_age(queue->target, head->time_ns, clock_unix_ns()) == DELIVERY_TOO_OLD) {
		log_line("%s: a profile dropped: it is older than %s takes", queue->target->name,
		    url_protocol_title(queue->target->url.protocol));
		spool_drop(&queue->spool);
		return true;
	}
	return false;
}

/* Makes the request of the head. 0; -ENODATA: nothing of it is wanted; or -errno with a line in error. */
static int prepare(struct target_queue *queue, const struct since *accepted, char *error, size_t error_bytes)
{
	struct delivery delivery = {0};
	struct profile *profile;
	struct origin origin;
	char cuts[512];
	uint8_t *bytes;
	size_t length;
	enum decode_error fault;
	int err = spool_read(&queue->spool, &bytes, &length);

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
	err = delivery_make(&delivery, queue->target, profile, &origin, accepted);
	profile_free(queue->kept);
	queue->kept = NULL;
	if (!err)
		err = since_keep(profile, &origin, &queue->kept);
	if (err)
		snprintf(error, error_bytes, "%s", strerror(-err));
	else if (!delivery.part_count)
		err = -ENODATA;
	else
		err = protocols_request(queue->target, &delivery, &queue->request, error, error_bytes);
	delivery_cuts(&delivery, cuts, sizeof(cuts));
	if (!err && *cuts && !queue->failures)
		log_line("%s: of pid %d: %s", queue->target->name, (int)origin.pid, cuts + 2);
	delivery_fini(&delivery);
	profile_free(profile);
	return err;
}

static void wait_longer(struct target_queue *queue, uint64_t asked_ns, const char *why)
{
	uint64_t random, delay;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = clock_now_ns();
	delay = answer_retry_delay_ns(++queue->failures, random, asked_ns);
	queue->due_ns = clock_now_ns() + delay;
	if (strcmp(queue->trouble, why) != 0 || verbosity > 0)
		log_line("%s: %s; again in %.1f s", queue->target->name, why, (double)delay / 1e9);
	snprintf(queue->trouble, sizeof(queue->trouble), "%s", why);
}

/* The server took a probe, so the entry that it did not take for so long is given up. */
static void give_up_poison(struct target_queue *queue, const char *answer)
{
	const struct spool_entry *head;

	queue->spool.in_flight = queue->poison.number;
	head = spool_head(&queue->spool);
	if (head && head->number == queue->poison.number) {
		log_line("%s: a profile was given up, for the server takes others; it is in %s/rejected: %s",
		    queue->target->name, queue->spool.path, answer);
		spool_give_up(&queue->spool, answer);
	}
	queue->spool.in_flight = 0;
}

/* The head was acknowledged: that is noted first, then the head is removed. */
static void commit(struct target_queue *queue)
{
	int err = spool_accept_head(&queue->spool, queue->kept);
	bool probed = queue->poison.probe && spool_head(&queue->spool)->number == queue->poison.probe;
	char answer[ANSWER_TEXT_BYTES];

	queue->next_due = err != 0;
	if (err) {
		/* Not sent again, and nothing else is, until it is. */
		queue->due_ns = clock_now_ns() + RETRY_DISK_NS;
		if (!queue->spool_full)
			log_line("%s: cannot write to the spool: %s; nothing is sent until that works",
			    queue->spool.path, strerror(-err));
		queue->spool_full = true;
		return;
	}
	if (queue->spool_full)
		log_line("%s: writing to the spool works again", queue->spool.path);
	queue->spool_full = false;
	if (*queue->trouble)
		log_line("%s: sending works again", queue->target->name);
	snprintf(answer, sizeof(answer), "%s", queue->trouble);
	*queue->trouble = '\0';
	queue->failures = 0;
	queue->due_ns = 0;
	if (verbosity > 0 && !queue->unwanted)
		log_line("%s: sent, %zu wait", queue->target->name, queue->spool.count - 1);
	if (queue->unwanted)
		spool_skip(&queue->spool);
	else
		spool_sent(&queue->spool);
	if (probed && !queue->unwanted)
		give_up_poison(queue, answer);
	queue->poison = (struct poison_check){0};
	target_queue_clear(queue);
}

/* The head cannot be sent now, or never. Returns whether to look at the next entry. */
static bool put_aside(struct target_queue *queue, int err, const char *error)
{
	target_queue_clear(queue);
	if (err == -EBADMSG || err == -ENOENT || err == -EFBIG || err == -EINVAL || err == -EOVERFLOW) {
		log_line("%s: a profile in the spool cannot be sent: %s", queue->target->name, error);
		spool_reject(&queue->spool, error);
		return true;
	}
	queue->spool.in_flight = queue->spool.counters.sending = 0;
	wait_longer(queue, 0, *error ? error : strerror(-err));
	return false;
}

/* Deals with the head. Returns whether to look at the next entry. */
static bool start_head(struct target_queue *queue, struct http *http)
{
	const struct spool_entry *head = spool_head(&queue->spool);
	char error[ANSWER_TEXT_BYTES] = "";
	struct since accepted;
	int err = spool_accepted(&queue->spool, head->process, &accepted);

	if (err)
		return put_aside(queue, err, error);
	if (pass_over(queue, head, &accepted)) {
		profile_free((struct profile *)accepted.first);
		return true;
	}
	queue->spool.in_flight = head->number;
	err = prepare(queue, &accepted, error, sizeof(error));
	if (accepted.unknown && !err && !queue->failures)
		log_line("%s: what was sent before is not known any more: no alloc_* this time",
		    queue->target->name);
	profile_free((struct profile *)accepted.first);
	queue->unwanted = err == -ENODATA;
	if (queue->unwanted) {
		commit(queue);
		return !queue->next_due;
	}
	if (!err) {
		spool_sending(&queue->spool);
		queue->call = http_start(http, &queue->request, &queue->answer, queue);
		err = queue->call ? 0 : -ENOMEM;
	}
	return err ? put_aside(queue, err, error) : false;
}

/* The probe that is due is sent instead of the head, if it is there still. */
static void choose_probe(struct target_queue *queue)
{
	if (!queue->poison.probe || queue->next_due)
		return;
	queue->spool.in_flight = queue->poison.probe;
	if (spool_head(&queue->spool) && spool_head(&queue->spool)->number == queue->poison.probe)
		return;
	queue->spool.in_flight = queue->poison.probe = 0;
}

uint64_t target_queue_step(struct target_queue *queue, struct http *http)
{
	uint64_t now = clock_now_ns();

	if (queue->spool.lock_fd < 0) {
		bool locked = spool_lock(&queue->spool);

		spool_scan(&queue->spool);
		if (!locked)
			return RESCAN_NS;
	}
	forget_some(queue);
	if (queue->call)
		return UINT64_MAX;
	if (queue->due_ns > now)
		return queue->due_ns - now;
	queue->due_ns = 0;
	if (queue->look_ns <= now && !queue->next_due) {
		spool_look(&queue->spool);
		queue->look_ns = now + RESCAN_NS;
	}
	if (queue->next_due)
		commit(queue);
	choose_probe(queue);
	while (!queue->next_due && spool_head(&queue->spool) && start_head(queue, http))
		;
	now = clock_now_ns();
	if (queue->call)
		return UINT64_MAX;
	if (queue->due_ns)
		return queue->due_ns > now ? queue->due_ns - now : 0;
	return queue->look_ns > now ? queue->look_ns - now : 0;
}

enum { POISON_ATTEMPTS = 5 }; /* at least so many, however short the time */

/* An entry was neither accepted nor refused. Returns whether to send a probe. */
static bool is_probe_due(
    struct poison_check *poison, uint64_t number, bool answered, uint64_t now_ns, uint64_t give_up_ns)
{
	if (!answered) {
		*poison = (struct poison_check){0};
		return false;
	}
	if (number == poison->probe) {
		*poison = (struct poison_check){.number = poison->number, .since_ns = now_ns};
		return false;
	}
	if (number != poison->number)
		*poison = (struct poison_check){.number = number, .since_ns = now_ns};
	poison->attempts++;
	return poison->attempts >= POISON_ATTEMPTS && now_ns - poison->since_ns >= give_up_ns;
}

/* Was all of the request sent, so that the server may have taken it, and no answer read? */
static bool is_unread(const struct target_queue *queue, const char *error)
{
	return *error && queue->answer.request_sent;
}

/* Another attempt is due after a time. A probe is sent at once, even if the server asked for a delay: it is
 * one request in each `give-up`. */
static void try_later(struct target_queue *queue, const char *error, const char *text)
{
	uint64_t number = queue->spool.in_flight;
	bool probe = is_probe_due(&queue->poison, number, !*error, clock_now_ns(), queue->target->give_up_ns);

	spool_retried(&queue->spool, is_unread(queue, error));
	wait_longer(queue, answer_retry_after_ns(queue->answer.retry_after, clock_unix_ns()), text);
	queue->poison.probe = probe ? spool_another(&queue->spool, number) : 0;
	if (queue->poison.probe)
		queue->due_ns = 0;
}

/* The server refuses the token, and a profile waits a day for another one. */
static void try_with_another_token(struct target_queue *queue, const char *text)
{
	if (!spool_is_denied_for_a_day(&queue->spool)) {
		try_later(queue, "", text);
		return;
	}
	log_line("%s: the server has refused the token for a day: a profile was moved to %s/rejected: %s",
	    queue->target->name, queue->spool.path, text);
	spool_reject(&queue->spool, text);
	queue->poison = (struct poison_check){0};
}

void target_queue_answered(struct target_queue *queue, const char *error)
{
	char text[ANSWER_TEXT_BYTES] = "";
	enum answer_verdict verdict = ANSWER_LATER;

	queue->call = NULL;
	if (*error)
		snprintf(text, sizeof(text), "%s", error);
	else
		verdict = protocols_judge(queue->target, &queue->request, &queue->answer, text);
	spool_judged(&queue->spool, verdict);
	switch (verdict) {
	case ANSWER_ACCEPTED:
		commit(queue);
		return;
	case ANSWER_OTHER_PATH:
		queue->target->path_missing = true;
		queue->spool.in_flight = queue->spool.counters.sending = 0;
		break;
	case ANSWER_LATER:
		try_later(queue, error, text);
		break;
	case ANSWER_DENIED:
		try_with_another_token(queue, text);
		break;
	case ANSWER_REFUSED:
		log_line("%s: a profile was refused, it is in %s/rejected: %s", queue->target->name,
		    queue->spool.path, text);
		spool_reject(&queue->spool, text);
		queue->poison = (struct poison_check){0};
		/* Neither path is known there now; the next one begins with the first again. */
		if (queue->answer.http_status == 404)
			queue->target->path_missing = false;
		queue->failures = 0;
		queue->due_ns = 0;
		break;
	}
	target_queue_clear(queue);
}
