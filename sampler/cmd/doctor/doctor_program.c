/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/doctor/doctor_program.h"

#include "pprof/text/log_line.h"
#include "pprof/text/utf8.h"
#include "sampler/cmd/doctor/finding.h"
#include "sampler/inject/allocator_names.h"
#include "sampler/inject/preload_check.h"
#include "sampler/linux/confinement.h"
#include "sampler/linux/regular_file.h"
#include "sampler/symbol/symbol.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU_SECONDS = 10 }; /* for one file */

/* ---- what is in the file */

static void look_at_dynamic(
    Elf_Scn *section, Elf *elf, const GElf_Shdr *header, struct doctor_program_file *file)
{
	Elf_Data *data = elf_getdata(section, NULL);

	for (size_t i = 0; data && header->sh_entsize && i < header->sh_size / header->sh_entsize; i++) {
		GElf_Dyn entry;
		const char *needed;

		if (!gelf_getdyn(data, (int)i, &entry))
			continue;
		needed = entry.d_tag == DT_NEEDED ? elf_strptr(elf, header->sh_link, entry.d_un.d_val) : NULL;
		if (needed && allocator_names_library(needed))
			snprintf(file->library, sizeof(file->library), "%s", needed);
		file->shared_library = file->shared_library || entry.d_tag == DT_SONAME;
		file->symbolic = file->symbolic || entry.d_tag == DT_SYMBOLIC ||
		    (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_SYMBOLIC);
	}
}

static void look_at_sections(Elf *elf, struct doctor_program_file *file)
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
		file->debug =
		    file->debug || strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0;
		file->debug_link = file->debug_link || strcmp(name, ".gnu_debuglink") == 0;
		file->unwind =
		    file->unwind || strcmp(name, ".eh_frame") == 0 || strcmp(name, ".debug_frame") == 0;
		if (header.sh_type == SHT_DYNAMIC)
			look_at_dynamic(section, elf, &header, file);
	}
}

static void look_at_segments(Elf *elf, uint64_t file_bytes, struct doctor_program_file *file)
{
	GElf_Ehdr header;
	size_t count;

	if (!gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &count))
		return;
	file->whole = true;
	file->object = header.e_type == ET_REL || header.e_type == ET_CORE;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_filesz > file_bytes ||
		    segment.p_offset > file_bytes - segment.p_filesz)
			file->whole = false;
		else if (segment.p_type == PT_INTERP)
			file->shared_library = false;
	}
}

static void look_at(struct doctor_program_file *file, int fd, uint64_t file_bytes)
{
	const void *id;
	Elf *elf;

	(void)program_symbols_read_file(&file->inside, fd); /* on failure nothing is known of its symbols */
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		file->build_id = dwelf_elf_gnu_build_id(elf, &id) > 0;
		look_at_sections(elf, file);
		look_at_segments(elf, file_bytes, file);
	}
	elf_end(elf);
}

static void end_text(char *text, size_t bytes)
{
	text[bytes - 1] = '\0';
	utf8_disarm(text, strlen(text));
}

/* The file may be another user's, and we may be root. A file that makes libelf crash contains nothing. */
static void look_confined(struct doctor_program_file *file, int fd, uint64_t file_bytes)
{
	const struct timeval limit = {.tv_sec = 2 * CPU_SECONDS};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return;
	const pid_t child = fork();
	if (child == 0) {
		if (confinement_enter(pair[1], fd, CPU_SECONDS) == 0) {
			look_at(file, fd, file_bytes);
			(void)send(pair[1], file, sizeof(*file), MSG_NOSIGNAL);
		}
		_exit(0);
	}
	close(pair[1]);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (child < 0 || recv(pair[0], file, sizeof(*file), MSG_WAITALL) != (ssize_t)sizeof(*file))
		memset(file, 0, sizeof(*file));
	close(pair[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if ((unsigned)file->inside.runtime.kind >= RUNTIME_KINDS)
		file->inside.runtime.kind = RUNTIME_NONE;
	end_text(file->library, sizeof(file->library));
	end_text(file->inside.debug_link, sizeof(file->inside.debug_link));
	end_text(file->inside.allocator, sizeof(file->inside.allocator));
}

int doctor_program_read(struct doctor_program_file *file, const char *path)
{
	struct stat status;
	int fd = regular_file_open(AT_FDCWD, path, 0, &status);

	memset(file, 0, sizeof(*file));
	if (fd < 0)
		return fd;
	look_confined(file, fd, (uint64_t)status.st_size);
	close(fd);
	return 0;
}

/* ---- what is said of it */

void doctor_program_say_unseen(struct findings *findings, const char *name, const struct unseen *unseen)
{
	for (size_t i = 0; i < unseen->count; i++) {
		const struct unseen_text *one = &unseen->texts[i];

		finding_say(findings, one->reason == UNSEEN_ALLOCATOR ? FINDING_BAD : FINDING_NOTE,
		    one->how[0] ? one->how : NULL, "not seen of %s: %s", name, one->what);
	}
}

static void say_allocator(
    struct findings *findings, const char *name, const struct doctor_program_file *facts, bool running)
{
	const struct program_symbols *inside = &facts->inside;
	struct unseen_facts seen = {.own_malloc = inside->own_malloc};
	struct unseen unseen;

	if (!running) { /* a running process was looked at already */
		seen.runtime = inside->runtime;
		seen.names_unknown = inside->runtime.kind != RUNTIME_NONE;
		memcpy(seen.allocator, inside->allocator, sizeof(seen.allocator));
	}
	snprintf(seen.allocator_file, sizeof(seen.allocator_file), "the program");
	unseen_describe(&unseen, &seen);
	if (!inside->own_malloc && !inside->allocator[0])
		finding_say(findings, FINDING_GOOD, NULL, "%s is dynamically linked: %s seen", name,
		    inside->runtime.kind || !inside->table ? "what it allocates by malloc is"
		                                           : "its allocations are");
	doctor_program_say_unseen(findings, name, &unseen);
	if (facts->library[0])
		finding_say(findings, FINDING_GOOD, NULL,
		    "%s is linked to %s: calls to that library's own functions are seen too%s", name,
		    facts->library, running ? ", if 'heaptap record' starts it" : "");
}

static void say_names(
    struct findings *findings, const char *path, const char *name, const struct doctor_program_file *facts)
{
	if (!facts->unwind)
		finding_say(findings, FINDING_NOTE,
		    "build it with -fasynchronous-unwind-tables, and do not strip .eh_frame",
		    "%s has no unwind tables: stacks end there, or go on by guess", name);
	if (facts->debug && symbols_is_split(path))
		finding_say(findings, FINDING_NOTE, "put its .dwo files beside it (a .dwp file is not read)",
		    "%s has split debug info: functions and lines; its inlined calls are in .dwo files, "
		    "which are not where they were built and not beside it, or in a .dwp file",
		    name);
	else if (facts->debug)
		finding_say(findings, FINDING_GOOD, NULL,
		    "%s has debug info: functions, inlined calls and lines", name);
	else if (facts->debug_link)
		finding_say(findings, FINDING_NOTE,
		    "install its -dbgsym package, put the .debug file beside it, or record with --debuginfod",
		    "%s is stripped; its debug info is in a separate file, if that is installed", name);
	else if (facts->inside.table)
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

/* A file that cannot be executed, whatever it contains. */
static bool say_no_program(
    struct findings *findings, const char *name, const struct doctor_program_file *facts)
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

static const char *fix_of(enum preload_check_kind kind, enum runtime_kind runtime)
{
	switch (kind) {
	case PRELOAD_CHECK_STATIC:
		if (runtime == RUNTIME_GO)
			return "Go's own heap profile (net/http/pprof): if it were linked dynamically (cgo), "
			       "Go's heap would not be seen either";
		return "link it dynamically (without -static)";
	case PRELOAD_CHECK_PRIVILEGED:
		return "record it as the user that it becomes, or a copy without the privilege";
	case PRELOAD_CHECK_SANITIZER:
		return "build it without the sanitizer";
	default:
		return "use a heaptap of its architecture";
	}
}

int doctor_program_examine(struct findings *findings, const char *path, const char *name, bool running)
{
	struct doctor_program_file facts;
	enum preload_check_kind kind = preload_check_inspect(path);
	const char *obstacle = preload_check_obstacle(kind);
	bool known = doctor_program_read(&facts, path) == 0;

	if (known && !running && say_no_program(findings, name, &facts))
		return 0;
	if (obstacle) {
		finding_say(findings, FINDING_BAD,
		    fix_of(kind, known ? facts.inside.runtime.kind : RUNTIME_NONE),
		    "%s %s, so nothing of it is seen", name, obstacle);
		return 0;
	}
	if (access(path, R_OK) != 0) {
		log_line("cannot read %s: %s", name, strerror(errno));
		return -errno;
	}
	if (kind == PRELOAD_CHECK_MUSL)
		finding_say(findings, FINDING_NOTE, NULL,
		    "%s uses musl as its C library: seen as with glibc, but musl has no unwind tables: "
		    "stacks "
		    "go on by guess, or end there; and processes that run already cannot be attached to",
		    name);
	if (known) {
		say_allocator(findings, name, &facts, running);
		say_names(findings, path, name, &facts);
	}
	return 0;
}
