/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a process' books take: what counts, and whose it is. Who the process is: process.c. */
#include "sampler/books/offerer.h"
#include "sampler/books/process.h"
#include "sampler/books/program_run.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/intake/target_plan.h"
#include "tests/unit/process_scene.h"
#include "tests/unit/stranger.h"

enum { HOSTILE_RANGES = 4000 };

/* As many executable mappings as it likes. */
static void map_many(int fd, void *unused)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char byte = 0;

	(void)unused;
	unsigned char *all = mmap(
	    NULL, 2 * HOSTILE_RANGES * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	byte = all == MAP_FAILED;
	for (size_t i = 0; !byte && i < HOSTILE_RANGES; i++)
		byte = (char)mprotect(all + 2 * i * page, page, PROT_READ | PROT_EXEC);
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* They are weighed, and what there is no room for is left out: also of whoever is only known to have offered
 * a region, and of children that have ended. */
static void mappings_count_against_the_bound(void **state)
{
	struct scene *s = *state;
	struct memory_bound memory = {0};
	char byte;
	struct stranger stranger = stranger_start(map_many, NULL);

	assert_int_equal(read(stranger.fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	struct offerer *offerer = offerer_read(stranger.pid, 0, s->store, &memory);
	assert_non_null(offerer);
	assert_true(maps_count(offerer->target.maps) > HOSTILE_RANGES); /* no bound */
	const uint64_t all_bytes = memory.held_bytes;
	assert_in_range(all_bytes, HOSTILE_RANGES * sizeof(struct map), UINT64_MAX);
	offerer_free(offerer);
	assert_int_equal(memory.held_bytes, 0);
	memory.max_bytes = all_bytes;
	s->run->memory = &memory;
	offerer = offerer_read(stranger.pid, 0, s->store, &memory);
	assert_non_null(offerer);
	/* a table that doubles has half of its room to spare */
	assert_in_range(memory.held_bytes, all_bytes / 4, all_bytes * 3 / 4);
	uint64_t in_maps = maps_bytes(offerer->target.maps);
	for (uint32_t i = 0; i < 8; i++) {
		struct process *process = claim(s, i, stranger.pid, i ? 1 : 0);

		assert_non_null(process);
		assert_non_null(maps_find(process->target.maps, (uintptr_t)some_code));
		in_maps += maps_bytes(process->target.maps);
		assert_true(memory.held_bytes >= in_maps);
	}
	assert_in_range(in_maps, 1, all_bytes * 3); /* not nine times */
	offerer_free(offerer);
	for (uint32_t i = 8; i-- > 0;)
		program_run_free_process(s->run->places.at[i]);
	assert_int_equal(memory.held_bytes, 0);
	s->run->memory = NULL;
	stranger_end(&stranger);
}

/* ---- whose memory it takes */

static void become_another(int fd, void *argument)
{
	const uid_t *user = argument;
	char byte = (char)setresuid(*user, *user, *user);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static void memory_is_the_users_or_as_the_plan_says(void **state)
{
	struct scene *s = *state;
	uid_t user = geteuid() == 0 ? 4242 : geteuid();
	char byte;
	struct stranger stranger = stranger_start(become_another, &user);

	assert_int_equal(read(stranger.fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	const struct process *process = claim(s, 0, stranger.pid, 0), *child = claim(s, 3, 0, 1);
	assert_int_equal(process->share.account, target_account_of_user(user));
	assert_int_equal(child->share.account, process->share.account);
	struct target_plan plan = {.account = "unit-a.service"};
	s->run->plan = &plan;
	process = claim_again(s, stranger.pid);
	s->run->plan = NULL;
	assert_int_equal(process->share.account, target_account(&process->target));
	assert_int_not_equal(process->share.account, target_account_of_user(user));
	/* likewise before it has taken a place */
	for (uint64_t account = 0; account <= 5; account += 5) {
		struct offerer *offerer = offerer_read(stranger.pid, account, s->store, NULL);

		assert_non_null(offerer);
		assert_int_equal(offerer->share.account, account ? account : target_account_of_user(user));
		offerer_free(offerer);
	}
	stranger_end(&stranger);
}

/* Its user is known to nobody, but whose memory it took before it ended is, or whose its parent's is. */
static void memory_of_one_that_was_reaped(void **state)
{
	struct scene *s = *state;
	uid_t user = geteuid() == 0 ? 4242 : geteuid();
	char byte;
	struct stranger stranger = stranger_start(become_another, &user);

	assert_int_equal(read(stranger.fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	const pid_t gone = fork();
	if (gone == 0) {
		pause();
		_exit(0);
	}
	s->run->offerer = offerer_read(gone, 0, s->store, NULL);
	assert_non_null(s->run->offerer);
	const int pidfd = fcntl(s->run->offerer->target.pidfd, F_DUPFD_CLOEXEC, 0);
	kill(gone, SIGKILL);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	const struct process *found = claim_again(s, gone);
	assert_true(found->target.pidfd >= 0);
	assert_int_equal(found->share.account, target_account_of_user(getuid()));
	const struct process *parent = claim_again(s, stranger.pid);
	struct process *child = claim(s, 3, 0, 1);
	child->target.pid = gone;
	child->target.pidfd = pidfd;
	child->share.account = 0;
	process_find_account(child);
	assert_int_equal(parent->share.account, target_account_of_user(user));
	assert_int_equal(child->share.account, parent->share.account);
	child->target.pid = 0;
	stranger_end(&stranger);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(mappings_count_against_the_bound),
	    TEST(memory_is_the_users_or_as_the_plan_says),
	    TEST(memory_of_one_that_was_reaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
