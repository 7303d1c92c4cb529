/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool, from the other side: claims as the library makes them (proto/region.h), in this process or in
 * another, honest ones and hostile ones.
 */
#include "sampler/intake/region_pool.h"

#include "preload/region_socket.c"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STOCK_LEAST = 16, STOCK_MAX = 256, DEADLINE_MS = 20000 };

static const struct region_options options = {
    .period_bytes = 64, .clock_id = 1, .live_max = 1024, .mode = REGION_MODE_COPY};

/* The pool, and what a target is told of it. */
struct visit {
	struct region_pool *pool;
	struct region_pool_page page;
	char page_path[64];
	uint64_t cookie;
};

static int open_visit(void **state)
{
	struct visit *v = calloc(1, sizeof(*v));

	v->pool = region_pool_new(&options);
	*state = v;
	if (!v->pool || sscanf(region_pool_env(v->pool), "%63[^:]:%16" SCNx64, v->page_path, &v->cookie) != 2)
		return -1;
	int fd = open(v->page_path, O_RDONLY | O_CLOEXEC);
	ssize_t got = read(fd, &v->page, sizeof(v->page));
	close(fd);
	return got != (ssize_t)sizeof(v->page);
}

static int close_visit(void **state)
{
	struct visit *v = *state;

	region_pool_free(v->pool);
	free(v);
	return 0;
}

static bool read_ticket(const struct visit *v, struct ticket *ticket)
{
	int fd = open(v->page.tickets_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	assert_true(fd >= 0);
	ssize_t got = read(fd, ticket, sizeof(*ticket));
	close(fd);
	return got == (ssize_t)sizeof(*ticket);
}

static uint64_t inode_at(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* What a target does first. Returns the region's inode; 0: there was no ticket. */
static uint64_t claim(const struct visit *v)
{
	struct ticket ticket;
	struct region_header header;
	struct stat buffers;

	if (!read_ticket(v, &ticket))
		return 0;
	assert_int_equal(ticket.cookie, v->cookie);
	int fd = open(ticket.region_path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	close(fd);
	assert_int_equal(stat(ticket.buffers_path, &buffers), 0);
	assert_int_equal(buffers.st_size, region_buffers_bytes(&header.offsets));
	assert_int_equal(header.magic, REGION_MAGIC);
	assert_int_equal(header.abi, REGION_ABI);
	return inode_at(ticket.region_path);
}

/* The inode of the next region that the pool reports; 0: none. */
static uint64_t told(const struct visit *v)
{
	struct region *region = region_pool_next(v->pool);
	uint64_t inode = region ? region->ino : 0;

	if (!region)
		return 0;
	assert_non_null(region->base);
	assert_int_equal(region_header(region)->key, region->key);
	region_close(region);
	free(region);
	return inode;
}

/* Claims all that lie ready, and hears of each. */
static uint32_t claim_all(const struct visit *v)
{
	uint64_t claimed[STOCK_MAX + 1];
	uint32_t count = 0;

	while (count <= STOCK_MAX && (claimed[count] = claim(v)))
		count++;
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(told(v), claimed[i]);
	assert_int_equal(told(v), 0);
	return count;
}

/* ---- what a target is told */

static void the_page_is_what_the_protocol_says(void **state)
{
	const struct visit *v = *state;

	assert_int_equal(v->page.magic, REGION_POOL_MAGIC);
	assert_int_equal(v->page.abi, REGION_ABI);
	assert_int_equal(v->page.cookie, v->cookie);
	assert_int_not_equal(v->cookie, 0);
}

static void nobody_changes_the_page_or_shrinks_the_ledger(void **state)
{
	const struct visit *v = *state;
	int fd = open(v->page_path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	close(fd);
	fd = open(v->page.ledger_path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(errno, EPERM);
	close(fd);
}

static void who_found_no_region_is_counted(void **state)
{
	const struct visit *v = *state;
	struct ledger *ledger;
	int fd = open(v->page.ledger_path, O_RDWR | O_CLOEXEC);

	ledger = mmap(NULL, REGION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	assert_ptr_not_equal(ledger, MAP_FAILED);
	assert_int_equal(ledger->magic, LEDGER_MAGIC);
	assert_int_equal(ledger->cookie, v->cookie);
	assert_int_equal(region_pool_unserved(v->pool), 0);
	atomic_fetch_add(&ledger->unserved, 3);
	assert_int_equal(region_pool_unserved(v->pool), 3);
	memset(ledger, 0xff, REGION_PAGE_BYTES); /* by their own word, whatever that is */
	assert_int_equal(region_pool_unserved(v->pool), UINT64_MAX);
	assert_int_not_equal(claim(v), 0);
	assert_int_not_equal(told(v), 0);
	munmap(ledger, REGION_PAGE_BYTES);
}

/* ---- claims */

static void claims_are_told_in_their_order(void **state)
{
	const struct visit *v = *state;
	struct region *first, *second;
	uint64_t inode[3];

	assert_int_equal(told(v), 0);
	for (int i = 0; i < 3; i++)
		inode[i] = claim(v);
	first = region_pool_next(v->pool);
	second = region_pool_next(v->pool);
	assert_int_equal(first->ino, inode[0]);
	assert_int_equal(second->ino, inode[1]);
	assert_true((int32_t)(second->id - first->id) > 0); /* by which the older of two runs is told */
	assert_int_not_equal(first->key, second->key);
	assert_int_equal((first->key | second->key) & 0xffff, 0); /* where the place goes */
	region_close(first);
	region_close(second);
	free(first);
	free(second);
	assert_int_equal(told(v), inode[2]);
	assert_int_equal(told(v), 0);
}

static void a_claim_wakes_us(void **state)
{
	const struct visit *v = *state;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLOUT | EPOLLET};

	assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, region_pool_fd(v->pool), &event), 0);
	for (int i = 0; i < 300; i++) { /* however often the pipe has gone round, and grown */
		for (int looks = 0; looks < 10; looks++) /* room that we made ourselves, filled in parts */
			assert_int_equal(told(v), 0);
		(void)epoll_wait(epoll_fd, &event, 1, 0);
		pid_t pid = fork();
		if (pid == 0) {
			struct ticket ticket;

			_exit(!read_ticket(v, &ticket));
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(epoll_wait(epoll_fd, &event, 1, DEADLINE_MS), 1);
		assert_int_not_equal(told(v), 0);
		assert_int_equal(told(v), 0);
	}
	close(epoll_fd);
}

static void the_stock_is_filled_up_and_grows_with_the_claims(void **state)
{
	const struct visit *v = *state;
	uint32_t count = claim_all(v), before = count, claims = count;

	assert_in_range(count, STOCK_LEAST, STOCK_MAX);
	while (count < STOCK_MAX && claims < 100 * STOCK_MAX) {
		for (uint32_t looks = 0; looks < 8; looks++) /* a look makes a part of what is wanted */
			assert_int_equal(told(v), 0);
		count = claim_all(v);
		assert_true(count >= before && count <= STOCK_MAX);
		claims += before = count;
	}
	assert_int_equal(count, STOCK_MAX);
}

static void few_descriptors_mean_few_spares(void **state)
{
	struct rlimit before, few;
	struct visit *v = *state;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 8 * STOCK_LEAST;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(close_visit(state), 0);
	assert_int_equal(open_visit(state), 0);
	v = *state;
	for (int i = 0; i < 20; i++)
		assert_int_equal(claim_all(v), STOCK_LEAST);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void what_they_begin_with_can_be_changed(void **state)
{
	const struct visit *v = *state;

	for (uint64_t n = 1; n < 4; n++) {
		enum region_mode mode = n % 2 ? REGION_MODE_TRIGGER : REGION_MODE_COPY;

		region_pool_set_mode(v->pool, mode);
		region_pool_set_period(v->pool, n * 1000);
		/* those that were spare, and those made since */
		for (uint32_t i = 0; i < 3 * STOCK_LEAST; i++) {
			assert_int_not_equal(claim(v), 0);
			struct region *region = region_pool_next(v->pool);
			assert_int_equal(region_header(region)->mode, mode);
			assert_int_equal(region_header(region)->period_bytes, n * 1000);
			assert_int_equal(region_header(region)->state, REGION_SPARE);
			region_close(region);
			free(region);
		}
	}
}

struct seen {
	uint64_t inode[2048];
	size_t count;
};

static void note_told(const struct visit *v, struct seen *seen)
{
	uint64_t inode;

	for (int i = 0; i < 2 * STOCK_MAX && (inode = told(v)); i++) {
		for (size_t n = 0; n < seen->count; n++)
			assert_int_not_equal(seen->inode[n], inode);
		assert_true(seen->count < 2048);
		seen->inode[seen->count++] = inode;
	}
}

/* A target of our own user can write into the pipe, and read more or less than a ticket. Claims may be
 * told wrongly then (the registry gives up a program run that never gets ready), but no region twice, and
 * the pool goes on. */
static void hostile_tickets_do_no_harm(void **state)
{
	static const size_t sizes[] = {1, 64, 63, 4096, 65, 640};
	const struct visit *v = *state;
	char junk[4096];
	struct seen seen = {0};

	memset(junk, 0xa5, sizeof(junk));
	int in = open(v->page.tickets_path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	int out = open(v->page.tickets_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	assert_true(in >= 0 && out >= 0);
	for (size_t round = 0; round < 120; round++) {
		for (size_t i = 0; i < round % 7; i++) /* a part of a packet is all of it */
			(void)!read(out, junk, round % 3 ? sizeof(struct ticket) : 1);
		for (size_t i = 0; i < round % 5; i++)
			(void)!write(in, junk, sizes[(round + i) % (round < 60 ? 3 : 6)]);
		note_told(v, &seen);
	}
	while (read(out, junk, sizeof(junk)) > 0)
		;
	note_told(v, &seen);
	close(in);
	close(out);
	assert_true(seen.count > 100);
	assert_true(claim_all(v) >= STOCK_LEAST);
}

/* ---- the socket, for targets of another user */

/* Asks at the socket as the library does; its process' exit status tells whether it got the region that we
 * are told of. */
static uint64_t serve(const struct visit *v, uint64_t cookie, int *status)
{
	int answer[2];
	uint64_t inode = 0, got = 0;

	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct stat file = {0}, buffers = {0};
		const struct region_files files = region_socket_ask(v->page_path, cookie);
		bool good = files.fd >= 0 && fstat(files.fd, &file) == 0 &&
		    fstat(files.buffers_fd, &buffers) == 0 && buffers.st_ino != file.st_ino &&
		    buffers.st_size < file.st_size;

		got = file.st_ino;
		_exit(write(answer[1], &got, sizeof(got)) != (ssize_t)sizeof(got) || !good);
	}
	close(answer[1]);
	struct pollfd asked = {.fd = region_pool_socket_fd(v->pool, 0), .events = POLLIN};
	/* It waits 200 ms, no more: on a busy machine it may have left, which is not what is tested here. */
	while (waitpid(pid, status, WNOHANG) == 0) {
		if (poll(&asked, 1, 1) == 1)
			region_pool_knock(v->pool);
		uint64_t next = told(v);
		inode = next ? next : inode;
	}
	if (read(answer[0], &got, sizeof(got)) != (ssize_t)sizeof(got))
		got = 0;
	close(answer[0]);
	if (*status == 0)
		assert_int_equal(got, inode);
	return inode;
}

static bool served(const struct visit *v)
{
	int status = -1;

	for (int i = 0; i < 50 && status != 0; i++)
		serve(v, v->cookie, &status);
	return status == 0;
}

static void the_socket_hands_one_to_who_knows_the_cookie(void **state)
{
	const struct visit *v = *state;
	int status;

	if (region_pool_socket_fd(v->pool, 0) < 0) {
		print_message("only root's pool has a socket\n");
		skip();
	}
	assert_true(served(v));
	assert_int_equal(serve(v, v->cookie + 1, &status), 0);
	assert_int_not_equal(status, 0);
	assert_int_equal(claim_all(v) >= STOCK_LEAST, 1); /* the tickets' order is as before */
}

static int visit_silently(const struct visit *v, const void *words, size_t bytes)
{
	struct sockaddr_un address;
	socklen_t length = region_socket_address(v->page_path, v->cookie, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, length), 0);
	if (bytes)
		assert_int_equal(send(fd, words, bytes, MSG_NOSIGNAL), bytes);
	return fd;
}

static void who_says_nothing_at_the_socket_keeps_nobody_out(void **state)
{
	enum { SILENT = 40 };
	const struct visit *v = *state;
	int fds[SILENT];

	if (region_pool_socket_fd(v->pool, 0) < 0) {
		print_message("only root's pool has a socket\n");
		skip();
	}
	for (int i = 0; i < SILENT; i++)
		fds[i] = visit_silently(v, "hello", i % 2 ? 5 : 0);
	assert_true(served(v));
	for (int i = 0; i < SILENT; i++)
		close(fds[i]);
	assert_true(served(v));
}

/* With the cookie, but gone before it could be handed anything: not profiled, and counted. */
static void who_leaves_the_socket_too_early_is_counted(void **state)
{
	const struct visit *v = *state;

	if (region_pool_socket_fd(v->pool, 0) < 0) {
		print_message("only root's pool has a socket\n");
		skip();
	}
	close(visit_silently(v, &v->cookie, sizeof(v->cookie)));
	region_pool_knock(v->pool);
	assert_int_equal(told(v), 0);
	assert_int_equal(region_pool_unserved(v->pool), 1);
}

static void everything_is_given_back(void **state)
{
	(void)state;
	int before = dup(0);
	close(before);
	for (int i = 0; i < 3; i++) {
		struct region_pool *pool = region_pool_new(&options);

		assert_non_null(pool);
		region_pool_free(pool);
	}
	int after = dup(0);
	close(after);
	assert_int_equal(after, before);
	region_pool_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_visit, close_visit)
	const struct CMUnitTest tests[] = {
	    TEST(the_page_is_what_the_protocol_says),
	    TEST(nobody_changes_the_page_or_shrinks_the_ledger),
	    TEST(who_found_no_region_is_counted),
	    TEST(claims_are_told_in_their_order),
	    TEST(a_claim_wakes_us),
	    TEST(the_stock_is_filled_up_and_grows_with_the_claims),
	    TEST(few_descriptors_mean_few_spares),
	    TEST(what_they_begin_with_can_be_changed),
	    TEST(hostile_tickets_do_no_harm),
	    TEST(the_socket_hands_one_to_who_knows_the_cookie),
	    TEST(who_says_nothing_at_the_socket_keeps_nobody_out),
	    TEST(who_leaves_the_socket_too_early_is_counted),
	    TEST(everything_is_given_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
