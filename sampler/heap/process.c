/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/process.h"

#include "sampler/linux/clock.h"
#include "sampler/linux/pidfd.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"
#include "sampler/region/region_program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	SEARCHES_MAX = 64, /* searches of /proc for one image: a hostile one causes many */
	FOUND_NS =
	    500 * 1000000, /* for so long the maps of a process that was found are good for its books */
};

struct image *image_new(struct region *region, uint64_t now_ns)
{
	struct image *image = calloc(1, sizeof(*image));
	if (!image) {
		region_close(region);
		free(region);
		return NULL;
	}
	image->region = region;
	image->claimed_ns = now_ns;
	return image;
}

void image_free(struct image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->fd_count; i++)
		close(image->fds[i]);
	free(image->fds);
	free(image->plan);
	process_finding_free(image->finding);
	region_close(image->region);
	free(image->region);
	free(image);
}

/* ---- which process is it? */

static void read_name(struct process *process)
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

/* Does the path by which the process says that it was executed lead to its program? If the process has ended
 * since its name was read, only a full path can tell, and that as we see it. */
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

/* An offer does not say yet by which path it was executed: the kernel says its last part, until the
 * process gives itself another name. Whether it leads to the program is_called tells. */
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

/* A program with several names (Debian's redis-server is a link to redis-check-rdb) gets the name by which it
 * was executed, if that name leads to the program; a script gets the name of its interpreter. */
static void read_title(struct process *process)
{
	char called[REGION_PATH_BYTES];
	region_program_path(process->image->region, called);
	if (!called[0])
		guess_called(process, called);
	const bool good = is_called(process, called);
	target_set_title(&process->target, good ? called : process->target.name);
	if (good && called[0] == '/' && strlen(called) < sizeof(process->target.called))
		strcpy(process->target.called, called);
}

/* If the process has executed another program since find_pid, /proc describes that one. */
static void doubt_name(struct process *process)
{
	char called[REGION_PATH_BYTES];
	if (process->target.pidfd < 0 || process_is_there(process) ||
	    thread_facts_read(process->target.pid).pid == 0)
		return;
	region_program_path(process->image->region, called);
	snprintf(process->target.name, sizeof(process->target.name), "%s", called);
	target_set_title(&process->target, called);
}

/* Whether a process can belong to the image, as far as the kernel says. The pid comes from the target, and
 * must not make us wait for a process that never ends: the sampler itself, which maps every region, or its
 * children, which write profiles; or a process that hides its maps (in a container, init does so even from
 * root), belongs to another user, or is older than the sampler. */
static enum region_mapped belongs(const struct thread_facts *facts, const struct region *region)
{
	if (facts->pid == 0 || facts->pid == getpid() || facts->parent == getpid())
		return REGION_MAPPED_NO;
	enum region_mapped answer = region_mapped_by(region, facts->pid);
	bool possible =
	    facts->like_us && thread_facts_birth(facts->pid).ticks >= thread_facts_birth(getpid()).ticks;
	return answer == REGION_MAPPED_SECRET && !possible ? REGION_MAPPED_NO : answer;
}

static bool known(const struct image *image, pid_t pid)
{
	for (uint32_t i = 0; i < REGION_PLACES && image->live_processes; i++)
		if (image->process[i] && image->process[i]->target.pid == pid &&
		    image->process[i]->target.pidfd >= 0 && !image->process[i]->target.closed)
			return true;
	return false;
}

/* Searches for an unknown process that maps the region, if the reported pid is wrong: a process in a pid
 * namespace of its own reports its pid there; one made by a clone without the libc reports its parent's. */
static pid_t search_pid(struct process *process, pid_t told, bool cloned)
{
	struct image *image = process->image;
	if (image->searches >= SEARCHES_MAX)
		return 0;
	DIR *proc = opendir("/proc");
	process->unsure = !proc && proc_is_shortage(errno);
	image->searches += proc != NULL;
	pid_t found = 0;
	uint32_t candidates = 0;
	struct dirent *entry;
	while (proc && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);
		struct thread_facts facts = pid > 0 ? thread_facts_read(pid) : (struct thread_facts){0};
		bool likely = cloned ? facts.parent == told : facts.inner == told && pid != told;
		process->unsure |= facts.unread;
		if (!likely || known(image, pid))
			continue;
		enum region_mapped answer = belongs(&facts, image->region);
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

/* The target may change it at any time. */
static pid_t told_pid(const struct process *process)
{
	uint32_t told =
	    *(const volatile uint32_t *)&region_place(process->image->region, process->place)->pid;
	return (pid_t)told > 0 ? (pid_t)told : 0;
}

/* In a pid namespace of its own, so that a number that nobody has here may be a living process'. (Of place 0
 * that is not known: nearly all of those have ended, and each search costs a look at every process.) */
static bool counts_apart(const struct image *image)
{
	const struct process *first = image->process[0];
	return first && first->target.pidfd >= 0 && first->target.pid != told_pid(first);
}

/* Makes it known by a pidfd. It has ended before if it is not, unless it is unsure. */
static void find_pid(struct process *process, pid_t told)
{
	struct image *image = process->image;
	process->target.pid = told;
	struct thread_facts facts = told ? thread_facts_read(told) : (struct thread_facts){0};
	process->unsure = facts.unread;
	pid_t pid = facts.pid;
	if (facts.unread || !told || (pid == 0 && !counts_apart(image)))
		return;
	bool cloned = pid != 0 && known(image, pid);
	enum region_mapped answer = cloned ? REGION_MAPPED_NO : belongs(&facts, image->region);
	if (answer == REGION_MAPPED_NO) {
		pid = search_pid(process, cloned ? pid : told, cloned);
		if (!pid && cloned && !process->unsure)
			process->target.pid = 0; /* has ended; the pid was reused */
		if (!pid)
			return;
	}
	int pidfd = pidfd_open_process(pid);
	process->unsure = pidfd < 0 && proc_is_shortage(-pidfd);
	if (pidfd < 0)
		return;
	/* it may have ended meanwhile, and the pid been reused */
	answer = region_mapped_by(image->region, pid);
	if (answer == REGION_MAPPED_NO || answer == REGION_MAPPED_UNREAD) {
		process->unsure = answer == REGION_MAPPED_UNREAD;
		close(pidfd);
		return;
	}
	process->target.pid = pid;
	process->target.pidfd = pidfd;
	process->target.readable = true;
}

enum region_mapped process_presence(const struct process *process)
{
	return process->target.pidfd < 0 ? REGION_MAPPED_NO
	                                 : region_mapped_by(process->image->region, process->target.pid);
}

bool process_is_there(const struct process *process)
{
	return process_presence(process) != REGION_MAPPED_NO;
}

/* ---- address spaces */

/* Takes the maps from the image's own list of what its loader had mapped: the only source if the process has
 * already ended. */
static void maps_from_image(struct process *process)
{
	const struct region *region = process->image->region;
	const unsigned char *at = region->base + region->offsets.modules, *end = at + REGION_MODULES_BYTES;
	for (uint32_t i = 0; i < 4096 && (size_t)(end - at) > sizeof(struct region_module); i++) {
		struct region_module module;
		char path[REGION_PATH_BYTES];
		memcpy(&module, at, sizeof(module));
		if (module.total_bytes < sizeof(module) || module.total_bytes > (size_t)(end - at) ||
		    module.path_bytes < 1 || module.path_bytes > sizeof(path) ||
		    module.path_bytes > module.total_bytes - sizeof(module) || module.end <= module.start)
			break;
		memcpy(path, at + sizeof(module), module.path_bytes);
		path[module.path_bytes - 1] = '\0';
		if (i == 0 && !process->target.name[0])
			snprintf(process->target.name, sizeof(process->target.name), "%s", path);
		const struct map_range range = {
		    .start = module.start,
		    .len = module.end - module.start,
		    .pgoff = module.file_offset,
		    .prot = PROT_READ | PROT_EXEC,
		    .path = strncmp(path, "linux-vdso", 10) == 0 || strcmp(path, "linux-gate.so.1") == 0
		        ? "[vdso]"
		        : path,
		    .build_id = module.build_id_bytes ? module.build_id : NULL,
		    .build_id_len =
		        (uint8_t)(module.build_id_bytes <= REGION_BUILD_ID_MAX ? module.build_id_bytes : 0),
		};
		maps_add(process->target.maps, &range);
		at += module.total_bytes;
	}
}

/* The one that had the place when that was first looked for: it may have ended since, and another child have
 * its place now. NULL: not seen yet, or gone. */
static struct process *parent_of(struct process *process)
{
	uint32_t word =
	    *(const volatile uint32_t *)&region_place(process->image->region, process->place)->parent;
	struct process *parent = word >= 1 && word <= REGION_PLACES && word - 1 != process->place
	    ? process->image->process[word - 1]
	    : NULL;
	if (parent && !process->parent_serial)
		process->parent_serial = parent->serial;
	return parent && parent->serial == process->parent_serial ? parent : NULL;
}

struct process_finding *process_find(pid_t pid, struct modules *modules)
{
	struct process_finding *finding = calloc(1, sizeof(*finding));
	const struct thread_facts facts = thread_facts_read(pid);
	if (!finding)
		return NULL;
	struct target *target = &finding->target;
	bool good = target_init(target, pid, clock_now_ns()) && facts.pid == pid;
	finding->inner = facts.inner;
	target->pidfd = good ? pidfd_open_process(pid) : -1;
	target->readable = target->pidfd >= 0;
	target->maps = maps_new(modules, pid, true);
	if (target->readable && target->maps && maps_read_proc(target->maps) == 0 &&
	    target_read_executable(target, target->name)) {
		proc_strip_deleted(target->name);
		target_set_title(target, target->name);
		return finding;
	}
	process_finding_free(finding);
	return NULL;
}

void process_finding_free(struct process_finding *finding)
{
	if (finding)
		target_fini(&finding->target);
	free(finding);
}

/* It has ended already, and is whoever offered the region, as its number says. */
static const struct process_finding *found_before(const struct process *process, pid_t told)
{
	const struct process_finding *finding = process->image->finding;
	return process->target.pidfd < 0 && finding && told &&
	        (told == finding->target.pid || told == finding->inner)
	    ? finding
	    : NULL;
}

/* It has a book of its own now. */
static void forget_finding(const struct process *process)
{
	struct image *image = process->image;
	if (!image->finding || image->finding->target.pid != process->target.pid)
		return;
	process_finding_free(image->finding);
	image->finding = NULL;
}

static void know_from_finding(struct process *process, const struct process_finding *finding)
{
	struct target *target = &process->target;
	target->pid = finding->target.pid;
	target->pidfd = fcntl(finding->target.pidfd, F_DUPFD_CLOEXEC, 0);
	memcpy(target->name, finding->target.name, sizeof(target->name));
	process->unsure = false;
}

/* Of an image that has offered its region, and so tells no modules: those of another of its processes. */
static const struct maps *maps_of_image(const struct process *process)
{
	const struct image *image = process->image;
	if (!image->offered)
		return NULL;
	if (image->finding)
		return image->finding->target.maps;
	return image->process[0] ? image->process[0]->target.maps : NULL;
}

/* Those that were read when it was found, if that was just now: to read them opens each of its files.
 * (What has changed since is found as in any process: by a stack in no map.) */
static bool take_maps_of_finding(struct process *process)
{
	struct target *target = &process->target,
	              *found = process->image->finding ? &process->image->finding->target : NULL;
	if (!found || !found->maps || !target->readable || found->pid != target->pid ||
	    clock_now_ns() - found->start_ns > FOUND_NS ||
	    (target->code_address && !maps_find(found->maps, target->code_address)))
		return false;
	target->maps = found->maps;
	target->maps_read_ns = found->start_ns;
	found->maps = NULL;
	return true;
}

static void open_maps(struct process *process, struct modules *modules, const struct process *parent)
{
	struct target *target = &process->target;
	if (take_maps_of_finding(process))
		return;
	target->maps = maps_new(modules, target->readable ? target->pid : 0, true);
	if (!target->maps || (target_read_maps(target, clock_now_ns(), 0) && maps_count(target->maps) > 0))
		return;
	target->maps_read_ns = 0;
	const struct maps *alike = maps_of_image(process);
	if (alike) {
		maps_free(target->maps);
		target->maps = maps_copy(alike, 0);
	} else if (parent && parent->target.maps) {
		maps_free(target->maps);
		target->maps = maps_copy(parent->target.maps, 0);
	} else {
		maps_from_image(process);
	}
}

void process_look_for_room(struct process *process)
{
	const struct memory_bound *bound = process->image->memory;
	bool full = bound && !memory_bound_allows(bound, process->held_bytes);
	stacks_set_full(process->target.stacks, full);
	heap_set_full(process->heap, full);
}

void process_weigh(struct process *process)
{
	const struct process_walked *walked = &process->walked;
	if (process->image->memory)
		memory_bound_note(process->image->memory, &process->held_bytes,
		    stacks_bytes(process->target.stacks) + heap_bytes(process->heap) +
		        stack_log_bytes(&process->log, heap_segments(process->heap)) +
		        walked->seen_room * sizeof(*walked->seen) +
		        walked->stack_room * sizeof(*walked->stack) +
		        (walked->waiting ? sizeof(*walked->waiting) : 0) +
		        (process->place == 0 ? process->image->walked_bytes : 0));
}

/* Once the parent's own are known. The list of a chain that is longer ends early: whoever would be next in it
 * is nobody's known origin. */
static void note_ancestors(struct process *process, const struct process *parent)
{
	if (process->ancestor_count || (parent->place && !parent->ancestor_count))
		return;
	process->ancestor_count = parent->ancestor_count;
	memcpy(process->ancestors, parent->ancestors, sizeof(process->ancestors));
	if (process->ancestor_count < PROCESS_ANCESTORS)
		process->ancestors[process->ancestor_count++] = parent->target.pid;
}

/* What the parent's books call `origin`, in the books of its child. */
static uint32_t origin_in_child(const struct process *process, const struct process *parent, uint32_t origin)
{
	if (origin == HEAP_ORIGIN_SELF)
		origin = parent->ancestor_count + 1;
	return origin <= process->ancestor_count ? origin : HEAP_ORIGIN_UNKNOWN;
}

/* Blocks whose stack is lost have no site that tells the origin: it is certain only in a child of the image's
 * own process. */
pid_t process_origin_pid(const struct process *process, uint32_t origin)
{
	if (origin == HEAP_ORIGIN_SELF)
		return process->target.pid;
	if (origin == HEAP_ORIGIN_UNKNOWN && process->ancestor_count == 1)
		origin = 1;
	return origin <= process->ancestor_count ? process->ancestors[origin - 1] : 0;
}

void process_inherit(struct process *process)
{
	const struct region *region = process->image->region;
	const struct process *parent = parent_of(process);
	process->counters.inherited_no_room = 0;
	if (parent)
		note_ancestors(process, parent);
	for (uint32_t s = 0; parent && s < region->segments; s++) {
		if (region_segment_owner(region, s) != (int)process->place)
			continue;
		for (uint32_t i = 0; i < REGION_SEGMENT_SLOTS; i++) {
			struct slot_copy slot;
			uint32_t number = s * REGION_SEGMENT_SLOTS + i;
			if (!region_read_slot(region, number, &slot) || !(slot.flags & SLOT_INHERITED) ||
			    slot.origin_place != parent->place ||
			    heap_site_of(process->heap, number, slot.seq, 0) != HEAP_NO_SITE)
				continue;
			uint32_t site =
			    heap_site_of(parent->heap, slot.sample.slot, slot.sample.seq, slot.sample.stack);
			if (site == HEAP_NO_SITE)
				continue;
			uint32_t tid = heap_site(parent->heap, site)->key.tid;
			if (tid && threads_name(parent->target.threads, tid))
				threads_call(
				    process->target.threads, tid, threads_name(parent->target.threads, tid));
			process_look_for_room(process);
			uint32_t stack = stacks_translate(parent->target.stacks,
			    heap_site(parent->heap, site)->key.stack, process->target.stacks);
			const struct heap_sample sample = {
			    .slot = number,
			    .seq = slot.seq,
			    .stack = stack,
			    .tid = tid,
			    .backend = heap_site(parent->heap, site)->key.backend,
			    .origin =
			        origin_in_child(process, parent, heap_site(parent->heap, site)->key.origin),
			    .mapped = slot.flags & SLOT_MMAP,
			    .size_bytes = slot.sample.size_bytes,
			    .period_bytes = slot.sample.period_bytes,
			};
			if (stack == UINT32_MAX || heap_inherit(process->heap, &sample) == -ENOMEM)
				process->counters.inherited_no_room++;
			else
				stack_log_block(&process->log, number, slot.seq, stack);
			process_weigh(process);
		}
	}
}

static void enter(struct image *image, struct process *process)
{
	image->process[process->place] = process;
	image->live_processes++;
	if (image->places_end <= process->place)
		image->places_end = process->place + 1;
}

/* As the process itself says, so that every daemon finds the same. */
static uint64_t started_ns(const struct image *image, uint32_t number)
{
	const uint64_t told_ns = *(const volatile uint64_t *)&region_place(image->region, number)->start_ns;
	const uint64_t now_ns = clock_now_ns();
	return told_ns > 0 && told_ns < now_ns ? told_ns : now_ns;
}

static struct process *process_new(struct image *image, uint32_t number, struct modules *modules)
{
	struct process *process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->image = image;
	process->place = number;
	process->serial = ++image->serials;
	bool ready = target_init(&process->target, 0, clock_now_ns());
	process->target.code_address = image->trigger_address;
	process->target.plan = image->plan;
	if (image->offered)
		process->target.start_ns = started_ns(image, number);
	process->heap = heap_new(image->region, &image->heap);
	if (image->heap.labels & HEAP_LABEL_THREAD)
		process->target.threads = threads_new();
	process->was_running = number == 0 && image->attached_pid != 0;
	find_pid(process, process->was_running ? image->attached_pid : told_pid(process));
	const struct process_finding *finding = found_before(process, told_pid(process));
	if (finding)
		know_from_finding(process, finding);
	target_note_perf_map(&process->target);
	if (!finding)
		read_name(process);
	struct process *parent = parent_of(process);
	open_maps(process, modules, parent);
	stack_log_init(&process->log, image->region, number, process->target.stacks);
	process->log.waits = image->adopting;
	enter(image, process);
	if (!ready || !process->target.maps || !process->heap ||
	    table_add(image->processes, (uint64_t)process->target.pid, process) != 0) {
		process_free(process);
		return NULL;
	}
	if (parent) {
		if (!process->target.name[0])
			memcpy(process->target.name, parent->target.name, sizeof(process->target.name));
		process_inherit(process);
	}
	read_title(process);
	if (!finding)
		doubt_name(process);
	forget_finding(process);
	return process;
}

bool process_look_again(struct process *process)
{
	struct target *target = &process->target;
	pid_t before = target->pid;
	if (!process->unsure)
		return false;
	find_pid(process, told_pid(process));
	if (target->pid != before) {
		table_remove(process->image->processes, (uint64_t)before, process);
		/* there is room: one was just removed */
		(void)table_add(process->image->processes, (uint64_t)target->pid, process);
	}
	if (target->pidfd < 0)
		return false;
	target_note_perf_map(target);
	read_name(process);
	target_read_maps(target, clock_now_ns(), 0);
	read_title(process);
	doubt_name(process);
	return true;
}

struct process *image_process(struct image *image, uint32_t number, struct modules *modules)
{
	struct region_place *place = region_place(image->region, number);
	if (!image->ready || !place)
		return NULL;
	if (image->process[number])
		return image->process[number];
	if (atomic_load_explicit(&place->state, memory_order_acquire) != PLACE_READY)
		return NULL;
	return process_new(image, number, modules);
}

void process_free(struct process *process)
{
	struct image *image = process->image;
	image->process[process->place] = NULL;
	image->live_processes--;
	table_remove(image->processes, (uint64_t)process->target.pid, process);
	if (image->memory)
		memory_bound_note(image->memory, &process->held_bytes, 0);
	target_fini(&process->target);
	heap_free(process->heap);
	free(process->walked.seen);
	free(process->walked.stack);
	free(process->walked.waiting);
	free(process);
}

uint64_t process_samples(const struct process *process)
{
	return region_read_tally(&region_place(process->image->region, process->place)->allocated).samples;
}
