/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/probe.h"

#include "pprof/table/array.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regs.h"
#include "sampler/linux/regular_file.h"
#include "sampler/perf/features.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/hw_breakpoint.h>

/* ---- every thread of a process */

struct round {
	const struct probe_rounds *rounds;
	pid_t *known; /* threads of all rounds; also ended ones, which may have created others */
	size_t count, capacity;
	size_t found; /* in this round */
	size_t reached;
};

static bool is_known(const struct round *round, pid_t tid)
{
	for (size_t i = 0; i < round->count; i++)
		if (round->known[i] == tid)
			return true;
	return false;
}

static int visit(void *context, pid_t tid)
{
	struct round *round = context;

	if (is_known(round, tid))
		return 0;
	if (array_reserve(&round->known, &round->capacity, round->count + 1, sizeof(*round->known)) != 0)
		return -ENOMEM;
	int result = round->rounds->thread(round->rounds->context, tid);
	if (result && result != -ESRCH)
		return result;
	round->known[round->count++] = tid;
	round->found++;
	round->reached += result == 0;
	return 0;
}

ssize_t probe_rounds_run(const struct probe_rounds *rounds)
{
	struct round round = {.rounds = rounds};
	int error = 0;
	bool quiet = false;

	for (int i = 0; i < rounds->rounds_max && !quiet && !error; i++) {
		round.found = 0;
		error = proc_each_thread(rounds->pid, visit, &round);
		error = error == -ENOENT ? -ESRCH : error;
		quiet = round.found == 0 || (rounds->one_is_quiet && i == 0 && round.found == 1);
	}
	free(round.known);
	return error ? error : (ssize_t)round.reached;
}

/* ---- the trigger */

/* sourceware.org/systemtap/wiki/UserSpaceProbeImplementation: address, base, semaphore, then the strings
 * provider, name and arguments. */
enum {
	NOTE_TYPE = 3,
	PROVIDER_AT = 3 * sizeof(uint64_t),
	INSTRUCTION_BYTES_MAX = 16, /* the bytes that the kernel copies; they may lie in two pages */
};
static const char owner[] = "stapsdt", provider[] = "heaptap";

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

			if (note.n_type == NOTE_TYPE && note.n_namesz == sizeof(owner) &&
			    memcmp(bytes + name, owner, sizeof(owner)) == 0 &&
			    note.n_descsz >= PROVIDER_AT + sizeof(provider) &&
			    memcmp(bytes + desc + PROVIDER_AT, provider, sizeof(provider)) == 0)
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

int trigger_find(int library_fd, uint64_t *file_offset)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(library_fd, ELF_C_READ, NULL);
	int error = elf ? note_offset(elf, file_offset) : -ENOEXEC;
	elf_end(elf);
	return error;
}

int trigger_hold(int library_fd, uint64_t file_offset, struct trigger_page *page)
{
	uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1, start = file_offset & ~page_mask;

	*page = (struct trigger_page){.bytes = file_offset + INSTRUCTION_BYTES_MAX - start};
	void *mapped =
	    mmap(NULL, page->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, library_fd, (off_t)start);
	if (mapped == MAP_FAILED)
		return -errno;
	page->start = mapped;
	/* If we may not lock the page, the mapping alone keeps it cached unless memory becomes short. */
	(void)mlock(mapped, page->bytes);
	return 0;
}

void trigger_release(struct trigger_page *page)
{
	if (page->start)
		munmap(page->start, page->bytes);
	*page = (struct trigger_page){0};
}

/* ---- names and sizes */

enum {
	RING_BYTES_ROOT = 8 << 20, /* 254 samples of 32 KiB */
	RING_BYTES_USER = 4 << 20, /* tried first; Debian's limits allow it */
	/* Below this period a burst takes hundreds of samples in a millisecond, each with the whole dump's
	 * room, 33 KB: truth at -p 1 lost 829 of 3462 stacks with 8 MiB, none of 346002 with 64. The copy
	 * backend lost half of the stacks: it does not slow down the target enough for us to keep up. */
	DENSE_PERIOD_BYTES = 16 << 10,
	RING_BYTES_DENSE = 64 << 20,
	ATTACH_ROUNDS = 8,
};

const char *const backend_names[] = {"auto", "uprobe", "breakpoint", "copy", "walk", NULL};

const char *backend_name(enum backend backend)
{
	return backend_names[backend];
}

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
	attr->build_id = features_has(FEATURES_BUILD_ID);
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
}

static int open_uprobe_on(struct probe *probe, int library_fd)
{
	struct perf_event_attr attr;
	uint64_t offset;
	char path[32];
	int type = uprobe_type(), error = trigger_find(library_fd, &offset);

	if (type < 0 || error)
		return type < 0 ? type : error;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", library_fd);
	probe->uprobe_fds = calloc(rings_count(probe->rings), sizeof(int));
	if (!probe->uprobe_fds)
		return -ENOMEM;
	(void)trigger_hold(library_fd, offset, &probe->trigger_page);
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
			trigger_release(&probe->trigger_page);
			return fd;
		}
		probe->uprobe_fds[i] = fd;
	}
	return 0;
}

/* The kernel must patch the very file whose note was read. So the file is opened once, and then used only by
 * its descriptor. */
static int open_uprobe(struct probe *probe, const char *library)
{
	struct stat status;
	int fd = regular_file_open(AT_FDCWD, library, 0, &status);

	if (fd < 0)
		return fd;
	int error = open_uprobe_on(probe, fd);
	probe->library = library;
	probe->library_dev = status.st_dev;
	probe->library_ino = status.st_ino;
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
	/* otherwise the stale address would hold a debug register, and fire if it is executed again; for
	 * kernels without this see backend_fallback_executed() */
	attr->remove_on_exec = features_has(FEATURES_REMOVE_ON_EXEC);
}

/* Does the kernel allow a breakpoint? Tries one on ourselves, on a function that is never called. */
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

/* The breakpoints of one process. */
struct breakpoints {
	const struct probe *probe;
	uint64_t trigger_address;
	int *fds;
	size_t count, capacity;
};

/* Opens one event per CPU. Each goes into the list at once, in case the next one fails. */
static int attach_thread(void *context, pid_t tid)
{
	struct breakpoints *all = context;
	const struct rings *rings = all->probe->rings;
	size_t cpus = rings_count(rings);

	if (array_reserve(&all->fds, &all->capacity, all->count + cpus, sizeof(*all->fds)) != 0)
		return -ENOMEM;
	struct perf_event_attr attr;
	breakpoint_attr(&attr, all->probe, all->trigger_address);
	for (size_t i = 0; i < cpus; i++) {
		int fd = open_event(&attr, tid, rings_cpu(rings, i), rings_fd(rings, i));

		if (fd < 0)
			return fd;
		all->fds[all->count++] = fd;
	}
	return 0;
}

int probe_attach(const struct probe *probe, pid_t pid, uint64_t trigger_address, int **fds, size_t *count)
{
	struct breakpoints all = {.probe = probe, .trigger_address = trigger_address};
	const struct probe_rounds rounds = {
	    .pid = pid,
	    .rounds_max = ATTACH_ROUNDS,
	    .one_is_quiet = true,
	    .thread = attach_thread,
	    .context = &all,
	};
	ssize_t result = probe_rounds_run(&rounds);

	if (result < 0) {
		probe_detach(all.fds, all.count);
		return (int)result;
	}
	*fds = all.fds;
	*count = all.count;
	return 0;
}

void probe_detach(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	free(fds);
}

/* ---- choice */

int probe_open(struct probe *probe, enum backend wanted, const char *library, uint32_t stack_bytes,
    uint64_t period_bytes)
{
	memset(probe, 0, sizeof(*probe));
	probe->dump_bytes = ring_dump_bytes(stack_bytes);
	probe->regs_mask = regs_arch_native()->perf_mask;
	probe->backend = BACKEND_COPY;
	if (wanted == BACKEND_COPY || wanted == BACKEND_WALK) {
		snprintf(probe->reason, sizeof(probe->reason), "as asked for");
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
			    wanted == BACKEND_AUTO ? "the best there is" : "as asked for");
			return 0;
		}
	}
	if (probe->rings && wanted != BACKEND_UPROBE) {
		error = try_breakpoint(probe);
		if (!error) {
			probe->backend = BACKEND_BREAKPOINT;
			if (wanted == BACKEND_AUTO)
				snprintf(probe->reason, sizeof(probe->reason), "since uprobes %s %s",
				    features_refusal_is_permission(uprobe_error) ? "are" : "do not work:",
				    features_refusal_reason(uprobe_error));
			else
				snprintf(probe->reason, sizeof(probe->reason), "as asked for");
			return 0;
		}
	}
	rings_close(probe->rings);
	probe->rings = NULL;
	snprintf(probe->reason, sizeof(probe->reason), "%sperf events %s %s",
	    wanted == BACKEND_AUTO ? "since " : "",
	    features_refusal_is_permission(error) ? "are" : "do not work:", features_refusal_reason(error));
	return wanted == BACKEND_AUTO ? 0 : error;
}

void probe_close(struct probe *probe)
{
	for (size_t i = 0; probe->uprobe_fds && i < rings_count(probe->rings); i++)
		close(probe->uprobe_fds[i]);
	free(probe->uprobe_fds);
	trigger_release(&probe->trigger_page);
	rings_close(probe->rings);
	memset(probe, 0, sizeof(*probe));
}
