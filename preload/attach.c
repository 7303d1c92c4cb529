/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constructor: finds the session, claims a region, tells the sampler what it must know of this image, and
 * leaves no descriptor, no thread and no handler behind. Every failure means: stay quiet, forward calls.
 *
 * The hand-over uses open, read, mmap and close on paths below /proc, which is what the loader itself has
 * just used: an image that is executed under a seccomp filter can still be profiled, where a socket would be
 * its death. The kernel's permission check on /proc/<sampler>/fd (same user, or privileged) is the check of
 * credentials in both directions. Nothing waits for the sampler: until it has opened its perf events, samples
 * go by the copy backend.
 */
#include "preload/capture.h"
#include "preload/region_socket.h"
#include "preload/live.h"
#include "preload/lookup.h"
#include "preload/mmap.h"
#include "preload/operators.h"
#include "preload/place.h"
#include "preload/next_symbol.h"
#include "preload/sample.h"
#include "preload/signal.h"
#include "preload/thread.h"
#include "proto/region.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

extern char **environ;

/* Not getenv: programs define their own (bash does). */
static const char *find_env(const char *name)
{
	size_t length = strlen(name);
	for (char **entry = environ; entry && *entry; entry++)
		if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
			return *entry + length + 1;
	return NULL;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "<path>:<16 hex digits>" */
static bool parse_env(const char *value, char *path, size_t path_bytes, uint64_t *cookie)
{
	const char *colon = strrchr(value, ':');
	if (!colon || (size_t)(colon - value) >= path_bytes || strlen(colon + 1) != 16)
		return false;
	memcpy(path, value, (size_t)(colon - value));
	path[colon - value] = '\0';
	*cookie = 0;
	for (const char *c = colon + 1; *c; c++) {
		if (hex_digit(*c) < 0)
			return false;
		*cookie = *cookie << 4 | (uint64_t)hex_digit(*c);
	}
	return true;
}

/* Opens a file of the session and reads its first bytes. In another pid namespace the path may name somebody
 * else's file: pread takes nothing out of a pipe or socket, and what it gets must be what the caller expects
 * before anything is mapped. No fstat: its symbol version is newer than the oldest glibc we load under. */
static int open_checked(const char *path, int flags, void *head, size_t bytes)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (pread(fd, head, bytes, 0) == (ssize_t)bytes)
		return fd;
	close(fd);
	return -1;
}

static bool read_pool_page(const char *path, uint64_t cookie, struct region_pool_page *pool)
{
	int fd = open_checked(path, O_RDONLY, pool, sizeof(*pool));
	if (fd < 0)
		return false;
	close(fd);
	return pool->magic == REGION_POOL_MAGIC && pool->abi == REGION_ABI && pool->cookie == cookie &&
	    memchr(pool->tickets_path, '\0', sizeof(pool->tickets_path)) &&
	    memchr(pool->ledger_path, '\0', sizeof(pool->ledger_path));
}

static bool read_ticket(const char *path, uint64_t cookie, struct ticket *ticket)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	ssize_t got = read(fd, ticket, sizeof(*ticket));
	close(fd);
	return got == (ssize_t)sizeof(*ticket) && ticket->cookie == cookie &&
	    memchr(ticket->region_path, '\0', sizeof(ticket->region_path));
}

/* A burst of programs has emptied the stock, or the sampler stands still. Waiting is out of the question:
 * this image stays unprofiled, but not unmentioned. */
static void count_unserved(const struct region_pool_page *pool)
{
	struct ledger head;
	int fd = open_checked(pool->ledger_path, O_RDWR, &head, sizeof(head));
	if (fd < 0)
		return;
	void *page = MAP_FAILED;
	if (head.magic == LEDGER_MAGIC && head.abi == REGION_ABI && head.cookie == pool->cookie)
		page = mmap(NULL, REGION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return;
	atomic_fetch_add(&((struct ledger *)page)->unserved, 1);
	munmap(page, REGION_PAGE_BYTES);
}

static bool header_good(const struct region_header *header)
{
	return header->magic == REGION_MAGIC && header->abi == REGION_ABI &&
	    header->total_bytes > REGION_PAGE_BYTES && header->places_offset >= REGION_PAGE_BYTES &&
	    header->segments <= REGION_SEGMENTS &&
	    header->slots_offset +
	        (uint64_t)header->segments * REGION_SEGMENT_SLOTS * sizeof(struct region_slot) <=
	    header->kept_offset &&
	    header->kept_offset +
	        (uint64_t)header->segments * REGION_SEGMENT_SLOTS * sizeof(struct region_slot) <=
	    header->total_bytes;
}

/* True if `bytes` more of address space are no more than a quarter of what the program may have: its limit
 * was made for it, not for us. The loader's start-up has just used the same system call. */
static bool affordable(int resource, uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(resource, &limit) == 0 &&
	    (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur / 4);
}

/* Maps a region whose header has been read; closes the descriptor. */
static struct region_header *map_region(int fd, const struct region_header *head)
{
	void *memory = MAP_FAILED;
	char last;
	if (header_good(head) && pread(fd, &last, 1, (off_t)head->total_bytes - 1) == 1 &&
	    affordable(RLIMIT_AS, head->total_bytes))
		memory = mmap(NULL, head->total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

/* A ticket that is read and not made use of is the sampler's to count: it sees no image become ready. */
static struct region_header *region_by_ticket(const struct region_pool_page *pool)
{
	struct ticket ticket;
	struct region_header head;
	if (!read_ticket(pool->tickets_path, pool->cookie, &ticket)) {
		count_unserved(pool);
		return NULL;
	}
	int fd = open_checked(ticket.region_path, O_RDWR, &head, sizeof(head));
	return fd < 0 ? NULL : map_region(fd, &head);
}

/* The sampler is another user's. Its file must not be able to shrink under us. */
static struct region_header *region_from_socket(const char *pool_path, uint64_t cookie)
{
	struct region_header head;
	int fd = region_socket_ask(pool_path, cookie);
	if (fd < 0)
		return NULL;
	if (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK &&
	    pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head))
		return map_region(fd, &head);
	close(fd);
	return NULL;
}

/* ---- what is loaded now: so that the stacks of a process that lives for a millisecond can still be unwound
 * */

struct module_list {
	unsigned char *at, *end;
	uint32_t count;
};

static uint32_t find_build_id(const struct dl_phdr_info *info, uint8_t id[REGION_BUILD_ID_MAX])
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_NOTE)
			continue;
		const unsigned char *note = (const unsigned char *)(info->dlpi_addr + segment->p_vaddr);
		size_t left = segment->p_memsz;
		while (left >= sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *head = (const void *)note;
			size_t name = ((size_t)head->n_namesz + 3) & ~(size_t)3;
			size_t desc = ((size_t)head->n_descsz + 3) & ~(size_t)3;
			size_t all = sizeof(*head) + name + desc;
			if (all > left)
				break;
			if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 &&
			    memcmp(note + sizeof(*head), "GNU", 4) == 0 &&
			    head->n_descsz <= REGION_BUILD_ID_MAX) {
				memcpy(id, note + sizeof(*head) + name, head->n_descsz);
				return head->n_descsz;
			}
			note += all;
			left -= all;
		}
	}
	return 0;
}

static int list_module(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct module_list *list = argument;
	struct region_module module = {0};
	module.build_id_bytes = find_build_id(info, module.build_id);
	const char *path = info->dlpi_name ? info->dlpi_name : "";
	if (!*path && getauxval(AT_EXECFN)) /* the program itself, as it was given to execve */
		path = (const char *)getauxval(AT_EXECFN);
	module.path_bytes = (uint32_t)strnlen(path, REGION_PATH_BYTES - 1) + 1;
	module.total_bytes = (uint32_t)((sizeof(module) + module.path_bytes + 7) & ~(size_t)7);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		if (list->at + module.total_bytes > list->end)
			return 1;
		uint64_t page = REGION_PAGE_BYTES - 1;
		module.start = (info->dlpi_addr + segment->p_vaddr) & ~page;
		module.end = (info->dlpi_addr + segment->p_vaddr + segment->p_filesz + page) & ~page;
		module.file_offset = segment->p_offset & ~page;
		memcpy(list->at, &module, sizeof(module));
		memcpy(list->at + sizeof(module), path, module.path_bytes - 1);
		list->at[sizeof(module) + module.path_bytes - 1] = '\0';
		list->at += module.total_bytes;
		list->count++;
	}
	return 0;
}

/* ---- the constructor */

/* True when a seccomp filter is in force: then only what the loader uses is used. Unknown counts as true. */
static bool filtered(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return true;
	text[got] = '\0';
	const char *line = strstr(text, "\nSeccomp:\t");
	return !line || line[10] != '0';
}

/* A page that reads zero in a forked child. */
static _Atomic uint32_t *map_wiped(void)
{
	void *page =
	    mmap(NULL, REGION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, REGION_PAGE_BYTES, MADV_WIPEONFORK) != 0) {
		munmap(page, REGION_PAGE_BYTES);
		return NULL;
	}
	return page;
}

/* The libc's own hook at fork (pthread_atfork is this call with our handle); musl has none that we could use.
 * */
static bool register_atfork(void)
{
	extern void *__dso_handle __attribute__((visibility("hidden")));
	struct lookup wish = {.name = "__register_atfork"};
	lookup_next(&wish, 1);
	int (*reg)(void (*)(void), void (*)(void), void (*)(void), void *) =
	    (int (*)(void (*)(void), void (*)(void), void (*)(void), void *))(uintptr_t)wish.found;
	return reg && reg(place_forking, NULL, place_forked, &__dso_handle) == 0;
}

static void reserve_levels(bool may_advise)
{
	size_t bytes = live_reserve_bytes();
	if (!affordable(RLIMIT_AS, 2 * bytes) || !affordable(RLIMIT_DATA, 2 * bytes))
		return;
	void *memory =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return; /* an address space limit: one level, 8 K live samples */
	if (may_advise) {
		madvise(memory, bytes, MADV_NOHUGEPAGE); /* one touched byte must not cost 2 MiB */
		madvise(memory, bytes, MADV_DONTDUMP);
	}
	live_reserve(memory);
}

static bool attach(void)
{
	char path[64];
	uint64_t cookie;
	const char *value = getauxval(AT_SECURE) ? NULL : find_env(REGION_ENV);
	if (!value || !parse_env(value, path, sizeof(path), &cookie))
		return false;
	bool strict = filtered();
	struct region_pool_page pool;
	struct region_header *header = NULL;
	if (read_pool_page(path, cookie, &pool))
		header = region_by_ticket(&pool);
	else if (!strict)
		header = region_from_socket(path, cookie);
	if (!header)
		return false;
	atomic_store(&header->state, REGION_CLAIMED);

	thread_open(strict ? 0 : (uint32_t)getpid());
	struct place_setup setup = {
	    .base = (unsigned char *)header,
	    .places_offset = header->places_offset,
	    .owners_offset = header->owners_offset,
	    .no_peak = header->no_peak == 1,
	    .buffers_offset = header->buffers_offset,
	    .frees_offset = header->frees_offset,
	    .slots_offset = header->slots_offset,
	    .kept_offset = header->kept_offset,
	    .segments = header->segments,
	    .key = header->key,
	    .clock_id = (int)header->clock_id,
	    .wiped = strict ? NULL : map_wiped(),
	    .pid = strict ? thread_tid() : (uint32_t)getpid(),
	};
	if (!register_atfork() && !setup.wiped)
		/* a child that does not know that it is one would write into its parent's books */
		return false;
	if (!strict)
		madvise(header, header->total_bytes, MADV_DONTDUMP);
	reserve_levels(!strict);

	unsigned char *modules = setup.base + header->modules_offset;
	struct module_list list = {modules, modules + REGION_MODULES_BYTES, 0};
	dl_iterate_phdr(list_module, &list);
	header->modules_bytes = (uint32_t)(list.at - modules);
	header->modules_count = list.count;
	header->pid = setup.pid;
	header->trigger_address = (uintptr_t)capture_trigger;
	header->stack_end = thread_main_stack_end();
	header->tid_offset = thread_tid_offset();
	header->unseen = lookup_before("malloc") ? REGION_UNSEEN_MALLOC : 0u;

	const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);
	if (random)
		sample_seed(random);
	/* Under a filter only what the loader itself uses is used, and it sets no handler. */
	if (!strict && header->snapshot_signal >= 1 && header->snapshot_signal <= 64)
		signal_open((int)header->snapshot_signal);
	place_open(&setup);
	if (header->record_mmap == 1)
		mmap_open();
	atomic_store_explicit(&header->state, REGION_READY, memory_order_release);
	return true;
}

__attribute__((constructor(101))) static void attach_construct(void)
{
	int saved = errno;
	next_symbol_resolve();
	signal_prepare();
	if (!attach())
		place_close();
	operators_settle();
	/* The table of function pointers is as read-only as the GOT is under full RELRO. */
	mprotect(&real, REGION_PAGE_BYTES, PROT_READ);
	errno = saved;
}
