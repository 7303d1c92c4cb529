/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/doctor/doctor_process.h"

#include "pprof/table/array.h"
#include "pprof/text/amount.h"
#include "pprof/text/log_line.h"
#include "sampler/books/unseen.h"
#include "sampler/cmd/doctor/doctor_program.h"
#include "sampler/cmd/doctor/finding.h"
#include "sampler/inject/fitness.h"
#include "sampler/inject/malloc_binding.h"
#include "sampler/inject/preload_check.h"
#include "sampler/inject/preload_library.h"
#include "sampler/inject/profiled.h"
#include "sampler/intake/region_takeover.h"
#include "sampler/linux/descendants.h"
#include "sampler/linux/proc.h"
#include "sampler/write/resident_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void doctor_process_capabilities(pid_t pid, unsigned long long *capabilities, int *seccomp)
{
	char text[PROC_STATUS_BYTES];

	if (proc_read(pid, "status", text, sizeof(text)) < 0)
		return;
	*capabilities = proc_status_number(text, "\nCapEff:", 16, *capabilities);
	*seccomp = (int)proc_status_number(text, "\nSeccomp:", 10, (unsigned long long)*seccomp);
}

struct mapping {
	uint64_t start, end, base; /* base: the start of its file's first mapping */
	bool code;
	char *path; /* "" without a file */
};

struct mapped {
	struct mapping *mappings; /* by address, ascending */
	size_t count, capacity;
	bool profiled, region; /* it has the preloaded library; it has the shared memory */
	unsigned int libraries, without_names, symbolic, elsewhere;
	unsigned int gone; /* their files were replaced or removed, and may not be read in /proc */
	char first_symbolic[256], first_elsewhere[256], first_target[256], first_gone[256];
};

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const struct mapping *mapping_at(const struct mapped *mapped, uint64_t address)
{
	for (size_t i = 0; i < mapped->count; i++)
		if (address >= mapped->mappings[i].start && address < mapped->mappings[i].end)
			return &mapped->mappings[i];
	return NULL;
}

/* The mapping that the file's calls of malloc lead to. NULL if it is unknown. */
static const struct mapping *malloc_find(
    pid_t pid, const struct mapping *mapping, int memory_fd, const struct mapped *mapped)
{
	char seen[PATH_MAX + PROC_PATH_BYTES];
	uint64_t target = 0;

	if (!*mapping->path || !proc_root_path(seen, sizeof(seen), pid, mapping->path) ||
	    (malloc_binding_read(seen, mapping->base, memory_fd, "malloc", &target) &&
	        malloc_binding_read(seen, mapping->base, memory_fd, "calloc", &target)))
		return NULL;
	return mapping_at(mapped, target);
}

static bool is_ours(const struct mapping *mapping)
{
	return strcmp(file_name(mapping->path), PRELOAD_LIBRARY_NAME) == 0;
}

/*
 * Which malloc does the file call? A GOT entry that points into the file itself was not used yet (lazy
 * binding). An entry that points to another file's PLT entry for malloc leads where the PLT entry leads: all
 * files use the PLT entry of a program at a fixed address.
 */
static void look_at_binding(pid_t pid, const struct mapping *mapping, int memory_fd, struct mapped *mapped)
{
	const struct mapping *target = malloc_find(pid, mapping, memory_fd, mapped), *next;

	if (!target || !*target->path || is_ours(mapping) || is_ours(target) ||
	    strcmp(target->path, mapping->path) == 0)
		return;
	next = strncmp(file_name(target->path), "libc.", 5) != 0 ? malloc_find(pid, target, memory_fd, mapped)
	                                                         : NULL;
	if (next && (is_ours(next) || strcmp(next->path, target->path) == 0))
		return;
	if (!mapped->elsewhere++) {
		snprintf(mapped->first_elsewhere, sizeof(mapped->first_elsewhere), "%s", mapping->path);
		snprintf(mapped->first_target, sizeof(mapped->first_target), "%s", file_name(target->path));
	}
}

/* A file that is gone can be read in /proc, by root alone. */
static int read_gone(pid_t pid, const struct mapping *mapping, struct doctor_program_file *facts)
{
	char name[64], path[PROC_PATH_BYTES];

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, mapping->start, mapping->end);
	return doctor_program_read(facts, proc_path(path, pid, name));
}

static bool is_of_gone(const struct mapping *mapping)
{
	const char *path = mapping->path;

	return proc_undeleted_length(path) != strlen(path) && strncmp(path, "/memfd:", 7) != 0 &&
	    strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/SYSV", 5) != 0;
}

/* Examines each mapped file once, where its code begins; opens it as the process sees it. */
static void look_at_map(pid_t pid, const struct mapping *mapping, int memory_fd, struct mapped *mapped)
{
	const char *path = mapping->path;
	struct doctor_program_file facts;
	char seen[PATH_MAX + PROC_PATH_BYTES];

	if ((!proc_root_path(seen, sizeof(seen), pid, path) || doctor_program_read(&facts, seen)) &&
	    read_gone(pid, mapping, &facts)) {
		if (is_of_gone(mapping) && !mapped->gone++)
			snprintf(mapped->first_gone, sizeof(mapped->first_gone), "%.*s",
			    (int)proc_undeleted_length(path), path);
		return;
	}
	if (mapped->profiled)
		look_at_binding(pid, mapping, memory_fd, mapped);
	mapped->libraries++;
	mapped->without_names += !facts.inside.table && !facts.debug;
	if (facts.symbolic && !mapped->symbolic++)
		snprintf(mapped->first_symbolic, sizeof(mapped->first_symbolic), "%s", path);
}

/* The mappings of a file are adjacent, except for anonymous ones between them (.bss). */
static int mapping_add(struct mapped *mapped, const struct mapping *mapping)
{
	struct mapping *new;
	size_t last = mapped->count;

	if (array_reserve(&mapped->mappings, &mapped->capacity, mapped->count + 1, sizeof(*mapped->mappings)))
		return -ENOMEM;
	new = &mapped->mappings[mapped->count];
	*new = *mapping;
	new->path = strdup(mapping->path);
	if (!new->path)
		return -ENOMEM;
	mapped->count++;
	while (last && !*mapped->mappings[last - 1].path)
		last--;
	new->base = last &&strcmp(mapped->mappings[last - 1].path, new->path) == 0
	    ? mapped->mappings[last - 1].base
	    : new->start;
	if (*new->path && strcmp(file_name(new->path), PRELOAD_LIBRARY_NAME) == 0)
		mapped->profiled = true;
	if (strncmp(new->path, "/memfd:heaptap ", 15) == 0)
		mapped->region = true;
	return 0;
}

static void mapped_fini(struct mapped *mapped)
{
	for (size_t i = 0; i < mapped->count; i++)
		free(mapped->mappings[i].path);
	free(mapped->mappings);
}

static int look_at_maps(pid_t pid, struct mapped *mapped)
{
	char memory_path[PROC_PATH_BYTES], line[PATH_MAX + 128];
	int memory_fd, err = 0;
	FILE *maps;

	maps = proc_open_text(pid, "maps");
	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps) && !err) {
		struct mapping mapping = {0};
		char access_bits[8];
		int path = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*x %*s %*u %n", &mapping.start, &mapping.end,
		        access_bits, &path) != 3)
			continue;
		mapping.code = access_bits[2] == 'x' && line[path] == '/';
		mapping.path = line[path] == '/' ? line + path : "";
		err = mapping_add(mapped, &mapping);
	}
	fclose(maps);
	memory_fd = open(proc_path(memory_path, pid, "mem"), O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < mapped->count; i++)
		if (mapped->mappings[i].code)
			look_at_map(pid, &mapped->mappings[i], memory_fd, mapped);
	if (memory_fd >= 0)
		close(memory_fd);
	return err;
}

/* A master process allocates little: its workers have to be looked at. */
static void say_children(struct findings *findings, pid_t pid)
{
	struct descendant child;
	const size_t count = descendants_find(&pid, 1, &child, 1);
	char fix[64];

	if (!count)
		return;
	snprintf(fix, sizeof(fix), "heaptap doctor %d", (int)child.pid);
	finding_say(findings, FINDING_NOTE, fix, "it has %zu %s, which heaptap attach %d records too", count,
	    count == 1 ? "child" : "children", (int)pid);
}

/* Can heaptap attach to it? */
static void say_running(struct findings *findings, pid_t pid)
{
	struct fitness fitness;
	char fix[64];

	if (fitness_examine(&fitness, pid, false)) {
		snprintf(fix, sizeof(fix), "heaptap attach %d", (int)pid);
		finding_say(findings, FINDING_NOTE, fix,
		    "process %d was started without heaptap: what it has allocated is not seen, what it "
		    "will allocate can be",
		    (int)pid);
		say_children(findings, pid);
		return;
	}
	finding_say(findings, FINDING_BAD, fitness.remedy[0] ? fitness.remedy : NULL,
	    "process %d %s; it was started without heaptap", (int)pid, fitness.cause);
}

static void say_process(struct findings *findings, pid_t pid, const struct mapped *mapped)
{
	unsigned long long capabilities = 0;
	int seccomp = 0;

	doctor_process_capabilities(pid, &capabilities, &seccomp);
	if (mapped->profiled && mapped->region && geteuid() == 0 && !region_takeover_sampler(pid))
		finding_say(findings, FINDING_BAD, "heaptap adopt PID",
		    "process %d was profiled, and its sampler is gone", (int)pid);
	else if (mapped->profiled)
		finding_say(findings, FINDING_GOOD, NULL, "process %d is being profiled: heaptap snapshot %d",
		    (int)pid, (int)pid);
	else
		say_running(findings, pid);
	if (seccomp == 2)
		finding_say(findings, FINDING_NOTE, NULL,
		    "it has a seccomp filter: sampling works, but programs that it executes may be seen "
		    "late");
	if (mapped->elsewhere)
		finding_say(findings, FINDING_BAD,
		    "open plug-ins without RTLD_DEEPBIND; link without -Bsymbolic",
		    "%u mapped files call another malloc, which is not seen; %s calls that of %s",
		    mapped->elsewhere, mapped->first_elsewhere, mapped->first_target);
	if (mapped->symbolic)
		finding_say(findings, FINDING_NOTE, "link it without -Bsymbolic",
		    "%u mapped files bind calls to themselves first, such as %s", mapped->symbolic,
		    mapped->first_symbolic);
	if (mapped->gone)
		finding_say(findings, FINDING_NOTE, "start it again, or run heaptap as root",
		    "%u mapped %s replaced or removed while it ran, such as %s: what is known of such a file "
		    "is read from its memory, and only functions that the file exports have names",
		    mapped->gone, mapped->gone == 1 ? "file was" : "files were", mapped->first_gone);
	finding_say(findings, FINDING_GOOD, NULL,
	    "%u mapped files with code, %u of them without names for functions they do not export",
	    mapped->libraries + mapped->gone, mapped->without_names + mapped->gone);
}

/* Only samples of the heap can tell how much this is. */
static void say_unseen(struct findings *findings, pid_t pid)
{
	struct unseen_facts facts = {.stripped = false};
	struct modules *modules = modules_new(0);
	struct unseen unseen = {.count = 0};

	if (modules && unseen_facts_look_at_process(&facts, modules, pid) == 0)
		unseen_describe(&unseen, &facts);
	doctor_program_say_unseen(findings, "it", &unseen);
	if (modules)
		modules_free(modules);
}

/* ---- what it is */

struct profiled_here {
	pid_t by;            /* the pid of `heaptap record` or of its sampler */
	char first[64 + 32]; /* a process that it profiles */
};

static pid_t parent_of(pid_t pid)
{
	char text[8192];

	return proc_read(pid, "status", text, sizeof(text)) < 0
	    ? 0
	    : (pid_t)proc_status_number(text, "\nPPid:", 10, 0);
}

static int take_first(void *context, pid_t pid, const char *name, bool sampled)
{
	struct profiled_here *here = context;
	pid_t sampler = sampled ? profiled_sampler(pid) : 0;

	if (!sampler || (sampler != here->by && parent_of(sampler) != here->by))
		return 0;
	snprintf(here->first, sizeof(here->first), "heaptap doctor %d (%s)", (int)pid, name);
	return 1;
}

/* Is the process heaptap's own, and not a target? A user may give a shell's $! after `heaptap record`. Then a
 * finding says which process may be meant. */
static bool is_heaptap(struct findings *findings, pid_t pid)
{
	struct profiled_here here = {pid, "heaptap doctor PID"};
	char path[PROC_PATH_BYTES];
	struct stat own, other;

	if (profiled_sampler(pid) || stat("/proc/self/exe", &own) ||
	    stat(proc_path(path, pid, "exe"), &other) || own.st_dev != other.st_dev ||
	    own.st_ino != other.st_ino)
		return false;
	profiled_each(take_first, &here);
	finding_say(findings, FINDING_BAD, here.first,
	    "process %d is heaptap itself: name a process that it profiles", (int)pid);
	return true;
}

/* The user has asked for it, so it may take longer than while recording; but it holds the process'
 * mmap_lock. */
enum { READING_MAX_NS = 1000 * 1000000 };

static void say_resident(struct findings *findings, pid_t pid)
{
	const struct resident_facts facts = {.library = PRELOAD_LIBRARY_NAME};
	struct resident_reading reading = {0};
	char rows[RESIDENT_TEXT_ROWS][RESIDENT_TEXT_BYTES], amount[AMOUNT_BYTES];

	int error = resident_read(&reading.parts, pid, &facts, READING_MAX_NS);
	if (error) {
		finding_say(findings, FINDING_NOTE, NULL,
		    "what its resident memory consists of cannot be read: %s", strerror(-error));
		return;
	}
	finding_say(findings, FINDING_GOOD, NULL,
	    "it has %s resident (%s):", amount_bytes((double)reading.parts.total_bytes, amount),
	    reading.parts.counters ? "the kernel's counters: it is too large to look at each mapping"
	                           : "the sum of its mappings in smaps");
	size_t count = resident_text_rows(&reading, false, rows);
	for (size_t i = 0; i < count; i++)
		fprintf(findings->out, "      %s\n", rows[i]);
}

int doctor_process_examine(struct findings *findings, pid_t pid)
{
	char program[PATH_MAX], opened[32];
	struct mapped mapped = {0};
	int err = look_at_maps(pid, &mapped);
	ssize_t length;

	length = proc_read_exe(pid, program, sizeof(program));
	if (err || length < 0) {
		err = err ? err : (int)length;
		mapped_fini(&mapped);
		struct fitness fitness = {.cause = ""};
		if (err == -ENOENT && kill(pid, 0) != 0 && errno == ESRCH)
			log_line("there is no process %d", (int)pid);
		else if (!fitness_examine(&fitness, pid, false))
			log_line("process %d %s%s%s", (int)pid, fitness.cause, fitness.remedy[0] ? ": " : "",
			    fitness.remedy);
		else
			log_line("process %d cannot be examined: %s (that needs the rights to trace it)",
			    (int)pid, strerror(-err));
		return err;
	}
	if (is_heaptap(findings, pid)) {
		mapped_fini(&mapped);
		return 0;
	}
	say_process(findings, pid, &mapped);
	/* The file that it runs: the path may mean another file by now, or in our mount namespace. */
	snprintf(opened, sizeof(opened), "/proc/%d/exe", (int)pid);
	if (preload_check_inspect(opened) != PRELOAD_CHECK_STATIC) /* of a static program nothing is seen */
		say_unseen(findings, pid);
	say_resident(findings, pid);
	mapped_fini(&mapped);
	return doctor_program_examine(findings, opened, program, true);
}
