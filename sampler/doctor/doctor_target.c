/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/doctor/doctor_target.h"

#include "pprof/table/array.h"
#include "sampler/attach/fitness.h"
#include "pprof/text/utf8.h"
#include "sampler/loader/allocator_names.h"
#include "sampler/loader/malloc_binding.h"
#include "sampler/doctor/doctor_resident.h"
#include "sampler/doctor/doctor_script.h"
#include "sampler/doctor/doctor_self.h"
#include "sampler/doctor/finding.h"
#include "sampler/region/region_takeover.h"
#include "sampler/loader/preload_library.h"
#include "pprof/text/log_line.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/program_path.h"
#include "sampler/linux/regular_file.h"
#include "sampler/loader/preload_check.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a file contains for profilers and debuggers. */
struct file_facts {
	bool whole;          /* it is as long as its headers say */
	bool shared_library; /* nothing to execute: no program interpreter, but a name to be linked by */
	bool object;         /* not linked yet, or a core dump */
	bool symbols, debug, debug_link, unwind, build_id;
	bool own_malloc; /* exports malloc: a program's own comes before any preloaded one */
	bool symbolic;   /* binds its calls to itself first (DF_SYMBOLIC) */
	bool exports_allocator;
	char allocator[64]; /* a function of an allocator that it contains; "" none is known */
	char library[64];   /* an allocator's shared library that it is linked to; "" none */
};

static void look_at_symbol(const char *name, bool exported, struct file_facts *facts)
{
	if (exported && strcmp(name, "malloc") == 0)
		facts->own_malloc = true;
	if (!allocator_names_function(name))
		return;
	facts->exports_allocator = facts->exports_allocator || exported;
	if (!facts->allocator[0])
		snprintf(facts->allocator, sizeof(facts->allocator), "%s", name);
}

static void look_at_symbols(Elf_Scn *section, Elf *elf, const GElf_Shdr *header, struct file_facts *facts)
{
	Elf_Data *data = elf_getdata(section, NULL);
	bool exported = header->sh_type == SHT_DYNSYM;

	for (size_t i = 0; data && header->sh_entsize && i < header->sh_size / header->sh_entsize; i++) {
		GElf_Sym symbol;
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
		    (exported && GELF_ST_BIND(symbol.st_info) == STB_LOCAL))
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name)
			look_at_symbol(name, exported, facts);
	}
}

static void look_at_dynamic(Elf_Scn *section, Elf *elf, const GElf_Shdr *header, struct file_facts *facts)
{
	Elf_Data *data = elf_getdata(section, NULL);

	for (size_t i = 0; data && header->sh_entsize && i < header->sh_size / header->sh_entsize; i++) {
		GElf_Dyn entry;
		const char *needed;

		if (!gelf_getdyn(data, (int)i, &entry))
			continue;
		needed = entry.d_tag == DT_NEEDED ? elf_strptr(elf, header->sh_link, entry.d_un.d_val) : NULL;
		if (needed && allocator_names_library(needed)) {
			snprintf(facts->library, sizeof(facts->library), "%s", needed);
			utf8_disarm(facts->library, strlen(facts->library));
		}
		facts->shared_library = facts->shared_library || entry.d_tag == DT_SONAME;
		facts->symbolic = facts->symbolic || entry.d_tag == DT_SYMBOLIC ||
		    (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_SYMBOLIC);
	}
}

static void look_at_sections(Elf *elf, struct file_facts *facts)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name =
		    gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (!name)
			continue;
		facts->symbols = facts->symbols || header.sh_type == SHT_SYMTAB;
		facts->debug =
		    facts->debug || strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0;
		facts->debug_link = facts->debug_link || strcmp(name, ".gnu_debuglink") == 0;
		facts->unwind =
		    facts->unwind || strcmp(name, ".eh_frame") == 0 || strcmp(name, ".debug_frame") == 0;
		if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB)
			look_at_symbols(section, elf, &header, facts);
		if (header.sh_type == SHT_DYNAMIC)
			look_at_dynamic(section, elf, &header, facts);
	}
}

static void look_at_segments(Elf *elf, uint64_t file_bytes, struct file_facts *facts)
{
	GElf_Ehdr header;
	size_t count;

	if (!gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &count))
		return;
	facts->whole = true;
	facts->object = header.e_type == ET_REL || header.e_type == ET_CORE;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_filesz > file_bytes ||
		    segment.p_offset > file_bytes - segment.p_filesz)
			facts->whole = false;
		else if (segment.p_type == PT_INTERP)
			facts->shared_library = false;
	}
}

static int facts_read(const char *path, struct file_facts *facts)
{
	struct stat status;
	const void *id;
	int fd = regular_file_open(AT_FDCWD, path, 0, &status);
	Elf *elf;

	memset(facts, 0, sizeof(*facts));
	if (fd < 0)
		return fd;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		facts->build_id = dwelf_elf_gnu_build_id(elf, &id) > 0;
		look_at_sections(elf, facts);
		look_at_segments(elf, (uint64_t)status.st_size, facts);
	}
	elf_end(elf);
	close(fd);
	return 0;
}

static void say_allocator(
    struct findings *findings, const char *name, const struct file_facts *facts, bool running)
{
	if (facts->own_malloc)
		finding_say(findings, FINDING_BAD, "link the allocator as a shared library",
		    "%s contains a malloc of its own: calls to it are not seen", name);
	else if (facts->allocator[0])
		finding_say(findings, FINDING_BAD,
		    "link the allocator as a shared library, or use the system's",
		    "%s contains an allocator of its own (%s): what it allocates by that is not seen", name,
		    facts->allocator);
	else
		finding_say(
		    findings, FINDING_GOOD, NULL, "%s is dynamically linked: its allocations are seen", name);
	if (facts->library[0])
		finding_say(findings, FINDING_GOOD, NULL,
		    "%s is linked to %s: calls to that library's own functions are seen too%s", name,
		    facts->library, running ? ", if 'heaptap record' starts it" : "");
}

static void say_names(struct findings *findings, const char *name, const struct file_facts *facts)
{
	if (!facts->unwind)
		finding_say(findings, FINDING_NOTE,
		    "build it with -fasynchronous-unwind-tables, and do not strip .eh_frame",
		    "%s has no unwind tables: stacks end there, or go on by guess", name);
	if (facts->debug)
		finding_say(findings, FINDING_GOOD, NULL,
		    "%s has debug info: functions, inlined calls and lines", name);
	else if (facts->debug_link)
		finding_say(findings, FINDING_NOTE,
		    "install its -dbgsym package, put the .debug file beside it, or record with --debuginfod",
		    "%s is stripped; its debug info is in a separate file, if that is installed", name);
	else if (facts->symbols)
		finding_say(findings, FINDING_NOTE, "build it with -g",
		    "%s has names of functions, but no lines or inlined calls", name);
	else
		finding_say(findings, FINDING_NOTE, "build it with -g, or install its -dbgsym package",
		    "%s is stripped: functions that it does not export are named by address, and an "
		    "allocator inside it would not be found",
		    name);
	if (!facts->build_id)
		finding_say(findings, FINDING_NOTE, "link it with -Wl,--build-id",
		    "%s has no build id: readers cannot tell its versions apart", name);
}

/* What cannot be executed at all, whatever else it contains. */
static bool say_no_program(struct findings *findings, const char *name, const struct file_facts *facts)
{
	if (!facts->whole)
		finding_say(findings, FINDING_BAD, "build or copy it again",
		    "%s is damaged: it ends before what its header announces", name);
	else if (facts->object)
		finding_say(findings, FINDING_BAD, "name the program itself",
		    "%s is no program: an object file that is not linked, or a core dump", name);
	else if (facts->shared_library)
		finding_say(findings, FINDING_BAD, "name a program that uses it",
		    "%s is no program but a shared library: what it allocates is seen in programs", name);
	return !facts->whole || facts->object || facts->shared_library;
}

static const char *fix_of(enum preload_check_kind kind)
{
	switch (kind) {
	case PRELOAD_CHECK_STATIC:
		return "link it dynamically (without -static)";
	case PRELOAD_CHECK_PRIVILEGED:
		return "record it as the user that it becomes, or a copy without the privilege";
	case PRELOAD_CHECK_SANITIZER:
		return "build it without the sanitizer";
	default:
		return "use a heaptap of its architecture";
	}
}

/* name: what the user knows the file by; running: a process executes it, so it can be executed */
static int examine_program(struct findings *findings, const char *path, const char *name, bool running)
{
	struct file_facts facts;
	enum preload_check_kind kind = preload_check_inspect(path);
	const char *obstacle = preload_check_obstacle(kind);
	bool known = facts_read(path, &facts) == 0;

	if (known && !running && say_no_program(findings, name, &facts))
		return 0;
	if (obstacle) {
		finding_say(
		    findings, FINDING_BAD, fix_of(kind), "%s %s, so nothing of it is seen", name, obstacle);
		return 0;
	}
	if (access(path, R_OK) != 0) {
		log_line("cannot read %s: %s", name, strerror(errno));
		return -errno;
	}
	if (known) {
		say_allocator(findings, name, &facts, running);
		say_names(findings, name, &facts);
	}
	return 0;
}

/* ---- a running process */

void doctor_target_capabilities(pid_t pid, unsigned long long *capabilities, int *seccomp)
{
	char text[8192];

	if (proc_read(pid, "status", text, sizeof(text)) < 0)
		return;
	*capabilities = proc_status_number(text, "\nCapEff:", 16, *capabilities);
	*seccomp = (int)proc_status_number(text, "\nSeccomp:", 10, (unsigned long long)*seccomp);
}

struct mapping {
	uint64_t start, end, base; /* base: of its file's first mapping */
	bool code;
	char *path; /* "" of no file */
};

struct mapped {
	struct mapping *mappings; /* by address, ascending */
	size_t count, capacity;
	bool profiled, region; /* it has the library that is preloaded; the shared memory */
	unsigned int libraries, without_names, symbolic, elsewhere, inside;
	char first_symbolic[256], first_elsewhere[256], first_target[256], first_inside[256];
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

/* The mapping that the file's calls of malloc lead to; NULL: unknown. */
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
 * binding). One that points to another file's PLT entry for malloc leads where that leads: all files use the
 * PLT entry of a program at a fixed address.
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

/* Examines each mapped file once, where its code begins; opens it as the process sees it. */
static void look_at_map(pid_t pid, const struct mapping *mapping, int memory_fd, struct mapped *mapped)
{
	const char *path = mapping->path;
	struct file_facts facts;
	char seen[PATH_MAX + PROC_PATH_BYTES];

	if (!proc_root_path(seen, sizeof(seen), pid, path) || facts_read(seen, &facts))
		return;
	if (mapped->profiled)
		look_at_binding(pid, mapping, memory_fd, mapped);
	mapped->libraries++;
	mapped->without_names += !facts.symbols && !facts.debug;
	if (facts.allocator[0] && !facts.exports_allocator && !is_ours(mapping) && !mapped->inside++)
		snprintf(mapped->first_inside, sizeof(mapped->first_inside), "%s", path);
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

/* Can it be attached to? */
static void say_running(struct findings *findings, pid_t pid)
{
	struct fitness fitness;
	char fix[64];

	if (fitness_examine(&fitness, pid, false)) {
		snprintf(fix, sizeof(fix), "heaptap record -P %d", (int)pid);
		finding_say(findings, FINDING_NOTE, fix,
		    "process %d was started without heaptap: what it has allocated is not seen, what it "
		    "will allocate can be",
		    (int)pid);
		return;
	}
	finding_say(findings, FINDING_BAD, fitness.remedy[0] ? fitness.remedy : NULL,
	    "process %d %s; it was started without heaptap", (int)pid, fitness.cause);
}

static void say_process(struct findings *findings, pid_t pid, const struct mapped *mapped)
{
	unsigned long long capabilities = 0;
	int seccomp = 0;

	doctor_target_capabilities(pid, &capabilities, &seccomp);
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
	if (mapped->inside)
		finding_say(findings, FINDING_BAD,
		    "link the allocator as a shared library, or use the system's",
		    "%u mapped files contain an allocator of their own, which is not seen, such as %s",
		    mapped->inside, mapped->first_inside);
	if (mapped->symbolic)
		finding_say(findings, FINDING_NOTE, "link it without -Bsymbolic",
		    "%u mapped files bind calls to themselves first, such as %s", mapped->symbolic,
		    mapped->first_symbolic);
	finding_say(findings, FINDING_GOOD, NULL,
	    "%u mapped files with code, %u of them without names for functions they do not export",
	    mapped->libraries, mapped->without_names);
}

static int examine_process(struct findings *findings, pid_t pid)
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
	if (doctor_self_is(findings, pid)) {
		mapped_fini(&mapped);
		return 0;
	}
	say_process(findings, pid, &mapped);
	doctor_resident_say(findings, pid);
	mapped_fini(&mapped);
	/* What it runs, also if that path means another file by now, or in our mount namespace. */
	snprintf(opened, sizeof(opened), "/proc/%d/exe", (int)pid);
	return examine_program(findings, opened, program, true);
}

int doctor_target_examine(struct findings *findings, const char *name)
{
	char path[PATH_MAX], program[PATH_MAX], *end;
	struct stat status;
	long pid = strtol(name, &end, 10);

	if (*name && !*end && pid > 0 && pid <= INT_MAX)
		return examine_process(findings, (pid_t)pid);
	if (*name && !*end) {
		log_line("%s is not a process id", name);
		return -ESRCH;
	}
	if (program_path_find(name, path, sizeof(path))) {
		int err = doctor_script_resolve(findings, path, program, sizeof(program));

		return err ? err : examine_program(findings, program, program, false);
	}
	if (strchr(name, '/'))
		log_line("there is no file %s", name);
	else if (stat(name, &status) == 0 && S_ISDIR(status.st_mode))
		log_line("%s is a folder: name a program in it", name);
	else
		log_line(access(name, F_OK) == 0
		        ? "there is no program %s in PATH; the one here: heaptap doctor ./%s"
		        : "there is no program %s in PATH",
		    name, name);
	return -ENOENT;
}
