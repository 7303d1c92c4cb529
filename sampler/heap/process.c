/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/process.h"

#include "sampler/linux/clock.h"
#include "sampler/linux/proc.h"

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
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SEARCHES_MAX = 64 }; /* searches of /proc for one image: a hostile one causes many */

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
	region_close(image->region);
	free(image->region);
	free(image);
}

/* ---- which process is it? */

enum answer { NO, YES, SECRET };

/* Whether pid has our region mapped: a pid that a target wrote into shared memory proves nothing. SECRET: the
 * process is not dumpable, and we are not privileged. */
static enum answer maps_region(pid_t pid, const struct region *region)
{
	char path[64], line[4352];
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "re");
	if (!maps)
		return errno == EACCES || errno == EPERM ? SECRET : NO;
	bool found = false;
	while (!found && fgets(line, sizeof(line), maps)) {
		uint64_t ino;
		if (sscanf(line, "%*s %*s %*s %*s %" SCNu64, &ino) == 1 && ino == region->ino &&
		    strstr(line, "/memfd:heaptap"))
			found = true;
	}
	fclose(maps);
	return found ? YES : NO;
}

/* What the kernel says about a thread. */
struct thread_facts {
	pid_t pid; /* of its process; 0 for a zombie and for none */
	pid_t parent;
	pid_t inner;  /* its id in its own pid namespace */
	bool like_us; /* all its user ids are ours */
};

static struct thread_facts thread_read(pid_t tid)
{
	char path[64], line[256], state = 0;
	struct thread_facts facts = {0};
	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	FILE *status = fopen(path, "re");
	if (!status)
		return facts;
	while (fgets(line, sizeof(line), status)) {
		const char *last = strrchr(line, '\t');
		unsigned int uid[4];
		if (strncmp(line, "NSpid:", 6) == 0 && last)
			facts.inner = atoi(last + 1);
		else if (sscanf(line, "Uid: %u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) == 4)
			facts.like_us =
			    uid[0] == geteuid() && uid[1] == uid[0] && uid[2] == uid[0] && uid[3] == uid[0];
		else if (sscanf(line, "Tgid: %d", &facts.pid) != 1 &&
		    sscanf(line, "PPid: %d", &facts.parent) != 1)
			(void)sscanf(line, "State: %c", &state);
	}
	fclose(status);
	if (state == 'Z' || state == 'X')
		facts.pid = 0;
	return facts;
}

static void read_name(struct process *process)
{
	char path[TARGET_NAME_BYTES];
	if (!target_read_executable(&process->target, path))
		return;
	proc_strip_deleted(path);
	memcpy(process->target.name, path, sizeof(path));
}

/* Writes the path by which the image was executed, as the image itself reports it, into `path`; empty if
 * there is none. */
static void read_called(const struct region *region, char path[REGION_PATH_BYTES])
{
	struct region_module first;
	const unsigned char *at = region->base + region->offsets.modules;
	memcpy(&first, at, sizeof(first));
	memcpy(path, at + sizeof(first), REGION_PATH_BYTES);
	path[first.path_bytes >= 1 && first.path_bytes <= REGION_PATH_BYTES ? first.path_bytes - 1 : 0] =
	    '\0';
}

/* A program with several names (Debian's redis-server is a link to redis-check-rdb) gets the name by which it
 * was executed, if that name leads to the program; a script gets the name of its interpreter. */
static void read_title(struct process *process)
{
	char called[REGION_PATH_BYTES], path[REGION_PATH_BYTES + 64], exe[64];
	struct stat by_name, by_process;
	read_called(process->image->region, called);
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)process->target.pid);
	snprintf(path, sizeof(path), "/proc/%d/%s/%s", (int)process->target.pid,
	    called[0] == '/' ? "root" : "cwd", called);
	bool good = process->target.pidfd >= 0 && called[0] && stat(path, &by_name) == 0 &&
	    stat(exe, &by_process) == 0 && by_name.st_dev == by_process.st_dev &&
	    by_name.st_ino == by_process.st_ino;
	target_set_title(&process->target, good ? called : process->target.name);
	if (good && called[0] == '/' && strlen(called) < sizeof(process->target.called))
		strcpy(process->target.called, called);
}

/* If the process has executed another program since find_pid, /proc describes that one. */
static void doubt_name(struct process *process)
{
	char called[REGION_PATH_BYTES];
	if (process->target.pidfd < 0 || process_is_there(process) ||
	    thread_read(process->target.pid).pid == 0)
		return;
	read_called(process->image->region, called);
	snprintf(process->target.name, sizeof(process->target.name), "%s", called);
	target_set_title(&process->target, called);
}

/* When a process was forked, in ticks since the machine's start; 0: not known. */
static uint64_t started(pid_t pid)
{
	char path[64], line[1024] = "";
	uint64_t ticks = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *stat = fopen(path, "re");
	if (!stat)
		return 0;
	/* the name may contain any characters */
	const char *after = fgets(line, sizeof(line), stat) ? strrchr(line, ')') : NULL;
	if (!after ||
	    sscanf(after + 1,
	        " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
	        &ticks) != 1)
		ticks = 0;
	fclose(stat);
	return ticks;
}

/* Whether a process can belong to the image, as far as the kernel says. The pid comes from the target, and
 * must not make us wait for a process that never ends: the sampler itself, which maps every region, or its
 * children, which write profiles; or a process that hides its maps (in a container, init does so even from
 * root), belongs to another user, or is older than the sampler. */
static enum answer belongs(const struct thread_facts *facts, const struct region *region)
{
	if (facts->pid == 0 || facts->pid == getpid() || facts->parent == getpid())
		return NO;
	enum answer answer = maps_region(facts->pid, region);
	bool possible = facts->like_us && started(facts->pid) >= started(getpid());
	return answer == SECRET && !possible ? NO : answer;
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
static pid_t search_pid(struct image *image, pid_t told, bool cloned)
{
	DIR *proc = image->searches++ < SEARCHES_MAX ? opendir("/proc") : NULL;
	pid_t found = 0;
	uint32_t candidates = 0;
	struct dirent *entry;
	while (proc && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);
		struct thread_facts facts = pid > 0 ? thread_read(pid) : (struct thread_facts){0};
		bool likely = cloned ? facts.parent == told : facts.inner == told && pid != told;
		if (!likely || known(image, pid) || belongs(&facts, image->region) != YES)
			continue;
		found = pid;
		candidates++;
	}
	if (proc)
		closedir(proc);
	return candidates == 1 ? found : 0;
}

static void find_pid(struct process *process, const struct region_place *place)
{
	struct image *image = process->image;
	process->target.pid = (pid_t)place->pid > 0 ? (pid_t)place->pid : 0;
	struct thread_facts facts =
	    process->target.pid ? thread_read(process->target.pid) : (struct thread_facts){0};
	pid_t pid = facts.pid;
	if (pid <= 0)
		return;
	bool cloned = known(image, pid);
	if (cloned || belongs(&facts, image->region) == NO) {
		pid = search_pid(image, pid, cloned);
		if (!pid && cloned)
			process->target.pid = 0; /* has ended; the pid was reused */
		if (!pid)
			return;
	}
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return;
	/* it has ended meanwhile, and the pid was reused */
	if (maps_region(pid, image->region) == NO) {
		close(pidfd);
		return;
	}
	process->target.pid = pid;
	process->target.pidfd = pidfd;
	process->target.readable = true;
}

bool process_is_there(const struct process *process)
{
	return process->target.pidfd >= 0 && maps_region(process->target.pid, process->image->region) != NO;
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

static struct process *parent_of(const struct process *process, const struct region_place *place)
{
	uint32_t parent = place->parent;
	return parent >= 1 && parent <= REGION_PLACES && parent - 1 != process->place
	    ? process->image->process[parent - 1]
	    : NULL;
}

static void open_maps(struct process *process, struct modules *modules, const struct process *parent)
{
	struct target *target = &process->target;
	target->maps = maps_new(modules, target->readable ? target->pid : 0, true);
	if (!target->maps || (target_read_maps(target, clock_now_ns(), 0) && maps_count(target->maps) > 0))
		return;
	target->maps_read_ns = 0;
	if (parent && parent->target.maps) {
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
	if (process->image->memory)
		memory_bound_note(process->image->memory, &process->held_bytes,
		    stacks_bytes(process->target.stacks) + heap_bytes(process->heap));
}

void process_inherit(struct process *process)
{
	const struct region *region = process->image->region;
	const struct process *parent = parent_of(process, region_place(region, process->place));
	process->counters.inherited_no_room = 0;
	for (uint32_t s = 0; parent && s < region->segments; s++) {
		if (region_segment_owner(region, s) != (int)process->place)
			continue;
		for (uint32_t i = 0; i < REGION_SEGMENT_SLOTS; i++) {
			struct slot_copy slot;
			uint32_t number = s * REGION_SEGMENT_SLOTS + i;
			if (!region_read_slot(region, number, &slot) || !(slot.flags & SLOT_INHERITED) ||
			    slot.origin_place != parent->place ||
			    heap_site_of(process->heap, number, slot.seq) != HEAP_NO_SITE)
				continue;
			uint32_t site = heap_site_of(parent->heap, slot.sample.slot, slot.sample.seq);
			if (site == HEAP_NO_SITE)
				continue;
			process_look_for_room(process);
			uint32_t stack = stacks_translate(parent->target.stacks,
			    heap_site(parent->heap, site)->key.stack, process->target.stacks);
			const struct heap_sample sample = {
			    .slot = number,
			    .seq = slot.seq,
			    .stack = stack,
			    .tid = heap_site(parent->heap, site)->key.tid,
			    .backend = heap_site(parent->heap, site)->key.backend,
			    .mapped = slot.flags & SLOT_MMAP,
			    .size_bytes = slot.sample.size_bytes,
			    .period_bytes = slot.sample.period_bytes,
			};
			if (stack == UINT32_MAX || heap_inherit(process->heap, &sample) == -ENOMEM)
				process->counters.inherited_no_room++;
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

static struct process *process_new(struct image *image, uint32_t number, struct modules *modules)
{
	struct region_place *place = region_place(image->region, number);
	struct process *process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->image = image;
	process->place = number;
	bool ready = target_init(&process->target, 0, clock_now_ns());
	process->target.code_address = image->trigger_address;
	process->heap = heap_new(image->region, &image->heap);
	if (image->heap.labels & HEAP_LABEL_THREAD)
		process->target.threads = threads_new();
	find_pid(process, place);
	target_note_perf_map(&process->target);
	read_name(process);
	struct process *parent = parent_of(process, place);
	open_maps(process, modules, parent);
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
	doubt_name(process);
	return process;
}

void process_adopt(struct process *process)
{
	const struct region *region = process->image->region;
	uint32_t stack =
	    stacks_intern(process->target.stacks, NULL, 0, STACK_BEFORE_RESTART, process->target.maps);
	if (stack == UINT32_MAX)
		return;
	struct tally counted = region_read_tally(&region_place(region, process->place)->allocated);
	heap_adopt(process->heap, stack, counted);
	process->counters.before_restart = counted.samples;
	for (uint32_t s = 0; s < region->segments; s++) {
		if (region_segment_owner(region, s) != (int)process->place)
			continue;
		for (uint32_t i = 0; i < REGION_SEGMENT_SLOTS; i++) {
			struct slot_copy slot;
			uint32_t number = s * REGION_SEGMENT_SLOTS + i;
			if (!region_read_slot(region, number, &slot))
				continue;
			const struct heap_sample sample = {.slot = number,
			    .seq = slot.seq,
			    .stack = stack,
			    .tid = slot.sample.tid,
			    .mapped = slot.flags & SLOT_MMAP,
			    .size_bytes = slot.sample.size_bytes,
			    .period_bytes = slot.sample.period_bytes};
			heap_inherit(process->heap, &sample);
		}
	}
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
	free(process);
}

uint64_t process_samples(const struct process *process)
{
	return region_read_tally(&region_place(process->image->region, process->place)->allocated).samples;
}
