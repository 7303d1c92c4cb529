/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/writer.h"

#include "pprof/text/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CHILD_CPU_SECONDS = 120,
	CHILD_SECONDS = 600, /* real time: the child may hang in a file system */
	FORK_SECONDS = 10,   /* a refused fork is tried again for so long */
	CHILD_NICE = 5,
	IN_BATCH = -1, /* in place of the pid of a child that is being forked */
};
/* Debug files are read into memory, and a bad file can require any amount of it. */
#ifdef __SANITIZE_ADDRESS__
#define CHILD_MEMORY_BYTES RLIM_INFINITY /* its shadow memory counts */
#else
#define CHILD_MEMORY_BYTES (8ull << 30)
#endif

struct entry {
	struct entry *next;
	struct writer_item *item;
	struct entry *before; /* the item of the same series that has to be written first; NULL: none */
	pid_t pid;            /* of the child that writes it; 0: it waits; or IN_BATCH */
	uint64_t since_ns;    /* when it was submitted */
	bool alone;           /* it gets a child of its own, because it has killed one, or memory was short */
};

struct child {
	pid_t pid;      /* 0: none */
	int results_fd; /* gives an int32_t for each item, in their order: 0 or -errno */
	uint32_t told;  /* results so far */
	bool batch;     /* it has more than one item */
};

struct writer {
	struct entry *queue; /* the oldest of an account first; a child's batch in the child's order */
	uint64_t turn;       /* the account that was served last */
	struct child children[WRITER_CHILDREN + WRITER_URGENT_CHILDREN];
	struct writer_pace pace;
	bool hurry;
	uint64_t refused_ns; /* when a fork was first refused; 0: the last fork succeeded */
	void (*done)(void *context, const struct writer_item *item, int error);
	void *context;
};

enum { CHILDREN_MAX = sizeof(((struct writer *)NULL)->children) / sizeof(struct child) };

struct writer *writer_new(
    void (*done)(void *context, const struct writer_item *item, int error), void *context)
{
	struct writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->done = done;
	writer->context = context;
	return writer;
}

static void entry_free(struct entry *entry)
{
	entry->item->discard(entry->item);
	free(entry);
}

void writer_free(struct writer *writer)
{
	if (!writer)
		return;
	for (int i = 0; i < CHILDREN_MAX; i++)
		if (writer->children[i].pid)
			close(writer->children[i].results_fd);
	while (writer->queue) {
		struct entry *entry = writer->queue;

		writer->queue = entry->next;
		entry_free(entry);
	}
	free(writer);
}

/* ---- in the child */

static void prepare_child(bool yields)
{
	const struct rlimit memory = {CHILD_MEMORY_BYTES, CHILD_MEMORY_BYTES};
	const struct rlimit core = {0, 0};
	sigset_t none;

	sigemptyset(&none);
	/* A signal that is sent to all processes of the sampler's name, or by a terminal to its foreground,
	 * must not end a snapshot: it would be taken for a bad debug file. The symbol readers inherit this.
	 * */
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN); /* profiles are written while the unit is stopped */
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error to report */
	signal(SIGPIPE, SIG_IGN); /* the sampler may be gone; the profile is still wanted */
	signal(SIGALRM, SIG_DFL); /* the next two signals end a child whose time is over: see limit_time() */
	signal(SIGXCPU, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "heaptap-writer");
	setrlimit(RLIMIT_DATA, &memory); /* not RLIMIT_AS: the regions are mapped here too */
	setrlimit(RLIMIT_CORE, &core);
	if (yields && nice(CHILD_NICE) == -1)
		errno = 0; /* its nice value is higher already */
}

/* Each item has its own time limit: else the last item of a batch could be killed for the time that the
 * others took. */
static void limit_time(void)
{
	struct rusage used;
	struct rlimit cpu;

	if (getrusage(RUSAGE_SELF, &used) == 0 && getrlimit(RLIMIT_CPU, &cpu) == 0) {
		rlim_t seconds =
		    (rlim_t)used.ru_utime.tv_sec + (rlim_t)used.ru_stime.tv_sec + CHILD_CPU_SECONDS + 1;

		cpu.rlim_cur = seconds < cpu.rlim_max ? seconds : cpu.rlim_max;
		setrlimit(RLIMIT_CPU, &cpu);
	}
	alarm(CHILD_SECONDS);
}

/* When its time is over, the child leaves the rest of its batch to the next one. So an item that was
 * submitted meanwhile does not wait for others' slow files. */
static void run_child(
    const struct writer *writer, struct entry *const queue[], size_t count, int results_fd, bool yields)
{
	const uint64_t batch_ns = writer->pace.batch_ns, began_ns = clock_now_ns();
	void *shared = NULL;

	prepare_child(yields);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && batch_ns && clock_now_ns() - began_ns >= batch_ns)
			break;
		limit_time();
		int32_t error = queue[i]->item->write(queue[i]->item, &shared);
		if (write(results_fd, &error, sizeof(error)) != (ssize_t)sizeof(error))
			_exit(1);
		if (error == -ENOMEM)
			break; /* what was kept for later items takes too much memory */
	}
	_exit(0);
}

/* ---- starting children */

static struct child *free_child(struct writer *writer, bool urgent)
{
	struct child *first = NULL;
	int running = 0;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		running += writer->children[i].pid != 0;
		if (!writer->children[i].pid && !first)
			first = &writer->children[i];
	}
	return running < WRITER_CHILDREN || urgent ? first : NULL;
}

static bool may_start(const struct entry *entry)
{
	return !entry->pid && !entry->before;
}

static bool belongs_with(const struct entry *entry, const struct entry *first)
{
	return may_start(entry) && !entry->alone && entry->item->urgent == first->item->urgent &&
	    entry->item->detail == first->item->detail;
}

/* Is it the turn of its account first? Accounts take turns in the order of their numbers. */
static bool is_sooner(const struct writer *writer, const struct entry *entry, const struct entry *than)
{
	if (entry->item->urgent != than->item->urgent)
		return entry->item->urgent;
	return entry->item->account - writer->turn - 1 < than->item->account - writer->turn - 1;
}

/* The entry to write next: an urgent one, else one of the account whose turn it is, and the oldest of that
 * account. first: only entries that can be written with it; NULL: any. NULL if there is none. */
static struct entry *next_entry(const struct writer *writer, const struct entry *first)
{
	struct entry *found = NULL;

	for (struct entry *entry = writer->queue; entry; entry = entry->next)
		if ((first ? belongs_with(entry, first) : may_start(entry)) &&
		    (!found || is_sooner(writer, entry, found)))
			found = entry;
	return found;
}

/* Moves the entry to `*at`, and its account to the end of the turn. Returns the link behind the entry. */
static struct entry **move_entry(struct writer *writer, struct entry *entry, struct entry **at)
{
	struct entry **link = &writer->queue;

	writer->turn = entry->item->account;
	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	entry->next = *at;
	*at = entry;
	return &entry->next;
}

/* Makes a batch of the first entry and of others that one child can write with it: the child's share of all
 * that wait. They are at the front of the queue then. The caller sets their pid. */
static size_t make_batch(struct writer *writer, struct entry *first, struct entry *batch[WRITER_BATCH])
{
	size_t waiting = 0, count = 0;

	for (const struct entry *entry = writer->queue; entry && !first->alone; entry = entry->next)
		waiting += belongs_with(entry, first);
	size_t most = (waiting + WRITER_CHILDREN - 1) / WRITER_CHILDREN;
	if (most > WRITER_BATCH)
		most = WRITER_BATCH;
	struct entry **at = &writer->queue;
	for (struct entry *entry = first; entry; entry = count < most ? next_entry(writer, first) : NULL) {
		at = move_entry(writer, entry, at);
		entry->pid = IN_BATCH;
		batch[count++] = entry;
	}
	return count;
}

static size_t count_waiting(const struct writer *writer)
{
	size_t count = 0;

	for (const struct entry *entry = writer->queue; entry; entry = entry->next)
		count += entry->pid <= 0;
	return count;
}

/* Should all entries that may start wait for others that can be written with them? */
static bool is_patient(const struct writer *writer)
{
	const uint64_t now_ns = clock_now_ns();

	if (!writer->pace.patience_ns || writer->hurry || count_waiting(writer) >= WRITER_BATCH)
		return false;
	for (const struct entry *entry = writer->queue; entry; entry = entry->next)
		if (may_start(entry) &&
		    (entry->item->urgent || entry->alone ||
		        now_ns - entry->since_ns >= writer->pace.patience_ns))
			return false;
	return true;
}

static bool yields(const struct writer *writer, const struct entry *first)
{
	return !first->item->urgent && !writer->hurry &&
	    !(writer->pace.patience_ns && count_waiting(writer) >= WRITER_BATCH);
}

/* False if the kernel refuses a child; writer_tend tries again. */
static bool start_child(struct writer *writer, struct child *child, struct entry *first)
{
	struct entry *batch[WRITER_BATCH];
	int results[2];

	if (pipe2(results, O_CLOEXEC) != 0)
		return false;
	fcntl(results[0], F_SETFL, O_NONBLOCK);
	const bool polite = yields(writer, first);
	const size_t count = make_batch(writer, first, batch);
	pid_t pid = fork();
	if (pid == 0) {
		close(results[0]);
		run_child(writer, batch, count, results[1], polite);
	}
	close(results[1]);
	for (size_t i = 0; i < count; i++)
		batch[i]->pid = pid > 0 ? pid : 0;
	if (pid < 0) {
		close(results[0]);
		return false;
	}
	writer->refused_ns = 0;
	*child = (struct child){.pid = pid, .results_fd = results[0], .batch = count > 1};
	return true;
}

/* False if the kernel refuses a child. */
static bool start(struct writer *writer)
{
	struct entry *entry;
	struct child *child;

	while ((entry = next_entry(writer, NULL)) && !is_patient(writer) &&
	    (child = free_child(writer, entry->item->urgent)))
		if (!start_child(writer, child, entry))
			return false;
	return true;
}

void writer_submit(struct writer *writer, struct writer_item *item)
{
	struct entry *entry = calloc(1, sizeof(*entry)), **end = &writer->queue;

	if (!entry) {
		writer->done(writer->context, item, -ENOMEM);
		item->discard(item);
		return;
	}
	entry->item = item;
	entry->since_ns = clock_now_ns();
	for (; *end; end = &(*end)->next)
		if (item->series && (*end)->item->series == item->series)
			entry->before = *end;
	*end = entry;
	for (struct entry *older = entry->before; older && item->urgent; older = older->before)
		older->item->urgent = true; /* the client that waits for the item waits for these too */
	(void)start(writer);
}

void writer_set_pace(struct writer *writer, const struct writer_pace *pace)
{
	writer->pace = *pace;
}

void writer_set_hurry(struct writer *writer, bool hurry)
{
	if (hurry && !writer->hurry)
		for (int i = 0; i < CHILDREN_MAX; i++)
			if (writer->children[i].pid) /* only root may lower the nice value again */
				(void)setpriority(PRIO_PROCESS, (id_t)writer->children[i].pid,
				    getpriority(PRIO_PROCESS, 0));
	writer->hurry = hurry;
}

/* ---- what became of them */

/* The link to the entry that a child is writing. NULL if the child has reported all. */
static struct entry **link_of(struct writer *writer, pid_t pid)
{
	struct entry **link = &writer->queue;

	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	return *link ? link : NULL;
}

static void finish_entry(struct writer *writer, struct entry **link, int error)
{
	struct entry *entry = *link;

	*link = entry->next;
	for (struct entry *later = entry->next; later; later = later->next)
		if (later->before == entry)
			later->before = NULL;
	writer->done(writer->context, entry->item, error);
	entry_free(entry);
}

static void read_results(struct writer *writer, struct child *child)
{
	struct entry **link;
	int32_t error;

	while ((link = link_of(writer, child->pid)) &&
	    read(child->results_fd, &error, sizeof(error)) == (ssize_t)sizeof(error)) {
		child->told++;
		if (error == -ENOMEM && child->batch) {
			(*link)->pid = 0;
			(*link)->alone = true;
		} else {
			finish_entry(writer, link, error > 0 ? -EIO : error);
		}
	}
}

/* Without a child no result can arrive, so only the time limit ends the attempts. */
void writer_tend(struct writer *writer, uint64_t now_ns)
{
	bool running = false;

	for (int i = 0; i < CHILDREN_MAX; i++)
		if (writer->children[i].pid)
			read_results(writer, &writer->children[i]);
	if (!writer->queue)
		return;
	const bool refused = !start(writer);
	for (int i = 0; i < CHILDREN_MAX; i++)
		running = running || writer->children[i].pid;
	if (running || !refused)
		return;
	if (!writer->refused_ns)
		writer->refused_ns = now_ns;
	if (now_ns - writer->refused_ns < FORK_SECONDS * 1000000000ull)
		return;
	if (!writer->queue->next)
		writer->refused_ns = 0; /* the next attempts have their own time limit */
	finish_entry(writer, &writer->queue, -EAGAIN);
}

/* Retries the item that the child was writing when it died. */
static void retry(struct writer *writer, struct entry **link, int status)
{
	struct entry *entry = *link;

	if (WIFSIGNALED(status) && entry->item->detail < SYMBOL_RAW) {
		entry->item->detail++;
		entry->alone = true;
		entry->pid = 0;
	} else {
		finish_entry(writer, link, WIFSIGNALED(status) ? -EFAULT : -ECHILD);
	}
}

void writer_reap(struct writer *writer, pid_t pid, int status)
{
	struct child *child = writer->children;

	while (child < writer->children + CHILDREN_MAX && child->pid != pid)
		child++;
	if (child == writer->children + CHILDREN_MAX || pid <= 0)
		return;
	read_results(writer, child);
	close(child->results_fd);
	child->pid = 0;
	struct entry **at = link_of(writer, pid);
	/* A child that has left its batch for lack of memory was not killed by the next item. */
	bool blamed = at && (WIFSIGNALED(status) || WEXITSTATUS(status) != 0 || !child->told);
	if (blamed)
		retry(writer, at, status);
	for (struct entry *entry = writer->queue; entry; entry = entry->next)
		if (entry->pid == pid)
			entry->pid = 0;
	(void)start(writer);
}

bool writer_can_start(const struct writer *writer, uint64_t account)
{
	const size_t room = writer->pace.room ? writer->pace.room : WRITER_CHILDREN;
	size_t queue = 0, of_account = 0;
	const size_t account_room = writer->pace.account_room;

	for (const struct entry *entry = writer->queue; entry && (queue < room || of_account < account_room);
	     entry = entry->next) {
		queue++;
		of_account += entry->item->account == account;
	}
	return queue < room || of_account < account_room;
}
