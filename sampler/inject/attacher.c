/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/attacher.h"

#include "pprof/text/clock.h"
#include "sampler/inject/reap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long we wait for the result after giving up; and for the end of the process after its result. */
static const uint64_t answer_ns = UINT64_C(10) * CLOCK_NS_PER_S, end_ns = UINT64_C(5) * CLOCK_NS_PER_S;

struct result {
	int error;
	struct attachment attachment;
};

/* A target may have a million symbols in each of its mappings. Where the soft limit is the hard one, too, the
 * kernel kills without a core dump. */
static void limit_work(void)
{
	const struct rlimit limit = {ATTACHER_CPU_S, ATTACHER_CPU_S};

	(void)setrlimit(RLIMIT_CPU, &limit); /* fails if there is a lower limit already */
}

static void run_child(int fd, int (*run)(struct attachment *attachment, const struct attachment_wish *wish),
    const struct attachment_wish *given)
{
	struct attachment_wish wish = *given;
	struct result result;
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	prctl(PR_SET_NAME, "heaptap-attach");
	signal(SIGALRM, SIG_DFL); /* ends us if we keep a thread stopped: see stopped_thread.h */
	signal(SIGTSTP, SIG_IGN); /* else the thread would stand still together with us */
	sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	limit_work();
	wish.cancel_fd = fd;
	result.error = run(&result.attachment, &wish);
	if (send(fd, &result, sizeof(result), MSG_NOSIGNAL) != (ssize_t)sizeof(result) && !result.error &&
	    run == attachment_begin) {
		wish.cancel_fd = -1;
		(void)attachment_end(&result.attachment, &wish); /* the sampler is gone */
	}
	_exit(EXIT_SUCCESS);
}

int attacher_start(struct attacher *attacher,
    int (*run)(struct attachment *attachment, const struct attachment_wish *wish),
    const struct attachment_wish *wish)
{
	int pair[2];

	*attacher = (struct attacher){.fd = -1, .region = wish->region};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	attacher->child = fork();
	if (attacher->child == 0) {
		close(pair[0]);
		run_child(pair[1], run, wish);
	}
	int error = attacher->child < 0 ? -errno : 0;
	close(pair[1]);
	if (error)
		close(pair[0]);
	else
		attacher->fd = pair[0];
	return error;
}

void attacher_give_up(struct attacher *attacher)
{
	(void)shutdown(attacher->fd, SHUT_WR); /* looks to the attacher like our death */
	if (!attacher->given_up_ns)
		attacher->given_up_ns = clock_now_ns();
}

static uint64_t patience_ns(const struct attacher *attacher)
{
	const uint64_t passed_ns = clock_now_ns() - attacher->given_up_ns;

	return passed_ns < answer_ns ? answer_ns - passed_ns : 0;
}

bool attacher_is_late(const struct attacher *attacher)
{
	return attacher->given_up_ns && !patience_ns(attacher);
}

static void await_result(const struct attacher *attacher)
{
	struct pollfd done = {.fd = attacher->fd, .events = POLLIN};

	while (
	    poll(&done, 1, attacher->given_up_ns ? (int)(patience_ns(attacher) / CLOCK_NS_PER_MS) : -1) < 0 &&
	    errno == EINTR)
		;
}

/* Nobody will tell how the attaching ended. If the library still gets into the target, it leaves again or
 * samples nothing. */
static void abandon(const struct attacher *attacher)
{
	uint32_t attaching = REGION_ATTACHING;

	if (!attacher->region)
		return;
	struct region_header *header = region_header(attacher->region);
	(void)atomic_compare_exchange_strong(&header->attaching, &attaching, REGION_GIVEN_UP);
	atomic_store(&header->mode, REGION_MODE_OFF);
}

int attacher_finish(struct attacher *attacher, struct attachment *attachment)
{
	struct result result = {.error = -EIO};
	ssize_t got;

	await_result(attacher);
	do
		got = recv(attacher->fd, &result, sizeof(result), MSG_DONTWAIT);
	/* ECONNRESET: the attacher has not read that it was given up */
	while (got < 0 && (errno == EINTR || errno == ECONNRESET));
	const bool silent = got < 0;
	if (got != (ssize_t)sizeof(result)) {
		result = (struct result){.error = -EIO};
		snprintf(result.attachment.reason, sizeof(result.attachment.reason),
		    "the attaching process %s",
		    silent ? "does not answer"
		           : "ended without a result: it was killed, or it takes too much time to "
		             "read the target's memory");
		abandon(attacher);
	}
	*attachment = result.attachment;
	close(attacher->fd);
	reap_within(attacher->child, silent ? 0 : end_ns);
	*attacher = (struct attacher){.fd = -1};
	return result.error;
}
