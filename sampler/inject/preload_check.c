/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: execve(2) for scripts, ld.so(8) for secure-execution mode (AT_SECURE), elf(5) for PT_INTERP. A
 * static-pie program is ET_DYN without PT_INTERP too; so is the loader itself when it is run as a command,
 * and it does preload.
 */
#include "sampler/inject/preload_check.h"

#include "sampler/inject/script_line.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SCRIPT_DEPTH 4 /* interpreters that are scripts themselves; the kernel allows as many */

enum { DYNAMIC_ENTRIES = 1024 };

#if __x86_64__
#define OWN_MACHINE EM_X86_64
#elif __aarch64__
#define OWN_MACHINE EM_AARCH64
#endif

/* Returns a descriptor or -errno. */
static int preload_check_open(const char *command, const struct preload_check_who *who)
{
	const char *path = strchr(command, '/') ? "" : getenv("PATH");
	struct stat status;
	int fd = -ENOENT;

	if (who->open)
		return who->open(who->context, command);
	if (!path)
		path = "/bin:/usr/bin";
	if (!*path)
		return regular_file_open(AT_FDCWD, command, 0, &status);
	while (fd < 0) {
		size_t length = strcspn(path, ":");
		char candidate[PATH_MAX];

		snprintf(
		    candidate, sizeof(candidate), "%.*s%s%s", (int)length, path, length ? "/" : "", command);
		if (access(candidate, X_OK) == 0)
			fd = regular_file_open(AT_FDCWD, candidate, 0, &status);
		if (!path[length])
			break;
		path += length + 1;
	}
	return fd;
}

/* Does exec raise privileges, so that the loader ignores LD_PRELOAD? */
static bool is_privileged(int fd, const struct stat *status, const struct preload_check_who *who)
{
	struct statvfs mount;

	if (who->no_new_privs)
		return false;
	if (fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_NOSUID))
		return false;
	if ((status->st_mode & S_ISUID) && status->st_uid != who->uid)
		return true;
	if ((status->st_mode & S_ISGID) && (status->st_mode & S_IXGRP) && status->st_gid != who->gid)
		return true;
	return who->uid != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* AddressSanitizer, ThreadSanitizer and HWAddressSanitizer interpose malloc themselves. The other sanitizers
 * (undefined behaviour, leaks) work with a library preloaded before them, and so do static runtimes. */
static bool is_sanitizer(const char *path)
{
	static const char *const runtimes[] = {"libasan.so", "libtsan.so", "libhwasan.so", "libclang_rt.asan",
	    "libclang_rt.tsan", "libclang_rt.hwasan"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (strncmp(name, runtimes[i], strlen(runtimes[i])) == 0)
			return true;
	return false;
}

static bool preloads_sanitizer(const char *preload)
{
	char *list = preload ? strdup(preload) : NULL, *rest = list, *entry;
	bool found = false;

	while (rest && !found && (entry = strsep(&rest, " :")))
		found = is_sanitizer(entry);
	free(list);
	return found;
}

/* The file offset of an address, or 0 if it is not in the file. */
static off_t file_offset(int fd, const Elf64_Ehdr *header, uint64_t address)
{
	for (unsigned int i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		off_t at = (off_t)(header->e_phoff + i * sizeof(segment));

		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			return 0;
		if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
		    address - segment.p_vaddr < segment.p_filesz)
			return (off_t)(address - segment.p_vaddr + segment.p_offset);
	}
	return 0;
}

static bool needs_sanitizer(int fd, const Elf64_Ehdr *header, const Elf64_Phdr *dynamic)
{
	Elf64_Dyn entries[DYNAMIC_ENTRIES];
	size_t bytes = dynamic->p_filesz < sizeof(entries) ? dynamic->p_filesz : sizeof(entries);
	ssize_t got = pread(fd, entries, bytes, (off_t)dynamic->p_offset);
	size_t count = got > 0 ? (size_t)got / sizeof(entries[0]) : 0;
	uint64_t address = 0; /* of the names */

	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
		if (entries[i].d_tag == DT_STRTAB)
			address = entries[i].d_un.d_ptr;
	/* Only once, however many there are: the call reads every program header. */
	off_t names = address ? file_offset(fd, header, address) : 0;
	for (size_t i = 0; names && i < count && entries[i].d_tag != DT_NULL; i++) {
		char name[64] = "";

		if (entries[i].d_tag == DT_NEEDED &&
		    pread(fd, name, sizeof(name) - 1, names + (off_t)entries[i].d_un.d_val) > 0 &&
		    is_sanitizer(name))
			return true;
	}
	return false;
}

/* Recognized by the loader's file name, which is the same on every system: ld-musl-x86_64.so.1. */
static bool is_musl(int fd, const Elf64_Phdr *interpreter)
{
	char path[256];
	ssize_t length = pread(fd, path, sizeof(path) - 1, (off_t)interpreter->p_offset);

	if (length <= 0)
		return false;
	path[length] = '\0';
	return strstr(path, "/ld-musl-") != NULL;
}

static enum preload_check_kind elf_inspect(
    int fd, const Elf64_Ehdr *header, const struct preload_check_who *who)
{
	bool has_interpreter = false, is_dynamic = false;
	Elf64_Phdr dynamic = {0}, interpreter = {0}; /* the first, as the kernel takes it */

	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_machine != OWN_MACHINE)
		return PRELOAD_CHECK_FOREIGN;
	if (header->e_phentsize != sizeof(Elf64_Phdr))
		return PRELOAD_CHECK_UNKNOWN;
	for (unsigned int i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		off_t at = (off_t)(header->e_phoff + i * sizeof(segment));

		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			return PRELOAD_CHECK_UNKNOWN;
		if (segment.p_type == PT_INTERP && !has_interpreter) {
			has_interpreter = true;
			interpreter = segment;
		}
		if (segment.p_type == PT_DYNAMIC) {
			is_dynamic = true;
			dynamic = segment;
		}
	}
	if (has_interpreter)
		return preloads_sanitizer(who->preload) ||
		        (is_dynamic && needs_sanitizer(fd, header, &dynamic))
		    ? PRELOAD_CHECK_SANITIZER
		    : is_musl(fd, &interpreter) ? PRELOAD_CHECK_MUSL
		                                : PRELOAD_CHECK_DYNAMIC;
	/* ET_DYN without an interpreter is a static-pie program or the loader itself. Only the name tells
	 * them apart. */
	if (is_dynamic && header->e_type == ET_DYN) {
		char link[PROC_PATH_BYTES], target[PATH_MAX];
		ssize_t length;

		length = readlink(proc_fd_path(link, fd), target, sizeof(target) - 1);
		if (length > 0 && (target[length] = '\0', strstr(target, "/ld-")))
			return PRELOAD_CHECK_UNKNOWN;
	}
	return PRELOAD_CHECK_STATIC;
}

/* Where the file must end: behind all that a program header or the table of sections points to. 0 or
 * -errno. */
static int elf_end(int fd, const Elf64_Ehdr *header, uint64_t *end)
{
	*end = header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize;
	for (unsigned int i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		int error =
		    regular_file_read(fd, &segment, sizeof(segment), header->e_phoff + i * sizeof(segment));

		if (error)
			return error;
		if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > *end)
			*end = segment.p_offset + segment.p_filesz;
	}
	return 0;
}

static int check_library(int fd, const struct stat *status, bool copied, char why[PRELOAD_CHECK_WHY_BYTES])
{
	const uint64_t bytes = (uint64_t)status->st_size;
	struct statvfs mount;
	Elf64_Ehdr header;
	uint64_t end;

	if (regular_file_read(fd, &header, sizeof(header), 0) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN) {
		snprintf(why, PRELOAD_CHECK_WHY_BYTES, "has %" PRIu64 " bytes: it is not a library", bytes);
		return -ENOEXEC;
	}
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != OWN_MACHINE) {
		snprintf(why, PRELOAD_CHECK_WHY_BYTES, "is built for another architecture");
		return -ENOEXEC;
	}
	if (header.e_phentsize != sizeof(Elf64_Phdr) || elf_end(fd, &header, &end) || bytes < end) {
		snprintf(why, PRELOAD_CHECK_WHY_BYTES,
		    "is damaged: the file is cut off after %" PRIu64 " bytes", bytes);
		return -ENOEXEC;
	}
	if (!copied && fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_NOEXEC)) {
		snprintf(why, PRELOAD_CHECK_WHY_BYTES,
		    "is on a file system that is mounted with noexec: no program can load it");
		return -ENOEXEC;
	}
	return 0;
}

int preload_check_library(const char *path, bool copied, char why[PRELOAD_CHECK_WHY_BYTES])
{
	struct stat status;
	int fd = regular_file_open(AT_FDCWD, path, 0, &status), error;

	if (fd < 0) {
		snprintf(why, PRELOAD_CHECK_WHY_BYTES, "cannot be read: %s", strerror(-fd));
		return fd;
	}
	error = check_library(fd, &status, copied, why);
	close(fd);
	return error;
}

enum preload_check_kind preload_check_inspect(const char *command)
{
	const struct preload_check_who self = {.uid = getuid(),
	    .gid = getgid(),
	    .no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
	    .preload = getenv("LD_PRELOAD")};

	return preload_check_inspect_by(command, &self);
}

enum preload_check_kind preload_check_inspect_by(const char *command, const struct preload_check_who *who)
{
	struct script_line line;
	enum preload_check_kind kind = PRELOAD_CHECK_UNKNOWN;

	for (int depth = 0; depth <= SCRIPT_DEPTH; depth++) {
		union {
			Elf64_Ehdr elf;
			char bytes[SCRIPT_LINE_BYTES + 1];
		} head;
		bool script = false;
		struct stat status;
		ssize_t got;
		int fd = preload_check_open(command, who);

		if (fd < 0)
			return PRELOAD_CHECK_UNKNOWN;
		memset(&head, 0, sizeof(head));
		got = pread(fd, head.bytes, SCRIPT_LINE_BYTES, 0);
		if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || got < 4)
			kind = PRELOAD_CHECK_UNKNOWN;
		else if (memcmp(head.bytes, "#!", 2) == 0)
			script = script_line_parse(head.bytes, (size_t)got, &line);
		else if ((size_t)got >= sizeof(head.elf) && memcmp(head.bytes, ELFMAG, SELFMAG) == 0)
			kind = is_privileged(fd, &status, who) ? PRELOAD_CHECK_PRIVILEGED
			                                       : elf_inspect(fd, &head.elf, who);
		close(fd);
		if (!script)
			return kind;
		command = line.interpreter;
	}
	return PRELOAD_CHECK_UNKNOWN;
}

const char *preload_check_reason(enum preload_check_kind kind)
{
	switch (kind) {
	case PRELOAD_CHECK_STATIC:
		return "it is statically linked: the library cannot be preloaded";
	case PRELOAD_CHECK_PRIVILEGED:
		return "it gains privileges when it starts (setuid, setgid or capabilities): the "
		       "loader ignores LD_PRELOAD";
	case PRELOAD_CHECK_FOREIGN:
		return "it is built for another architecture: the library cannot be loaded";
	case PRELOAD_CHECK_SANITIZER:
		return "it uses a sanitizer whose runtime must be loaded first (AddressSanitizer, "
		       "ThreadSanitizer): the library is not preloaded";
	case PRELOAD_CHECK_DYNAMIC:
	case PRELOAD_CHECK_MUSL:
	case PRELOAD_CHECK_UNKNOWN:
		break;
	}
	return NULL;
}

const char *preload_check_obstacle(enum preload_check_kind kind)
{
	const char *reason = preload_check_reason(kind);

	return reason ? reason + strlen("it ") : NULL;
}
