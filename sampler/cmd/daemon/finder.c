/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/finder.h"

#include "pprof/text/clock.h"
#include "pprof/text/throttle.h"
#include "sampler/linux/epoll_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/fanotify.h>
#include <unistd.h>

enum {
	YOUNG = 1024, /* processes that have opened the library and offer nothing yet; a sweep finds more */
	FIRST_LOOK_NS = 2 * 1000000,
	LAST_LOOK_NS = 500 * 1000000, /* between looks, at most */
	YOUNG_FOR_NS_S = 10,
	/* If a process opens the library again within this time, its looks do not begin anew: a process
	 * that does so in a loop would be looked at every 2 ms. If it has executed another program
	 * meanwhile, a look that is still to come finds that, 128 ms later at most. */
	AGAIN_NS = 250 * 1000000,
	/* Notices wake the daemon so often at most. Meanwhile the kernel keeps one notice for each
	 * process. */
	REST_NS = 2 * 1000000,
	NOTICES_AT_ONCE = 4096,
	CHEAP_NS = 200 * 1000, /* a shorter look is charged to no account */
	/* Accounts that have spent some. Beyond, the account that has spent the least is forgotten. */
	SCAN_BUDGET_ACCOUNTS = 256,
	SCAN_BUDGET_PART = 20, /* a bucket is filled with one in so many nanoseconds */
};

/*
 * The CPU time of looks at the processes of one account: a bucket that time fills again. How long a look
 * takes is up to the process, whose maps may have 65,530 lines and more. So an account that has spent its
 * bucket is passed over for a while, and no other account is.
 */
struct scan_budget {
	uint64_t burst_ns; /* in a full bucket */
	size_t count;
	struct scan_budget_bucket {
		uint64_t account;
		struct throttle throttle; /* of CPU time in nanoseconds; a look may leave a debt */
	} buckets[SCAN_BUDGET_ACCOUNTS];
};

struct young {
	pid_t pid;
	uint64_t since_ns, next_ns, wait_ns;
};

struct finder {
	struct finder_setup setup;
	int fd, error;
	struct young young[YOUNG];
	uint32_t count, next_young; /* looks go on at next_young, downwards */
	DIR *proc;                  /* the sweep that is under way; NULL: there is none */
	struct scan_budget budget;
	uint64_t sweep_ns; /* when the next sweep is due */
	uint64_t rest_ns;  /* notices wake us again then; 0: they do now */
};

static void open_notices(struct finder *finder)
{
	finder->fd = -1;
	finder->error = -ENOENT;
	if (!finder->setup.library)
		return;
	finder->fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
	finder->error = finder->fd < 0 ? -errno : 0;
	if (finder->fd < 0)
		return;
	if (fanotify_mark(finder->fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, finder->setup.library) != 0)
		finder->error = -errno;
	else
		finder->error = epoll_set_add(finder->setup.epoll_fd, finder->fd);
	if (finder->error) {
		close(finder->fd);
		finder->fd = -1;
	}
}

struct finder *finder_new(const struct finder_setup *setup)
{
	struct finder *finder = calloc(1, sizeof(*finder));

	if (!finder)
		return NULL;
	finder->setup = *setup;
	finder->budget.burst_ns = setup->burst_ns;
	open_notices(finder);
	return finder;
}

void finder_free(struct finder *finder)
{
	if (finder && finder->fd >= 0)
		epoll_set_close(finder->setup.epoll_fd, finder->fd);
	if (finder && finder->proc)
		closedir(finder->proc);
	free(finder);
}

int finder_fd(const struct finder *finder)
{
	return finder->fd;
}

int finder_error(const struct finder *finder)
{
	return finder->error;
}

/* ---- what looks may cost */

static struct throttle_rate rate_of(const struct scan_budget *budget)
{
	return (struct throttle_rate){
	    .burst = (int64_t)budget->burst_ns, .units = 1, .step_ns = SCAN_BUDGET_PART};
}

/* Full buckets are forgotten. */
static void fill_buckets(struct scan_budget *budget, uint64_t now_ns)
{
	const struct throttle_rate rate = rate_of(budget);
	size_t kept = 0;

	for (size_t i = 0; i < budget->count; i++) {
		struct scan_budget_bucket bucket = budget->buckets[i];

		throttle_fill(&bucket.throttle, &rate, now_ns);
		if (bucket.throttle.left < rate.burst)
			budget->buckets[kept++] = bucket;
	}
	budget->count = kept;
}

static struct scan_budget_bucket *find_bucket(const struct scan_budget *budget, uint64_t account)
{
	for (size_t i = 0; i < budget->count; i++)
		if (budget->buckets[i].account == account)
			return (struct scan_budget_bucket *)&budget->buckets[i];
	return NULL;
}

/* Whether an account has nothing left. Only then does the finder ask which account a process is of. */
static bool scan_budget_is_needed(struct scan_budget *budget, uint64_t now_ns)
{
	fill_buckets(budget, now_ns);
	for (size_t i = 0; i < budget->count; i++)
		if (budget->buckets[i].throttle.left <= 0)
			return true;
	return false;
}

static bool scan_budget_allows(const struct scan_budget *budget, uint64_t account)
{
	const struct scan_budget_bucket *bucket = find_bucket(budget, account);

	return !bucket || bucket->throttle.left > 0;
}

/* A free bucket, or that of the account which has the most left. */
static struct scan_budget_bucket *make_bucket(struct scan_budget *budget)
{
	struct scan_budget_bucket *found = &budget->buckets[0];

	if (budget->count < SCAN_BUDGET_ACCOUNTS)
		return &budget->buckets[budget->count++];
	for (size_t i = 1; i < budget->count; i++)
		if (budget->buckets[i].throttle.left > found->throttle.left)
			found = &budget->buckets[i];
	return found;
}

static void scan_budget_spend(struct scan_budget *budget, uint64_t account, uint64_t cpu_ns, uint64_t now_ns)
{
	const struct throttle_rate rate = rate_of(budget);
	struct scan_budget_bucket *bucket = find_bucket(budget, account);

	if (!bucket) {
		bucket = make_bucket(budget);
		*bucket = (struct scan_budget_bucket){.account = account};
	}
	throttle_fill(&bucket->throttle, &rate, now_ns);
	throttle_spend(&bucket->throttle, cpu_ns);
}

/* ---- looks */

enum outcome {
	AGAIN, /* look at the process again */
	DONE,
	PASSED, /* there was no look */
};

static enum outcome look_at(struct finder *finder, pid_t pid, bool noticed, uint64_t now_ns)
{
	const struct finder_setup *setup = &finder->setup;

	if (scan_budget_is_needed(&finder->budget, now_ns) &&
	    !scan_budget_allows(&finder->budget, setup->account(setup->context, pid)))
		return PASSED;
	const uint64_t before_ns = clock_thread_cpu_ns();
	const bool done = setup->look(setup->context, pid, noticed);
	const uint64_t cpu_ns = clock_thread_cpu_ns() - before_ns;
	if (cpu_ns >= CHEAP_NS)
		scan_budget_spend(&finder->budget, setup->account(setup->context, pid), cpu_ns, now_ns);
	return done ? DONE : AGAIN;
}

/* ---- young processes */

static struct young *find_young(struct finder *finder, pid_t pid)
{
	for (uint32_t i = 0; i < finder->count; i++)
		if (finder->young[i].pid == pid)
			return &finder->young[i];
	return NULL;
}

static void forget_young(struct finder *finder, struct young *young)
{
	*young = finder->young[--finder->count];
}

static void note_young(struct finder *finder, pid_t pid, uint64_t now_ns)
{
	struct young *young = find_young(finder, pid);

	if (young ? now_ns - young->since_ns < AGAIN_NS : finder->count == YOUNG)
		return;
	if (!young)
		young = &finder->young[finder->count++];
	*young = (struct young){pid, now_ns, now_ns + FIRST_LOOK_NS, FIRST_LOOK_NS};
}

static void look_at_one(struct finder *finder, struct young *young, uint64_t now_ns)
{
	if (look_at(finder, young->pid, true, now_ns) == DONE ||
	    now_ns - young->since_ns > YOUNG_FOR_NS_S * UINT64_C(1000000000)) {
		forget_young(finder, young);
		return;
	}
	if (young->wait_ns < LAST_LOOK_NS)
		young->wait_ns *= 2;
	young->next_ns = now_ns + young->wait_ns;
}

/* Goes on where the last call has ended. */
static void look_at_young(struct finder *finder, uint64_t now_ns)
{
	const uint64_t began_ns = clock_now_ns();

	for (uint32_t left = finder->count; left > 0 && finder->count > 0; left--) {
		if (finder->next_young == 0 || finder->next_young > finder->count)
			finder->next_young = finder->count;
		struct young *young = &finder->young[--finder->next_young];
		if (now_ns < young->next_ns)
			continue;
		look_at_one(finder, young, now_ns);
		if (clock_now_ns() - began_ns >= finder->setup.budget_ns)
			break;
	}
}

/* ---- notices */

/* If notices were lost, a sweep finds the processes. */
static void take_notice(struct finder *finder, const struct fanotify_event_metadata *notice, uint64_t now_ns)
{
	if (notice->fd >= 0)
		close(notice->fd);
	if (notice->mask & FAN_Q_OVERFLOW)
		finder->sweep_ns = 0;
	else if (notice->pid > 0 && notice->pid != getpid()) {
		finder->setup.opened(finder->setup.context, notice->pid);
		note_young(finder, notice->pid, now_ns);
	}
}

/* Returns how many notices there were. */
static int read_notices(struct finder *finder, uint64_t now_ns)
{
	_Alignas(struct fanotify_event_metadata) char bytes[8192];
	int n = 0;
	while (finder->fd >= 0 && n < NOTICES_AT_ONCE) {
		ssize_t left = read(finder->fd, bytes, sizeof(bytes));

		if (left <= 0)
			break;
		const struct fanotify_event_metadata *notice = (const void *)bytes;
		for (; FAN_EVENT_OK(notice, left); notice = FAN_EVENT_NEXT(notice, left), n++) {
			if (notice->vers != FANOTIFY_METADATA_VERSION)
				return n;
			take_notice(finder, notice, now_ns);
		}
	}
	return n;
}

static void take_notices(struct finder *finder, uint64_t now_ns)
{
	if (now_ns < finder->rest_ns)
		return;
	if (read_notices(finder, now_ns) > 0) {
		if (!finder->rest_ns)
			epoll_set_remove(finder->setup.epoll_fd, finder->fd);
		finder->rest_ns = now_ns + REST_NS;
	} else if (finder->rest_ns) {
		const bool wakes = epoll_set_add(finder->setup.epoll_fd, finder->fd) == 0;

		finder->rest_ns = wakes ? 0 : now_ns + REST_NS;
	}
}

/* ---- the sweep */

/* Does a part of the sweep; the next call goes on. */
static void sweep_on(struct finder *finder, uint64_t now_ns)
{
	const struct finder_setup *setup = &finder->setup;
	const uint64_t began_ns = clock_now_ns();
	struct dirent *entry;

	errno = 0;
	while ((entry = readdir(finder->proc))) {
		pid_t pid = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? atoi(entry->d_name) : 0;

		if (pid > 0 && pid != getpid()) {
			if (look_at(finder, pid, false, now_ns) == PASSED)
				setup->passed(setup->context, pid);
			if (clock_now_ns() - began_ns >= setup->budget_ns)
				return;
		}
		errno = 0;
	}
	const bool whole = errno == 0;
	closedir(finder->proc);
	finder->proc = NULL;
	if (whole)
		setup->swept(setup->context);
}

static void sweep(struct finder *finder, uint64_t now_ns)
{
	if (!finder->proc && now_ns >= finder->sweep_ns) {
		finder->sweep_ns = now_ns + finder->setup.sweep_ns;
		finder->proc = opendir("/proc");
	}
	if (finder->proc)
		sweep_on(finder, now_ns);
}

bool finder_read(struct finder *finder, uint64_t now_ns)
{
	(void)read_notices(finder, now_ns);
	return finder->fd >= 0;
}

void finder_hurry(struct finder *finder)
{
	finder->sweep_ns = 0;
}

uint64_t finder_run(struct finder *finder, uint64_t now_ns)
{
	take_notices(finder, now_ns);
	look_at_young(finder, now_ns);
	sweep(finder, now_ns);
	uint64_t due_ns = finder->proc ? now_ns : finder->sweep_ns;
	for (uint32_t i = 0; i < finder->count; i++)
		if (finder->young[i].next_ns < due_ns)
			due_ns = finder->young[i].next_ns;
	if (finder->rest_ns && finder->rest_ns < due_ns)
		due_ns = finder->rest_ns;
	return due_ns > now_ns ? due_ns - now_ns : 0;
}
