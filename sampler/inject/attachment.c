/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/attachment.h"

#include "proto/attach_request.h"

#include "sampler/inject/entry.h"
#include "sampler/inject/exports.h"
#include "sampler/inject/holder.h"
#include "sampler/inject/library_folder.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	BUSY_MS = 30000, /* as long as a call may take */
	READY_MS = 1000,
	STACK_LEAST_BYTES = 8 << 10,
};

static const char given_up[] = "given up before it had its library";

static int fail(struct attachment *attachment, int error, const char *what)
{
	bool plain = error == -EIO || error == -ECANCELED;

	snprintf(attachment->reason, sizeof(attachment->reason), "%s%s%s", what, plain ? "" : ": ",
	    plain ? "" : strerror(-error));
	return error;
}

/* The addresses of the library's exports, in a process that has the library. */
struct inside {
	uint64_t base, attach, detach, request;
	struct attach_request value;
};

/* 1: our library begins here. 0: so do the remains that glibc leaves if the kernel refuses the library as
 * code. -1: something else is here. */
static int is_loaded(const struct address_space *space, const struct mapping *first)
{
	if (first->offset != 0 || !address_space_is_named(first, ATTACH_LIBRARY_NAME, false))
		return -1;
	for (size_t i = 0; i < space->count; i++)
		if (space->mappings[i].prot & PROT_EXEC && space->mappings[i].ino == first->ino &&
		    strcmp(space->mappings[i].path, first->path) == 0)
			return 1;
	return 0;
}

static int read_inside(const struct address_space *space, uint64_t base, struct inside *inside)
{
	struct exports exports;

	*inside = (struct inside){0};
	int error = exports_read(&exports, space, base);
	if (!error)
		*inside = (struct inside){.base = base,
		    .attach = exports_address(&exports, ATTACH_SYMBOL),
		    .detach = exports_address(&exports, DETACH_SYMBOL),
		    .request = exports_address(&exports, ATTACH_REQUEST_SYMBOL)};
	exports_free(&exports);
	if (!error && (!inside->attach || !inside->detach || !inside->request))
		error = -EPROTO;
	if (!error)
		error = address_space_read(space, inside->request, &inside->value, sizeof(inside->value));
	return error;
}

/* Finds the library that is in use: there may also be copies that came too late. -ENOENT if there is none. */
static int find_inside(const struct address_space *space, struct inside *inside)
{
	int error = -ENOENT;

	for (size_t i = 0; i < space->count; i++) {
		const struct mapping *mapping = &space->mappings[i];

		if (is_loaded(space, mapping) != 1)
			continue;
		error = read_inside(space, mapping->start, inside);
		if (!error &&
		    (inside->value.magic != ATTACH_REQUEST_MAGIC || inside->value.abi != REGION_ABI))
			error = -EPROTO;
		if (!error)
			break;
	}
	return error;
}

/* Root may read the target's library, whichever it is. For other users it must be our file: the first page
 * has the build id. */
static bool is_same_library(const struct address_space *space, uint64_t base, int library_fd)
{
	unsigned char own[REGION_PAGE_BYTES], other[REGION_PAGE_BYTES];

	return geteuid() == 0 ||
	    (address_space_read(space, base, other, sizeof(other)) == 0 &&
	        pread(library_fd, own, sizeof(own), 0) == (ssize_t)sizeof(own) &&
	        memcmp(own, other, sizeof(own)) == 0);
}

/* Writes the request for a library that is there already. */
static int write_request(const struct address_space *space, const struct inside *inside, const char *path)
{
	struct attach_request request = inside->value;

	snprintf(request.region_path, sizeof(request.region_path), "%s", path);
	return address_space_write(space, inside->request, &request, sizeof(request));
}

static bool is_ready(const struct region *region)
{
	return atomic_load_explicit(&region_header(region)->state, memory_order_acquire) == REGION_READY;
}

/* Called if the call has not returned in time, or its thread has ended. False if the hooks are in
 * nevertheless. */
static bool give_up(const struct region *region)
{
	const struct timespec pause = {.tv_nsec = 1000 * 1000};
	uint32_t attaching = REGION_ATTACHING;

	if (atomic_compare_exchange_strong(&region_header(region)->attaching, &attaching, REGION_GIVEN_UP) ||
	    attaching != REGION_ATTACHED)
		return true;
	for (int i = 0; i < READY_MS && !is_ready(region); i++) /* the library's very next store */
		nanosleep(&pause, NULL);
	return !is_ready(region);
}

/* What attachment_begin works with. */
struct beginning {
	struct attachment *attachment;
	const struct attachment_wish *wish;
	struct address_space *space;
	struct entry *entry;
	struct inside inside;
	bool called; /* the call returned, and the region was not taken */
};

/* Calls the library's attach function, or dlopen to load the library. */
static int call_in(struct beginning *b, const struct handed *handed)
{
	struct attachment *attachment = b->attachment;
	struct entry *entry = b->entry;
	int error = attachment->reused ? write_request(b->space, &b->inside, handed->region_path) : 0;

	if (error)
		return fail(attachment, error, "the request to the library cannot be written");
	const struct remote_call again = {.function = b->inside.attach};
	const struct remote_call load = {
	    .function = entry->dlopen, .text = handed->library_path, .second = RTLD_NOW};
	error = entry_call(entry, attachment->reused ? &again : &load);
	attachment->stood_ns =
	    entry->stood_ns > attachment->stood_ns ? entry->stood_ns : attachment->stood_ns;
	attachment->tries += entry->tries;
	if (error && give_up(b->wish->region))
		return fail(attachment, error == -ECANCELED ? error : -EIO, entry->reason);
	if (is_ready(b->wish->region))
		return 0;
	const char *declined = region_declined_text(b->wish->region);
	b->called = !declined;
	return fail(attachment, -EIO,
	    declined                 ? declined
	        : attachment->reused ? "its library did not take the shared memory"
	                             : "its loader did not take the library");
}

/* Unmaps the remains that glibc leaves of a library in memory that the kernel has refused as code. A program
 * may have mapped the library's file itself, as data. */
static void remove_refused(struct beginning *b)
{
	const uint64_t unmap = exports_address(&b->entry->point.libc, "munmap");

	for (size_t i = 0; unmap && i < b->space->count; i++) {
		const struct mapping *left = &b->space->mappings[i];
		const struct remote_call call = {
		    .function = unmap, .first = left->start, .second = left->end - left->start};

		if (is_loaded(b->space, left) != 0 || !address_space_is_memory(left))
			continue;
		/* the call may read the list of mappings again; there is at most one such rest */
		(void)entry_call(b->entry, &call);
		return;
	}
}

static int by_memory(struct beginning *b)
{
	const struct attachment_wish *wish = b->wish;
	struct handed handed;
	int error = holder_start(&handed, wish->pid, wish->library_copy->fd, wish->region, wish->cancel_fd);

	if (error == -ECANCELED)
		return fail(b->attachment, error, given_up);
	if (error) {
		b->called = true;
		return fail(
		    b->attachment, error, "heaptap cannot make a process with its user and namespaces");
	}
	error = call_in(b, &handed);
	handed_end(&handed);
	return error;
}

/* The second way, if memory has failed. If the library is there nevertheless, a file would load it a second
 * time. */
static int by_file(struct beginning *b)
{
	const struct attachment_wish *wish = b->wish;
	struct handed handed;
	int error = address_space_refresh(b->space);

	if (error)
		return fail(b->attachment, error, "its mappings cannot be read");
	if (!b->attachment->reused && find_inside(b->space, &b->inside) != -ENOENT)
		return -EIO;
	remove_refused(b);
	error =
	    library_folder_start(&handed, wish->pid, wish->library_copy->fd, wish->region, wish->cancel_fd);
	if (error == -ECANCELED)
		return fail(b->attachment, error, given_up);
	if (error)
		return fail(b->attachment, error,
		    "it has no /proc that leads to the library, and its root has no folder for one");
	b->attachment->by_file = !b->attachment->reused;
	error = call_in(b, &handed);
	handed_end(&handed);
	return error;
}

static bool may_be_stack(const struct mapping *mapping)
{
	return (mapping->prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE) && !mapping->shared &&
	    mapping->ino == 0 && strcmp(mapping->path, "[heap]") != 0 &&
	    mapping->end - mapping->start >= STACK_LEAST_BYTES;
}

/* glibc puts pages that allow nothing below each stack; a program's own stacks may have none. */
static bool has_guard(const struct address_space *space, size_t index)
{
	return index > 0 && space->mappings[index - 1].end == space->mappings[index].start &&
	    !(space->mappings[index - 1].prot & (PROT_READ | PROT_WRITE));
}

/* Before the hand-over: tells the library the stacks of the threads that run already (struct region_stack,
 * below_main_stack). A thread cannot find the bounds of its own stack without a system call. */
static void write_thread_stacks(const struct address_space *space, const struct region *region)
{
	struct region_stack *stacks = (void *)(region->base + region->offsets.stacks);
	uint32_t count = 0;

	region_header(region)->below_main_stack = 0;
	for (size_t i = 1; i < space->count; i++)
		if (strcmp(space->mappings[i].path, "[stack]") == 0)
			region_header(region)->below_main_stack = space->mappings[i - 1].end;
	for (size_t i = 0; i < space->count && count < REGION_STACKS; i++)
		if (may_be_stack(&space->mappings[i]) && has_guard(space, i))
			stacks[count++] =
			    (struct region_stack){space->mappings[i].start, space->mappings[i].end};
	region_header(region)->thread_stacks = count;
}

static int begin(struct beginning *b)
{
	const struct attachment_wish *wish = b->wish;
	int error = address_space_refresh(b->space);

	if (!error)
		error = find_inside(b->space, &b->inside);
	b->attachment->reused = error != -ENOENT;
	if (b->attachment->reused &&
	    (error || !is_same_library(b->space, b->inside.base, wish->library_copy->fd)))
		return fail(b->attachment, -EIO, "it has the library of another version of heaptap");
	if (address_space_region(b->space))
		return fail(b->attachment, -EIO, "another heaptap has attached to it");
	write_thread_stacks(b->space, wish->region);
	if (entry_open(b->entry, b->space, wish->modules) != 0)
		return fail(b->attachment, -EIO, b->entry->reason);
	b->called = !b->attachment->reused && !wish->library_copy->executable;
	error = b->called ? -EACCES : by_memory(b);
	return error && b->called ? by_file(b) : error;
}

/* Called when the memory is open: that stays the memory of one program, whatever the process executes
 * later. */
static bool is_another(const struct attachment_wish *wish)
{
	const struct thread_birth now = thread_facts_birth(wish->pid);

	return wish->birth.ticks && !thread_facts_same_birth(&now, &wish->birth);
}

int attachment_begin(struct attachment *attachment, const struct attachment_wish *wish)
{
	struct address_space space;
	struct entry entry = {.cancel_fd = wish->cancel_fd, .force = wish->force};
	struct beginning beginning = {attachment, wish, &space, &entry, .called = false};

	*attachment = (struct attachment){0};
	int error = address_space_open(&space, wish->pid);
	error = error          ? fail(attachment, error, "its memory cannot be opened")
	    : is_another(wish) ? fail(attachment, -EIO, "it executes another program now")
	    : address_space_lock(&space, BUSY_MS, wish->cancel_fd)
	    ? fail(attachment, -EIO, "another heaptap is attaching to it, or detaching")
	    : begin(&beginning);
	entry_close(&entry);
	address_space_close(&space);
	return error;
}

static int end(struct attachment *attachment, struct address_space *space, const struct attachment_wish *wish)
{
	struct inside inside;
	struct entry entry = {.cancel_fd = wish->cancel_fd, .force = true};
	int error = address_space_lock(space, BUSY_MS, wish->cancel_fd);

	if (error)
		return fail(attachment, -EIO, "another heaptap is attaching to it, or detaching");
	error = address_space_refresh(space);
	if (!error)
		error = address_space_region(space) ? find_inside(space, &inside) : -ENOENT;
	if (error)
		return fail(attachment, error, "it is not attached");
	const struct remote_call call = {.function = inside.detach};
	if (entry_open(&entry, space, wish->modules) != 0 || (error = entry_call(&entry, &call)) != 0)
		error = fail(attachment, error == -ECANCELED ? error : -EIO, entry.reason);
	attachment->stood_ns = entry.stood_ns;
	attachment->tries = entry.tries;
	entry_close(&entry);
	if (!error && (address_space_refresh(space) != 0 || address_space_region(space)))
		error = fail(attachment, -EIO, "it still has the shared memory");
	return error;
}

int attachment_end(struct attachment *attachment, const struct attachment_wish *wish)
{
	struct address_space space;

	*attachment = (struct attachment){0};
	int error = address_space_open(&space, wish->pid);
	error =
	    error ? fail(attachment, error, "its memory cannot be opened") : end(attachment, &space, wish);
	address_space_close(&space);
	return error;
}
