/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/target.h"

#include "pprof/table/index.h"
#include "pprof/text/clock.h"
#include "sampler/intake/target_plan.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/proc.h"
#include "sampler/unwind/jit_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PERF_MAP_EVERY_NS = 1000 * 1000000,
	MAPS_LOOK_NS = 1000 * 1000000,
	MAPS_LOOK_MOST_NS = 2000 * 1000000, /* it may double once more */
};

static const struct throttle_rate maps_rate = {.burst = 100 * 1000000, .units = 1, .step_ns = 20};

bool target_init(struct target *target, pid_t pid, uint64_t start_ns)
{
	*target = (struct target){.pid = pid,
	    .pidfd = -1,
	    .start_ns = start_ns,
	    .sampled_ns = start_ns,
	    .generated = {.perf_map = PERF_MAP_FILE_UNKNOWN, .jitdump = JITDUMP_FILE_NONE}};
	target->stacks = stacks_new();
	return target->stacks != NULL;
}

void target_fini(struct target *target)
{
	if (target->pidfd >= 0)
		close(target->pidfd);
	perf_map_file_forget(&target->generated.perf_map);
	jitdump_file_forget(&target->generated.jitdump);
	jit_rows_unref(target->generated.rows);
	maps_free(target->past.maps);
	maps_free(target->maps);
	stacks_unref(target->stacks);
	threads_free(target->threads);
}

void target_close(struct target *target, enum target_end end, int status)
{
	target->closed = true;
	target->end = end;
	target->status = status;
	if (end == TARGET_GONE && pidfd_exit_status(target->pidfd, target->pid, &target->status) == 0)
		target->end = TARGET_EXITED;
}

/* ---- who it is */

bool target_read_executable(const struct target *target, char path[TARGET_NAME_BYTES])
{
	if (target->pidfd >= 0)
		return proc_read_exe(target->pid, path, TARGET_NAME_BYTES) > 0;
	path[0] = '\0';
	return false;
}

void target_set_title(struct target *target, const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(target->title, sizeof(target->title), "%.63s", slash ? slash + 1 : path);
}

bool target_read_full_name(const struct target *target, char name[PROCESS_NAME_BYTES])
{
	name[0] = '\0';
	if (target->pidfd < 0 || target->closed || !target->title[0])
		return false;
	process_name_read(name, target->pid, target->title);
	return !target_has_ended(target);
}

void target_set_full_name(struct target *target, const char name[PROCESS_NAME_BYTES])
{
	snprintf(
	    target->full_name, sizeof(target->full_name), "%s", strcmp(name, target->title) != 0 ? name : "");
}

void target_see_thread(struct target *target, uint32_t tid, bool told)
{
	if (target->threads && target->readable)
		threads_see(target->threads, target->pid, tid, told);
}

uid_t target_user(const struct target *target)
{
	return target->plan ? target->plan->uid : geteuid();
}

uint64_t target_account(const struct target *target)
{
	const char *account = target->plan ? target->plan->account : "";

	return account[0] ? index_mix_bytes(index_seed(), account, strlen(account)) : 0;
}

uint64_t target_account_of_user(uid_t user)
{
	return user == (uid_t)-1 ? 0 : (uint64_t)user + 1;
}

/* ---- where it is */

bool target_maps_allowed(struct target *target, uint64_t now_ns)
{
	return throttle_allows(&target->reading.work, &maps_rate, now_ns);
}

void target_take_maps(struct target *target, struct maps *maps, uint64_t read_ns)
{
	if (maps != target->maps)
		maps_free(target->maps);
	target->maps = maps;
	target->reading.read_ns = read_ns;
}

/* Returns the CPU time, for end_reading(). */
static uint64_t begin_reading(struct target *target, uint64_t now_ns)
{
	throttle_fill(&target->reading.work, &maps_rate, now_ns);
	target->reading.read_ns = now_ns;
	return clock_thread_cpu_ns();
}

static void end_reading(struct target *target, uint64_t begin_cpu_ns)
{
	throttle_spend(&target->reading.work, clock_thread_cpu_ns() - begin_cpu_ns);
}

bool target_read_maps(struct target *target, uint64_t now_ns, uint64_t every_ns)
{
	if (!target->readable || now_ns - target->reading.read_ns < every_ns)
		return false;
	const uint64_t begin_cpu_ns = begin_reading(target, now_ns);
	const uint64_t before = target_unmaps(target);
	struct maps *fresh = maps_new(maps_store(target->maps), target->pid, true);
	if (fresh)
		maps_set_room(fresh, target->maps_room_bytes);
	if (fresh && maps_read_proc(fresh) == 0 && maps_count(fresh) > 0 &&
	    (!target->code_address || maps_find(fresh, target->code_address))) {
		maps_free(target->maps);
		target->maps = fresh;
		target_note_reading(target, before);
	} else {
		maps_free(fresh);
	}
	end_reading(target, begin_cpu_ns);
	return true;
}

/* The wait grows as long as nothing changes, since a daemon has hundreds of processes. */
void target_look_at_maps(struct target *target, uint64_t now_ns)
{
	if (!target->reading.look_ns)
		target->reading.look_ns = MAPS_LOOK_NS;
	if (!target->readable || now_ns - target->reading.read_ns < target->reading.look_ns ||
	    !target_maps_allowed(target, now_ns))
		return;
	const uint64_t begin_cpu_ns = begin_reading(target, now_ns);
	const uint64_t before = target_unmaps(target);
	const bool current = maps_are_current(target->maps);
	end_reading(target, begin_cpu_ns);
	if (!current) {
		target->reading.look_ns = MAPS_LOOK_NS;
		target_read_maps(target, now_ns, 0);
		return;
	}
	target_note_reading(target, before);
	if (target->plan && target->reading.look_ns < MAPS_LOOK_MOST_NS)
		target->reading.look_ns *= 2;
}

void target_note_perf_map(struct target *target)
{
	struct perf_map_file fresh;

	if (!target->readable || target->pidfd < 0 || perf_map_file_note(&fresh, target->pid) != 0)
		return;
	/* The process has not ended since: the file that was opened is not that of another process with its
	 * pid. */
	if (target_has_ended(target)) {
		perf_map_file_forget(&fresh);
		return;
	}
	if (fresh.fd < 0) { /* deleted, perhaps: its rows are still good for the code that ran then */
		fresh.fd = target->generated.perf_map.fd;
		target->generated.perf_map.fd = -1;
	}
	/* A clock that has been set since moves the start. The earliest start is kept, so that no map of the
	 * process' own is taken for an earlier process'. */
	if (target->generated.perf_map.folder && fresh.since_unix_s > target->generated.perf_map.since_unix_s)
		fresh.since_unix_s = target->generated.perf_map.since_unix_s;
	perf_map_file_forget(&target->generated.perf_map);
	target->generated.perf_map = fresh;
}

/* The dump that the process has mapped: its own, or else its parent's, which a forked process still has
 * mapped. NULL if none is in MAPS. */
static const struct map *find_jitdump(const struct maps *maps, pid_t pid)
{
	const struct map *found = NULL;
	char own[32];
	const size_t length = (size_t)snprintf(own, sizeof(own), "/jit-%d.dump", (int)pid);

	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct map *map = maps_at(maps, i);
		const char *path = map_path(map);
		const size_t bytes = strlen(path);

		if (map->file && jitdump_file_is_name(path) &&
		    (!found || (bytes > length && strcmp(path + bytes - length, own) == 0)))
			found = map;
	}
	return found;
}

static void open_jitdump(struct target *target, const struct map *map)
{
	struct jitdump_file fresh = JITDUMP_FILE_NONE;

	if ((target->generated.jitdump.fd >= 0 && target->generated.jitdump.ino == map->file->ino) ||
	    jitdump_file_note(&fresh, target->pid, map_path(map), map->file->ino) != 0)
		return;
	if (target_has_ended(target)) {
		jitdump_file_forget(&fresh);
		return;
	}
	jitdump_file_forget(&target->generated.jitdump);
	target->generated.jitdump = fresh;
	jit_rows_unref(target->generated.rows);
	/* Gets a descriptor of its own: maps may keep the rows for longer. */
	struct module_file file = {.fd = fcntl(fresh.fd, F_DUPFD_CLOEXEC, 0)};
	target->generated.rows = file.fd < 0 ? NULL : jit_rows_new(&file, regs_arch_native()->e_machine);
	target->generated.rows_read_ns = 0;
}

bool target_read_jit_rows(struct target *target, bool wanted, uint64_t now_ns)
{
	const uint64_t wait_ns = wanted ? target->generated.rows_retry_ns : PERF_MAP_EVERY_NS;
	struct stat status;

	if (!target->generated.rows || !target->maps ||
	    (target->generated.rows_read_ns && now_ns - target->generated.rows_read_ns < wait_ns) ||
	    fstat(target->generated.jitdump.fd, &status) != 0)
		return false;
	target->generated.rows_read_ns = now_ns;
	const bool fresh =
	    jit_rows_read(target->generated.rows, (uint64_t)status.st_size, maps_cfi_work(target->maps));
	if (wanted)
		target->generated.rows_retry_ns = maps_retry_ns(target->generated.rows_retry_ns, fresh);
	return fresh;
}

/* FIRST: the maps may be from a time between the first code and the mapping that leads to the file, and
 * there may be no second time. The maps of the target stay as they are: a stack is being unwound by
 * them. */
static void note_jitdump(struct target *target, bool first)
{
	if (!target->readable || target->pidfd < 0 || !target->maps)
		return;
	const struct map *found = find_jitdump(target->maps, target->generated.perf_map.pid);
	struct maps *now = !found && first ? maps_new(maps_store(target->maps), target->pid, false) : NULL;
	if (now && maps_read_proc(now) == 0)
		found = find_jitdump(now, target->generated.perf_map.pid);
	if (found)
		open_jitdump(target, found);
	maps_free(now);
}

void target_met_generated_code(struct target *target, uint64_t now_ns)
{
	if (target->generated.noted_ns && now_ns - target->generated.noted_ns < PERF_MAP_EVERY_NS)
		return;
	const bool first = !target->generated.noted_ns;
	target->generated.noted_ns = now_ns;
	target_note_perf_map(target);
	note_jitdump(target, first);
}

bool target_has_ended(const struct target *target)
{
	int pidfd = target->pidfd >= 0 ? target->pidfd : pidfd_open_process(target->pid);

	/* Without a pidfd the process need not have ended: descriptors may be short, since each of thousands
	 * of processes has one. */
	if (pidfd < 0)
		return pidfd == -ESRCH || (kill(target->pid, 0) != 0 && errno == ESRCH);
	bool ended = pidfd_has_ended(pidfd);
	if (pidfd != target->pidfd)
		close(pidfd);
	return ended;
}
