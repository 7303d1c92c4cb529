/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/attach/attachment.h"

#include "sampler/attach/delivery.h"
#include "sampler/attach/entry.h"
#include "sampler/attach/exports.h"
#include "sampler/attach/holder.h"
#include "sampler/attach/thread_stacks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail(struct attachment *attachment, int error, const char *what)
{
	snprintf(attachment->reason, sizeof(attachment->reason), "%s%s%s", what, error == -EIO ? "" : ": ",
	    error == -EIO ? "" : strerror(-error));
	return error;
}

/* The addresses of what the library exports in a process that has it. */
struct inside {
	uint64_t attach, detach, request;
};

/* -ENOENT: it has not. */
static int find_inside(const struct address_space *space, struct inside *inside)
{
	const struct mapping *first = address_space_file(space, DELIVERY_NAME, false);
	struct exports exports;
	*inside = (struct inside){0};
	if (!first)
		return -ENOENT;
	int error = exports_read(&exports, space, first->start);
	if (!error)
		*inside = (struct inside){exports_address(&exports, ATTACH_SYMBOL),
		    exports_address(&exports, DETACH_SYMBOL),
		    exports_address(&exports, ATTACH_REQUEST_SYMBOL)};
	exports_free(&exports);
	if (!error && (!inside->attach || !inside->detach || !inside->request))
		error = -EPROTO;
	return error;
}

/* Root reads the library where the target has it. Others need our file for that: its first page has the build
 * id. */
static bool is_same_library(const struct address_space *space, int library_fd)
{
	unsigned char own[REGION_PAGE_BYTES], other[REGION_PAGE_BYTES];
	const struct mapping *first = address_space_file(space, DELIVERY_NAME, false);
	return geteuid() == 0 ||
	    (address_space_read(space, first->start, other, sizeof(other)) == 0 &&
	        pread(library_fd, own, sizeof(own), 0) == (ssize_t)sizeof(own) &&
	        memcmp(own, other, sizeof(own)) == 0);
}

/* Asks the library that is there already. */
static int write_request(
    const struct address_space *space, const struct inside *inside, const struct holder *holder)
{
	struct attach_request request;
	int error = address_space_read(space, inside->request, &request, sizeof(request));
	if (!error && (request.magic != ATTACH_REQUEST_MAGIC || request.abi != REGION_ABI))
		error = -EPROTO;
	snprintf(request.region_path, sizeof(request.region_path), "/proc/%d/fd/%d", (int)holder->pid,
	    ATTACH_REGION_FD);
	return error ? error : address_space_write(space, inside->request, &request, sizeof(request));
}

static bool is_ready(const struct region *region)
{
	return atomic_load_explicit(&region_header(region)->state, memory_order_acquire) == REGION_READY;
}

/* Calls attach in the library, or dlopen for the library. */
static int call_in(struct attachment *attachment, struct entry *entry, const struct inside *inside,
    const struct holder *holder, const struct region *region)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)holder->pid, ATTACH_LIBRARY_FD);
	int error = attachment->reused ? entry_call(entry, inside->attach, NULL, 0)
	                               : entry_call(entry, entry->dlopen, path, RTLD_NOW);
	attachment->stood_ns = entry->stood_ns;
	attachment->tries = entry->tries;
	if (error)
		return fail(attachment, -EIO, entry->reason);
	const char *declined = region_declined_text(region);
	if (is_ready(region))
		return 0;
	return fail(attachment, -EIO,
	    declined                 ? declined
	        : attachment->reused ? "its library did not take the shared memory"
	                             : "its loader did not take the library");
}

static int begin(struct attachment *attachment, struct address_space *space, const struct region *region,
    struct modules *modules, int library_fd)
{
	struct inside inside;
	struct holder holder;
	struct entry entry;
	int error = find_inside(space, &inside);
	attachment->reused = error != -ENOENT;
	if (attachment->reused && (error || !is_same_library(space, library_fd)))
		return fail(attachment, -EIO, "it has the library of another version of heaptap");
	thread_stacks_write(space, region);
	error = holder_start(&holder, space->pid, library_fd, region->fd);
	if (error)
		return fail(attachment, error, "no process with its user and namespaces can be made");
	error = attachment->reused ? write_request(space, &inside, &holder) : 0;
	if (error)
		(void)fail(attachment, error, "the library cannot be told what to do");
	else if (entry_open(&entry, space, modules) != 0)
		error = fail(attachment, -EIO, entry.reason);
	else
		error = call_in(attachment, &entry, &inside, &holder, region);
	if (entry.space)
		entry_close(&entry);
	holder_end(&holder);
	return error;
}

int attachment_begin(struct attachment *attachment, pid_t pid, const struct region *region,
    struct modules *modules, int library_fd)
{
	struct address_space space;
	*attachment = (struct attachment){0};
	int error = address_space_open(&space, pid);
	error = error ? fail(attachment, error, "its memory cannot be opened")
	              : begin(attachment, &space, region, modules, library_fd);
	address_space_close(&space);
	return error;
}

int attachment_end(struct attachment *attachment, pid_t pid, struct modules *modules)
{
	struct address_space space;
	struct inside inside;
	struct entry entry = {0};
	*attachment = (struct attachment){0};
	int error = address_space_open(&space, pid);
	if (error) {
		address_space_close(&space);
		return fail(attachment, error, "its memory cannot be opened");
	}
	error = address_space_file(&space, "heaptap", false) ? find_inside(&space, &inside) : -ENOENT;
	if (error)
		(void)fail(attachment, error, "it is not attached");
	else if (entry_open(&entry, &space, modules) != 0 || entry_call(&entry, inside.detach, NULL, 0) != 0)
		error = fail(attachment, -EIO, entry.reason);
	attachment->stood_ns = entry.stood_ns;
	attachment->tries = entry.tries;
	if (!error && (address_space_refresh(&space) != 0 || address_space_file(&space, "heaptap", false)))
		error = fail(attachment, -EIO, "it still has the shared memory");
	entry_close(&entry);
	address_space_close(&space);
	return error;
}
