/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/fitness.h"

#include "sampler/inject/address_space.h"
#include "sampler/inject/exports.h"
#include "sampler/inject/library_copy.h"
#include "sampler/intake/region_takeover.h"
#include "sampler/linux/memory_reader.h"
#include "sampler/linux/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_REMEDY "start it with `heaptap record COMMAND`"

static bool refuse(struct fitness *fitness, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(struct fitness *fitness, const char *remedy, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(fitness->cause, sizeof(fitness->cause), format, list);
	va_end(list);
	snprintf(fitness->remedy, sizeof(fitness->remedy), "%s", remedy);
	return false;
}

static bool examine_state(struct fitness *fitness, pid_t pid, const char *status)
{
	char name[PROC_COMM_BYTES], remedy[64];
	const char *line = strstr(status, "\nState:\t");
	char state = line ? line[8] : '?';
	pid_t group = (pid_t)proc_status_number(status, "\nTgid:", 10, 0);
	pid_t tracer = (pid_t)proc_status_number(status, "\nTracerPid:", 10, 0);

	if (group != pid)
		return refuse(fitness, "", "is a thread of process %d", (int)group);
	if (state == 'Z' && proc_status_number(status, "\nThreads:", 10, 1) > 1)
		return refuse(fitness, "", "has no main thread any more, and so no memory in /proc");
	if (state == 'Z' || state == 'X')
		return refuse(fitness, "", "has ended (a zombie: its parent has not asked for its status)");
	/* The process has no memory: it is the kernel's, or it is ending. Kernels before 6.10 do not tell
	 * which. */
	unsigned long long kernel = proc_status_number(status, "\nKthread:", 10, 1);
	if (!strstr(status, "\nVmSize:"))
		return refuse(fitness, "", kernel ? "is a kernel thread" : "has just ended");
	if (tracer) {
		proc_read_comm(tracer, name);
		snprintf(remedy, sizeof(remedy), "end that one first");
		return refuse(fitness, remedy, "is traced by pid %d (%s)", (int)tracer, name);
	}
	if (state == 'T') {
		snprintf(remedy, sizeof(remedy), "kill -CONT %d", (int)pid);
		return refuse(fitness, remedy, "is stopped by a signal");
	}
	return true;
}

static bool examine_filter(struct fitness *fitness, const char *status, bool force)
{
	unsigned long long mode = proc_status_number(status, "\nSeccomp:", 10, 0);
	const char *features = strstr(status, "\nx86_Thread_features:");
	fitness->filtered = mode != 0;
	if (mode == 1)
		return refuse(
		    fitness, RECORD_REMEDY, "is in seccomp's strict mode, where nothing can be loaded");
	if (mode == 2 && !force)
		return refuse(fitness, "--force, if you know that it allows what dlopen does",
		    "has a seccomp filter, which may end it for the calls that loading a library takes");
	if (features && strstr(features, "shstk") &&
	    strstr(features, "shstk") < features + strcspn(features + 1, "\n"))
		return refuse(
		    fitness, RECORD_REMEDY, "has a shadow stack, which a call from outside would break");
	return true;
}

static int read_number(const char *path, int missing)
{
	char text[16] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return got > 0 ? atoi(text) : missing;
}

static bool examine_permission(struct fitness *fitness, const char *status, int error)
{
	int scope = read_number("/proc/sys/kernel/yama/ptrace_scope", 0);
	uid_t user = (uid_t)proc_status_number(status, "\nUid:", 10, geteuid());

	if (error == -ESRCH || error == -ENOENT)
		return refuse(fitness, "", "has just ended");
	if (error == -E2BIG)
		return refuse(fitness, "", "has more mappings with long paths than heaptap reads");
	if (error != -EACCES && error != -EPERM)
		return refuse(fitness, "", "cannot be opened: %s", strerror(-error));
	if (geteuid() == 0 && scope < 3)
		return refuse(fitness, "give this container CAP_SYS_PTRACE",
		    "cannot be traced: CAP_SYS_PTRACE is missing here, or a security module forbids it");
	if (user != geteuid())
		return refuse(fitness, "sudo heaptap ...", "belongs to another user (uid %u)", user);
	if (scope >= 3)
		return refuse(fitness, "restart the machine with another value",
		    "cannot be traced: kernel.yama.ptrace_scope is %d", scope);
	if (scope > 0)
		return refuse(fitness, "sudo heaptap ..., or sudo sysctl kernel.yama.ptrace_scope=0",
		    "cannot be traced: kernel.yama.ptrace_scope is %d", scope);
	return refuse(fitness, "sudo heaptap ...",
	    "cannot be traced: it is not dumpable, or has capabilities that you have not");
}

static bool examine_program(struct fitness *fitness, pid_t pid)
{
	unsigned char head[20];
	uint16_t machine;
	ssize_t got = proc_read(pid, "exe", (char *)head, sizeof(head));

	memcpy(&machine, head + 18, sizeof(machine));
	if (got < (ssize_t)sizeof(head) - 1 || memcmp(head, ELFMAG, SELFMAG) != 0)
		return true; /* the file may be hidden; the mappings tell */
	if (head[EI_CLASS] != ELFCLASS64)
		return refuse(fitness, "", "is a 32-bit program");
	if ((machine & 0xff) != EM_X86_64)
		return refuse(fitness, "", "is a program for another architecture (run by an emulator?)");
	return true;
}

/* Looks only at memory that is present: the process has not been asked yet. */
static bool examine_profiled(struct fitness *fitness, const struct address_space *space, pid_t pid)
{
	char remedy[64];

	if (!address_space_region(space))
		return true;
	pid_t sampler = region_takeover_sampler(pid);
	if (sampler > 0) {
		snprintf(remedy, sizeof(remedy), "heaptap snapshot %d", (int)pid);
		return refuse(fitness, remedy, "is profiled already, by heaptap's pid %d", (int)sampler);
	}
	if (geteuid() != 0) {
		snprintf(remedy, sizeof(remedy), "heaptap snapshot %d", (int)pid);
		return refuse(fitness, remedy, "is profiled already, or was before (root can see which)");
	}
	bool attached = address_space_file(space, ATTACH_LIBRARY_NAME, false) != NULL;
	snprintf(remedy, sizeof(remedy),
	    attached ? "heaptap adopt %d, or heaptap detach %d" : "heaptap adopt %d", (int)pid, (int)pid);
	return refuse(fitness, remedy, "was profiled, and its sampler is gone");
}

/* musl's loader, ld-musl-x86_64.so.1, is also its libc; Debian has it in a folder of its name. */
static bool uses_musl(const struct address_space *space)
{
	const struct mapping *loader = address_space_find(space, address_space_auxiliary(space, AT_BASE));

	return loader && (strstr(loader->path, "/ld-musl-") || strstr(loader->path, "-linux-musl/"));
}

/* qemu-user maps the program that it runs into its own process. */
static bool is_emulator(const struct address_space *space)
{
	const struct mapping *program = address_space_find(space, address_space_auxiliary(space, AT_PHDR));
	const char *slash = program ? strrchr(program->path, '/') : NULL;

	if (!slash || strncmp(slash + 1, "qemu-", 5) != 0)
		return false;
	for (size_t i = 0; i < space->count; i++) {
		Elf64_Half machine;
		unsigned char head[offsetof(Elf64_Ehdr, e_machine) + sizeof(machine)];
		const struct mapping *mapping = &space->mappings[i];

		if (mapping->offset != 0 || mapping->path[0] != '/' ||
		    address_space_read(space, mapping->start, head, sizeof(head)) != 0)
			continue;
		memcpy(&machine, head + sizeof(head) - sizeof(machine), sizeof(machine));
		if (memcmp(head, ELFMAG, SELFMAG) == 0 && machine != EM_X86_64)
			return true;
	}
	return false;
}

static bool examine_mappings(struct fitness *fitness, const struct address_space *space)
{
	static const char *const sanitizers[] = {"libasan.so", "libtsan.so", "libmsan.so", "liblsan.so"};
	struct exports program;
	const struct mapping *first = space->mappings;

	if (is_emulator(space))
		return refuse(fitness, "", "is an emulator, and runs a program for another architecture");
	if (uses_musl(space))
		return refuse(fitness, RECORD_REMEDY, "uses musl as its C library: attaching needs glibc");
	if (!address_space_file(space, "libc.so.6", false)) {
		if (!address_space_auxiliary(space, AT_BASE))
			return refuse(fitness, "",
			    "is statically linked: it calls malloc directly, and not through a table");
		return refuse(fitness, "", "does not use glibc (it has no libc.so.6)");
	}
	for (size_t i = 0; i < sizeof(sanitizers) / sizeof(sanitizers[0]); i++)
		if (address_space_file(space, sanitizers[i], true))
			return refuse(fitness, RECORD_REMEDY,
			    "has a sanitizer (%s), which has hooks of its own", sanitizers[i]);
	bool own = exports_read(&program, space, first->start) == 0 &&
	    (exports_address(&program, "__asan_init") || exports_address(&program, "__tsan_init") ||
	        exports_address(&program, "__msan_init"));
	exports_free(&program);
	if (own)
		return refuse(fitness, RECORD_REMEDY, "has a sanitizer, which has hooks of its own");
	return true;
}

struct examination {
	struct fitness fitness;
	bool force, fit;
};

static bool examine(struct fitness *fitness, pid_t pid, bool force)
{
	char status[PROC_STATUS_BYTES];
	struct address_space space = {.memory_fd = -1};
	ssize_t length = proc_read(pid, "status", status, sizeof(status));

	if (length <= 0)
		return refuse(fitness, "", "does not exist");
	/* the lines of filters and shadow stacks are behind the groups */
	if (length == (ssize_t)sizeof(status) - 1)
		return refuse(fitness, "", "is in too many groups: the rest of its status cannot be read");
	if (!examine_state(fitness, pid, status))
		return false;
	int error = address_space_open(&space, pid);
	bool fit = error ? examine_permission(fitness, status, error)
	                 : examine_program(fitness, pid) && examine_profiled(fitness, &space, pid) &&
	        examine_mappings(fitness, &space) && examine_filter(fitness, status, force);
	address_space_close(&space);
	return fit;
}

static void run_examination(pid_t pid, void *result)
{
	struct examination *examination = result;

	examination->fit = examine(&examination->fitness, pid, examination->force);
}

bool fitness_examine(struct fitness *fitness, pid_t pid, bool force)
{
	struct examination examination = {.force = force};

	*fitness = (struct fitness){.cause = ""};
#if !defined(__x86_64__)
	return refuse(fitness, RECORD_REMEDY, "cannot be attached to: " FITNESS_ONLY_X86);
#endif
	if (pid == getpid())
		return refuse(fitness, "", "is this heaptap");
	int error = memory_reader_run(run_examination, pid, &examination, sizeof(examination));
	if (error == -ENOENT || error == -ESRCH)
		return refuse(fitness, "", "does not exist");
	fitness->later = error == -ETIMEDOUT || error == -EBUSY;
	if (error == -ETIMEDOUT)
		return refuse(fitness, "",
		    "has memory that does not answer (of FUSE, or userfaultfd?), or tables without end");
	if (error == -EBUSY)
		return refuse(fitness, "try again in a minute",
		    "cannot be examined: memory of its user did not answer just now");
	if (error)
		return refuse(fitness, "", "cannot be examined: %s", strerror(-error));
	*fitness = examination.fitness;
	return examination.fit;
}
