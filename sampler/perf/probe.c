/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/probe.h"

#include "sampler/arch/regs.h"
#include "sampler/linux/regular_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	RING_BYTES_ROOT = 8 << 20, /* 254 samples of 32 KiB */
	RING_BYTES_USER = 4 << 20, /* first try; Debian's limits give this */
	/* Below this period a burst takes hundreds of samples in a millisecond, each with the whole dump's
	 * room, 33 KB: truth at -p 1 lost 829 of 3462 stacks with 8 MiB, none of 346002 with 64. The copy
	 * backend lost half of those: it slows the target less than we need to follow. */
	DENSE_PERIOD_BYTES = 16 << 10,
	RING_BYTES_DENSE = 64 << 20,
	ATTACH_ROUNDS = 8,
};

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu, int ring_fd)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd) != 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

/* ---- where the trigger is */

static int note_offset(Elf *elf, uint64_t *file_offset)
{
	size_t count;
	uint64_t address = 0;
	Elf_Scn *section = NULL;
	while (!address && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		Elf_Data *data = elf_getdata(section, NULL);
		size_t at = 0, name, desc, next;
		GElf_Nhdr note;
		while (data && (next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
			const char *bytes = data->d_buf;
			if (note.n_type == 3 && note.n_namesz == 8 &&
			    memcmp(bytes + name, "stapsdt", 8) == 0 &&
			    note.n_descsz >= 24 + sizeof("heaptap") &&
			    memcmp(bytes + desc + 24, "heaptap", 8) == 0)
				memcpy(&address, bytes + desc, sizeof(address));
			at = next;
		}
	}
	if (!address || elf_getphdrnum(elf, &count) != 0)
		return -ENOENT;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
		    address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
			*file_offset = address - segment.p_vaddr + segment.p_offset;
			return 0;
		}
	}
	return -ENOENT;
}

int probe_find_trigger(int library_fd, uint64_t *file_offset)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(library_fd, ELF_C_READ, NULL);
	int error = elf ? note_offset(elf, file_offset) : -ENOEXEC;
	elf_end(elf);
	return error;
}

/* ---- uprobe */

static int uprobe_type(void)
{
	char text[16] = "";
	int fd = open("/sys/bus/event_source/devices/uprobe/type", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	close(fd);
	return got > 0 ? atoi(text) : -EIO;
}

static void sample_attr(struct perf_event_attr *attr, const struct probe *probe)
{
	ring_attr_init(attr, probe->dump_bytes);
	attr->sample_regs_user = probe->regs_mask;
	attr->sample_period = 1;
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->build_id = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
}

static int open_uprobe_on(struct probe *probe, int library_fd)
{
	struct perf_event_attr attr;
	uint64_t offset;
	char path[32];
	int type = uprobe_type(), error = probe_find_trigger(library_fd, &offset);
	if (type < 0 || error)
		return type < 0 ? type : error;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", library_fd);
	probe->uprobe_fds = calloc(rings_count(probe->rings), sizeof(int));
	if (!probe->uprobe_fds)
		return -ENOMEM;
	sample_attr(&attr, probe);
	attr.type = (uint32_t)type;
	attr.config1 = (uintptr_t)path;
	attr.config2 = offset;
	for (size_t i = 0; i < rings_count(probe->rings); i++) {
		int fd = open_event(&attr, -1, rings_cpu(probe->rings, i), rings_fd(probe->rings, i));
		if (fd < 0) {
			while (i > 0)
				close(probe->uprobe_fds[--i]);
			free(probe->uprobe_fds);
			probe->uprobe_fds = NULL;
			return fd;
		}
		probe->uprobe_fds[i] = fd;
	}
	return 0;
}

/* The kernel patches the very file whose note was read: it is opened once, and never named again. */
static int open_uprobe(struct probe *probe, const char *library)
{
	struct stat status;
	int fd = regular_file_open(AT_FDCWD, library, 0, &status);
	if (fd < 0)
		return fd;
	int error = open_uprobe_on(probe, fd);
	close(fd);
	return error;
}

/* ---- breakpoint */

static void breakpoint_attr(struct perf_event_attr *attr, const struct probe *probe, uint64_t address)
{
	sample_attr(attr, probe);
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->bp_type = HW_BREAKPOINT_X;
	attr->bp_addr = address;
	attr->bp_len = sizeof(long);
	attr->inherit = 1;
	/* or the stale address would keep a debug register, and fire if it is hit again */
	attr->remove_on_exec = 1;
}

/* Whether the kernel gives us one: on ourselves, on a function that nobody calls. */
static int try_breakpoint(const struct probe *probe)
{
	struct perf_event_attr attr;
	breakpoint_attr(&attr, probe, (uintptr_t)try_breakpoint);
	attr.disabled = 1;
	int fd = open_event(&attr, 0, rings_cpu(probe->rings, 0), rings_fd(probe->rings, 0));
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

struct attachment {
	int *fds;
	pid_t *threads;
	size_t fd_count, thread_count;
};

static int attach_thread(const struct probe *probe, pid_t tid, uint64_t address, struct attachment *a)
{
	size_t cpus = rings_count(probe->rings);
	int *fds = realloc(a->fds, (a->fd_count + cpus) * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	a->fds = fds;
	pid_t *threads = realloc(a->threads, (a->thread_count + 1) * sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	a->threads = threads;
	struct perf_event_attr attr;
	breakpoint_attr(&attr, probe, address);
	for (size_t i = 0; i < cpus; i++) {
		int fd = open_event(&attr, tid, rings_cpu(probe->rings, i), rings_fd(probe->rings, i));
		if (fd == -ESRCH)
			return 0; /* the thread has ended */
		if (fd < 0)
			return fd;
		a->fds[a->fd_count++] = fd;
	}
	a->threads[a->thread_count++] = tid;
	return 0;
}

static bool attached(const struct attachment *a, pid_t tid)
{
	for (size_t i = 0; i < a->thread_count; i++)
		if (a->threads[i] == tid)
			return true;
	return false;
}

/* A thread that one of ours creates inherits its events; one created by a thread not yet attached does not.
 * So go round until a round finds nobody new. Returns the number of new threads or -errno. */
static int attach_round(const struct probe *probe, pid_t pid, uint64_t address, struct attachment *a)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);
	if (!tasks)
		return -ESRCH;
	int found = 0, error = 0;
	bool first_round = a->thread_count == 0;
	struct dirent *entry;
	while (!error && (entry = readdir(tasks))) {
		pid_t tid = atoi(entry->d_name);
		if (tid <= 0 || attached(a, tid))
			continue;
		error = attach_thread(probe, tid, address, a);
		found++;
	}
	closedir(tasks);
	return error ? error : first_round && found == 1 ? 0 : found;
}

int probe_attach(const struct probe *probe, pid_t pid, uint64_t trigger_address, int **fds, size_t *count)
{
	struct attachment a = {0};
	int result = 1;
	for (int i = 0; i < ATTACH_ROUNDS && result > 0; i++)
		result = attach_round(probe, pid, trigger_address, &a);
	free(a.threads);
	if (result < 0) {
		probe_detach(a.fds, a.fd_count);
		return result;
	}
	*fds = a.fds;
	*count = a.fd_count;
	return 0;
}

void probe_detach(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	free(fds);
}

/* ---- choice */

static const char *cause(int error)
{
	switch (-error) {
	case EACCES:
	case EPERM:
		return "not permitted (perf_event_paranoid, capabilities or a seccomp filter)";
	case ENOSPC:
		return "no debug register free (a debugger or another profiler has them)";
	case ENOSYS:
		return "perf_event_open is not there";
	default:
		return strerror(-error);
	}
}

int probe_open(struct probe *probe, enum backend wanted, const char *library, uint32_t stack_bytes,
    uint64_t period_bytes)
{
	memset(probe, 0, sizeof(*probe));
	/* Record sizes are 16 bits wide; 65000 leaves room for the rest of the record. Multiples of 8 only.
	 * */
	probe->dump_bytes = (stack_bytes > 65000 ? 65000 : stack_bytes) & ~7u;
	probe->regs_mask = regs_arch_native()->perf_mask;
	probe->backend = BACKEND_COPY;
	if (wanted == BACKEND_COPY) {
		snprintf(probe->reason, sizeof(probe->reason), "asked for");
		return 0;
	}
	int error = 0, uprobe_error = 0;
	size_t ring_bytes = geteuid() != 0      ? RING_BYTES_USER
	    : period_bytes < DENSE_PERIOD_BYTES ? RING_BYTES_DENSE
	                                        : RING_BYTES_ROOT;
	probe->rings = rings_open(ring_bytes, &error);
	if (probe->rings && wanted != BACKEND_BREAKPOINT) {
		error = uprobe_error = open_uprobe(probe, library);
		if (!error) {
			probe->backend = BACKEND_UPROBE;
			snprintf(probe->reason, sizeof(probe->reason), "%s",
			    wanted == BACKEND_AUTO ? "the best there is, and permitted" : "asked for");
			return 0;
		}
	}
	if (probe->rings && wanted != BACKEND_UPROBE) {
		error = try_breakpoint(probe);
		if (!error) {
			probe->backend = BACKEND_BREAKPOINT;
			if (wanted == BACKEND_AUTO)
				snprintf(
				    probe->reason, sizeof(probe->reason), "uprobe: %s", cause(uprobe_error));
			else
				snprintf(probe->reason, sizeof(probe->reason), "asked for");
			return 0;
		}
	}
	rings_close(probe->rings);
	probe->rings = NULL;
	snprintf(probe->reason, sizeof(probe->reason), "perf: %s", cause(error));
	return wanted == BACKEND_AUTO ? 0 : error;
}

void probe_close(struct probe *probe)
{
	for (size_t i = 0; probe->uprobe_fds && i < rings_count(probe->rings); i++)
		close(probe->uprobe_fds[i]);
	free(probe->uprobe_fds);
	rings_close(probe->rings);
	memset(probe, 0, sizeof(*probe));
}
