/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/process_identity.h"

#include "pprof/text/clock.h"
#include "sampler/intake/region_mapped.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Searches of /proc for one program run take a second, and beyond that at most a twentieth of the time. A
 * hostile program run causes many; so does a service in a container, whose children cost one search each
 * (10 ms where 1,000 processes run). */
static const struct throttle_rate search_rate = {.burst = CLOCK_NS_PER_S, .units = 1, .step_ns = 20};

void process_identity_read_name(struct process *process)
{
	char path[TARGET_NAME_BYTES];

	if (!target_read_executable(&process->target, path))
		return;
	proc_strip_deleted(path);
	memcpy(process->target.name, path, sizeof(path));
}

static bool is_same_file(const char *one, const char *other)
{
	struct stat a, b;

	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Whether the path by which the process says that it was executed leads to its program. If the process has
 * ended since its name was read, only a full path can tell, and only as we see the path. */
static bool is_called(const struct process *process, const char *called)
{
	char path[REGION_PATH_BYTES + 64], exe[PROC_PATH_BYTES];

	proc_path(exe, process->target.pid, "exe");
	snprintf(path, sizeof(path), "/proc/%d/%s/%s", (int)process->target.pid,
	    called[0] == '/' ? "root" : "cwd", called);
	struct stat status;
	if (process->target.pidfd < 0 || !called[0])
		return false;
	return stat(exe, &status) == 0 ? is_same_file(path, exe)
	                               : called[0] == '/' && process->target.name[0] == '/' &&
	        is_same_file(called, process->target.name);
}

/* An offer does not tell yet by which path it was executed. The kernel tells the last part, until the
 * process gives itself another name. is_called() checks whether the path leads to the program. */
static void guess_called(const struct process *process, char called[REGION_PATH_BYTES])
{
	const char *path = process->target.name, *slash = strrchr(path, '/');
	char comm[64];

	if (process->target.pidfd < 0 || !slash ||
	    proc_read(process->target.pid, "comm", comm, sizeof(comm)) <= 0)
		return;
	comm[strcspn(comm, "\n")] = '\0';
	if (!comm[0] || strchr(comm, '/') ||
	    snprintf(called, REGION_PATH_BYTES, "%.*s/%s", (int)(slash - path), path, comm) >=
	        REGION_PATH_BYTES)
		called[0] = '\0';
}

void process_identity_read_title(struct process *process)
{
	char called[REGION_PATH_BYTES];

	region_program_path(process->run->region, called);
	if (!called[0])
		guess_called(process, called);
	const bool good = is_called(process, called);
	target_set_title(&process->target, good ? called : process->target.name);
	char full_name[PROCESS_NAME_BYTES];
	if (target_read_full_name(&process->target, full_name))
		target_set_full_name(&process->target, full_name);
	if (good && called[0] == '/' && strlen(called) < sizeof(process->target.called))
		strcpy(process->target.called, called);
}

void process_identity_doubt_name(struct process *process)
{
	char called[REGION_PATH_BYTES];

	if (process->target.pidfd < 0 ||
	    region_mapped_by(process->run->region, process->target.pid) != REGION_MAPPED_NO ||
	    thread_facts_read(process->target.pid).pid == 0)
		return;
	region_program_path(process->run->region, called);
	snprintf(process->target.name, sizeof(process->target.name), "%s", called);
	process->target.full_name[0] = '\0';
	target_set_title(&process->target, called);
}

/* Whether a process can belong to the program run, as far as the kernel says. The pid comes from the
 * target, and must not make us wait for a process that never ends. So these do not belong: the sampler
 * itself, which maps every region; its children, which write profiles; and a process that hides its maps
 * and belongs to another user or is older than the sampler. (In a container, init hides its maps even from
 * root.) */
static enum region_mapped belongs(const struct thread_facts *facts, const struct region *region)
{
	if (facts->pid == 0 || facts->pid == getpid() || facts->parent == getpid())
		return REGION_MAPPED_NO;
	enum region_mapped answer = region_mapped_by(region, facts->pid);
	bool possible =
	    facts->like_us && thread_facts_birth(facts->pid).ticks >= thread_facts_birth(getpid()).ticks;
	return answer == REGION_MAPPED_SECRET && !possible ? REGION_MAPPED_NO : answer;
}

/* The living process with that pid; NULL: the program run has none. */
static const struct process *find_known(const struct program_run *run, pid_t pid)
{
	program_run_each_process(process, run) if (pid && process->target.pid == pid &&
	    process->target.pidfd >= 0 && !process->target.closed) return process;
	return NULL;
}

/* The unknown process that maps the region; 0 if there is none, or more than one. */
static pid_t search_proc(struct process *process, pid_t told, bool cloned)
{
	struct program_run *run = process->run;
	DIR *proc = opendir("/proc");

	process->unsure = !proc && proc_is_shortage(errno);
	pid_t found = 0;
	uint32_t candidates = 0;
	struct dirent *entry;
	while (proc && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);
		struct thread_facts facts = pid > 0 ? thread_facts_read(pid) : (struct thread_facts){0};
		bool likely = cloned ? facts.parent == told : facts.inner == told && pid != told;

		process->unsure |= facts.unread;
		if (!likely || find_known(run, pid))
			continue;
		enum region_mapped answer = belongs(&facts, run->region);
		process->unsure |= answer == REGION_MAPPED_UNREAD;
		if (answer != REGION_MAPPED)
			continue;
		found = pid;
		candidates++;
	}
	if (proc)
		closedir(proc);
	return candidates == 1 && !process->unsure ? found : 0;
}

static bool may_search(struct program_run *run, uint64_t now_ns)
{
	return throttle_allows(&run->searches.work, &search_rate, now_ns);
}

/* Searches /proc if the reported pid is wrong. A process in a pid namespace of its own reports its pid
 * there; a process that was made by a clone without the libc reports its parent's. If it is too early for
 * another search, the process stays unsure. */
static pid_t search_pid(struct process *process, pid_t told, bool cloned)
{
	struct program_run *run = process->run;
	const uint64_t begin_ns = clock_now_ns();

	process->unsure = !may_search(run, begin_ns);
	if (process->unsure)
		return 0;
	pid_t found = search_proc(process, told, cloned);
	throttle_spend(&run->searches.work, clock_now_ns() - begin_ns);
	return found;
}

static bool may_belong(const struct thread_facts *facts, const struct region *region)
{
	return facts->unread || belongs(facts, region) != REGION_MAPPED_NO;
}

/* The pid may be that of a thread, after the first thread of its process has ended. */
bool process_identity_may_be_here(const struct program_run *run, pid_t told)
{
	const struct thread_facts facts = thread_facts_read(told);
	const enum region_mapped answer = region_mapped_by(run->region, told);

	return answer == REGION_MAPPED || answer == REGION_MAPPED_UNREAD || may_belong(&facts, run->region);
}

bool process_identity_may_be_anywhere(struct program_run *run, pid_t told)
{
	const uint64_t begin_ns = clock_now_ns();

	if (process_identity_may_be_here(run, told) || !may_search(run, begin_ns))
		return true;
	DIR *proc = opendir("/proc");
	bool may_be = !proc;
	struct dirent *entry;
	while (!may_be && (entry = readdir(proc))) {
		const pid_t pid = atoi(entry->d_name);

		if (pid <= 0)
			continue;
		const struct thread_facts facts = thread_facts_read(pid);
		may_be = facts.unread || (facts.inner == told && may_belong(&facts, run->region));
	}
	if (proc)
		closedir(proc);
	throttle_spend(&run->searches.work, clock_now_ns() - begin_ns);
	return may_be;
}

bool process_identity_all_known(struct program_run *run)
{
	const uint64_t begin_ns = clock_now_ns();

	if (!may_search(run, begin_ns))
		return false;
	DIR *proc = opendir("/proc");
	bool all_known = proc != NULL;
	struct dirent *entry;
	while (all_known && (entry = readdir(proc))) {
		const pid_t pid = atoi(entry->d_name);

		if (pid <= 0 || find_known(run, pid))
			continue;
		const struct thread_facts facts = thread_facts_read(pid);
		all_known = !may_belong(&facts, run->region);
	}
	if (proc)
		closedir(proc);
	throttle_spend(&run->searches.work, clock_now_ns() - begin_ns);
	return all_known;
}

pid_t process_identity_told_pid(const struct process *process)
{
	uint32_t told = *(const volatile uint32_t *)&region_place(process->run->region, process->place)->pid;

	return (pid_t)told > 0 ? (pid_t)told : 0;
}

/* Whether the program run is in a pid namespace of its own, so that a pid which no process has here may
 * still be a living process'. (For place 0 that is not known: nearly all such processes have ended, and
 * each search looks at every process.) */
static bool counts_apart(const struct program_run *run)
{
	const struct process *first = run->places.at[0];

	return first && first->target.pidfd >= 0 && first->target.pid != process_identity_told_pid(first);
}

/* The parent of a process that was made by a clone without the libc: such a process says the number of its
 * parent, or of the parent's thread that made it. NULL: the number is its own. pid: who has the number. */
static const struct process *cloned_from(struct process *process, pid_t told, pid_t pid)
{
	const struct process *parent = process_parent(process);

	return parent && told == process_identity_told_pid(parent) ? parent : find_known(process->run, pid);
}

/* Whether a process with that number may belong to the session. Where nothing was attached to or taken over,
 * all processes of the session are younger than its sampler: an older one only has the same number as a
 * process in another pid namespace. */
static bool may_be_of_session(const struct program_run *run, pid_t pid)
{
	const uint64_t born_ticks = thread_facts_birth(pid).ticks;

	return run->origin.offered || run->origin.attached_pid || run->life.state == RUN_ADOPTING ||
	    !born_ticks || born_ticks >= thread_facts_birth(getpid()).ticks;
}

/* Without a process to be found, the number is good if it can be that of a process which has ended, or has
 * executed another program. */
static void keep_number(struct process *process, pid_t told, bool cloned)
{
	process->target.pid = !cloned && may_be_of_session(process->run, told) ? told : 0;
}

/* Of the program run's own process the kernel may have told: who was attached to, or came to the socket. */
static pid_t told_number(const struct process *process)
{
	const struct program_run *run = process->run;

	if (process->was_running)
		return run->origin.attached_pid;
	return process->place == 0 && run->region->taken_by ? run->region->taken_by
	                                                    : process_identity_told_pid(process);
}

void process_identity_find(struct process *process)
{
	struct program_run *run = process->run;
	const pid_t told = told_number(process);

	process->target.pid = told;
	struct thread_facts facts = told ? thread_facts_read(told) : (struct thread_facts){0};
	process->unsure = facts.unread;
	pid_t pid = facts.pid;
	if (facts.unread || !told)
		return;
	const struct process *parent = cloned_from(process, told, pid);
	keep_number(process, told, parent != NULL);
	if (pid == 0 && !parent && !counts_apart(run))
		return;
	enum region_mapped answer = parent ? REGION_MAPPED_NO : belongs(&facts, run->region);
	if (answer == REGION_MAPPED_NO) {
		pid = search_pid(process, parent ? parent->target.pid : told, parent != NULL);
		if (!pid)
			return;
	}
	int pidfd = pidfd_open_process(pid);
	process->unsure = pidfd < 0 && proc_is_shortage(-pidfd);
	if (pidfd < 0)
		return;
	/* the process may have ended meanwhile, and the pid been reused */
	answer = region_mapped_by(run->region, pid);
	if (answer == REGION_MAPPED_NO || answer == REGION_MAPPED_UNREAD) {
		process->unsure = answer == REGION_MAPPED_UNREAD;
		close(pidfd);
		return;
	}
	process->target.pid = pid;
	process->target.pidfd = pidfd;
	process->target.readable = true;
}
