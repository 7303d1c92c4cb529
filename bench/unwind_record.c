/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/unwind_record.h"
#include "sampler/linux/regs.h"
#include "sampler/perf/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RING_PAGES = 8192, SECONDS_MAX = 30 };

/* Offset in FILE of exported FUNCTION, 0 if there is none. */
static uint64_t function_offset(const char *file, const char *function)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	Elf *elf = NULL;
	Elf_Scn *scn = NULL;
	uint64_t vaddr = 0;
	GElf_Shdr shdr;
	size_t n_phdrs = 0;

	elf_version(EV_CURRENT);
	if (fd >= 0)
		elf = elf_begin(fd, ELF_C_READ, NULL);
	while (elf && !vaddr && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_DYNSYM)
			continue;
		for (size_t i = 0; i < shdr.sh_size / shdr.sh_entsize; i++) {
			GElf_Sym sym;

			if (!gelf_getsym(elf_getdata(scn, NULL), (int)i, &sym) || sym.st_shndx == SHN_UNDEF)
				continue;
			const char *name = elf_strptr(elf, shdr.sh_link, sym.st_name);
			if (name && strcmp(name, function) == 0)
				vaddr = sym.st_value;
		}
	}
	if (elf)
		elf_getphdrnum(elf, &n_phdrs);
	for (size_t i = 0; vaddr && i < n_phdrs; i++) {
		GElf_Phdr phdr;

		gelf_getphdr(elf, (int)i, &phdr);
		if (phdr.p_type == PT_LOAD && vaddr >= phdr.p_vaddr && vaddr < phdr.p_vaddr + phdr.p_filesz) {
			vaddr = vaddr - phdr.p_vaddr + phdr.p_offset;
			break;
		}
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return vaddr;
}

static uint32_t uprobe_type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	unsigned type = 0;

	if (file) {
		if (fscanf(file, "%u", &type) != 1)
			type = 0;
		fclose(file);
	}
	return type;
}

static int open_event(pid_t pid, const struct trigger *trigger)
{
	struct perf_event_attr attr;

	ring_attr_init(&attr, trigger->stack_bytes);
	attr.sample_regs_user = regs_arch_native()->perf_mask;
	attr.sample_period = trigger->period;
	attr.disabled = 1;
	attr.enable_on_exec = 1;
	attr.mmap = 1;
	attr.mmap2 = 1;
	attr.build_id = 1;
	attr.comm = 1;
	attr.comm_exec = 1;
	attr.task = 1;
	attr.wakeup_watermark = 256 * 1024;
	if (trigger->file) {
		attr.type = uprobe_type();
		attr.config1 = (uint64_t)(uintptr_t)trigger->file;
		attr.config2 = function_offset(trigger->file, trigger->function);
		if (!attr.config2)
			return -ENOENT;
	} else {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
	}
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool append(struct recording *r, const uint8_t *ring, uint64_t mask, uint64_t at, size_t n)
{
	if (r->room - r->used < n) {
		size_t room = r->room ? 2 * r->room : 16 << 20;
		uint8_t *bytes = realloc(r->bytes, room);

		if (!bytes)
			return false;
		r->bytes = bytes;
		r->room = room;
	}
	for (size_t done = 0; done < n;) {
		uint64_t offset = (at + done) & mask;
		size_t part = n - done < mask + 1 - offset ? n - done : mask + 1 - offset;

		memcpy(r->bytes + r->used + done, ring + offset, part);
		done += part;
	}
	return true;
}

static bool drain(struct recording *r, struct perf_event_mmap_page *page, size_t max_samples)
{
	const uint8_t *ring = (const uint8_t *)page + page->data_offset;
	uint64_t mask = page->data_size - 1, tail = page->data_tail;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	while (tail != head && r->samples < max_samples) {
		struct perf_event_header header;

		memcpy(&header, ring + (tail & mask), sizeof(header));
		if (!append(r, ring, mask, tail, header.size))
			return false;
		if (header.type == PERF_RECORD_LOST)
			r->lost += ((uint64_t *)(r->bytes + r->used))[2];
		r->samples += header.type == PERF_RECORD_SAMPLE;
		r->used += header.size;
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	return r->samples < max_samples;
}

/* A child that waits for a byte in GO before it becomes ARGV; at once if GO is -1. */
static pid_t spawn(char *const argv[], int go)
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	int in = open("/dev/null", O_RDONLY), out = open("/dev/null", O_WRONLY);
	if (in < 0 || (go >= 0 && read(go, &byte, 1) != 1))
		_exit(127);
	setsid();
	dup2(in, 0);
	dup2(out, 1);
	dup2(out, 2);
	execvp(argv[0], argv);
	_exit(127);
}

/* The ring has to be there before the child goes on: its first records are its maps. */
static int collect(struct recording *r, int event, int go, size_t max_samples)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), bytes = (RING_PAGES + 1) * page_bytes;
	struct perf_event_mmap_page *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);

	if (page == MAP_FAILED)
		return -errno;
	if (write(go, "", 1) != 1)
		return -errno;
	for (time_t deadline = time(NULL) + SECONDS_MAX; time(NULL) < deadline;) {
		struct pollfd p = {.fd = event, .events = POLLIN};
		int ready = poll(&p, 1, 1000);

		if (!drain(r, page, max_samples) || p.revents & POLLHUP || (ready < 0 && errno != EINTR) ||
		    (ready == 0 && kill(r->pid, 0) != 0))
			break;
		/* A zombie keeps its pid; ask without waiting for it. */
		if (ready == 0) {
			siginfo_t info = {0};

			if (waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
			    info.si_pid)
				break;
		}
	}
	drain(r, page, max_samples);
	munmap(page, bytes);
	return 0;
}

int recording_run(struct recording *r, char *const argv[], char *const load[], const struct trigger *trigger,
    size_t max_samples)
{
	int go[2], event, err;
	pid_t load_pid = 0;

	memset(r, 0, sizeof(*r));
	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	r->pid = spawn(argv, go[0]);
	event = open_event(r->pid, trigger);
	err = event < 0 ? event : 0;
	if (!err && load)
		load_pid = spawn(load, -1);
	if (!err)
		err = collect(r, event, go[1], max_samples);
	kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
	if (load_pid > 0) {
		kill(-load_pid, SIGKILL);
		waitpid(load_pid, NULL, 0);
	}
	if (event >= 0)
		close(event);
	close(go[0]);
	close(go[1]);
	return err;
}

void recording_free(struct recording *recording)
{
	free(recording->bytes);
	memset(recording, 0, sizeof(*recording));
}

const struct perf_event_header *recording_next(const struct recording *r, size_t *at)
{
	const struct perf_event_header *header = (const void *)(r->bytes + *at);

	if (*at >= r->used)
		return NULL;
	*at += header->size;
	return header;
}
