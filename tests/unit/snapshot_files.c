/* SPDX-License-Identifier: Apache-2.0 */
/* What the snapshots of a process leave on disk: in a store where time passes, and where a write fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/codec/decode.h"
#include "pprof/codec/file.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/profile.h"
#include "pprof/store/store.h"
#include "sampler/books/program_run.h"
#include "sampler/write/heap_source.h"

#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/region_fixture.h"

#define SECOND_NS UINT64_C(1000000000)
enum { DAY_S = 24 * 3600, DAYS = 7, KEEP = 2, FILES_AT_ONCE = 16 };

/* A process with one block, of which snapshots are taken once a second. */
struct scene {
	struct sink sink; /* first: writes as `below` does, but what is to fail */
	const struct sink *below;
	struct sink_files files;
	char *fails; /* shared with the writer's children: pattern of paths that cannot be written */
	struct memory_bound memory;
	struct intake intake;
	struct probe probe;
	struct registry registry;
	struct heap_source source;
	struct snapshot_settings settings;
	struct output output;
	struct modules *modules;
	struct program_run *run;
	struct process process;
	struct store *store;
	int64_t now_s; /* the time in the store's names */
	uint64_t turn;
	char folder[64];
};

static int publish(const struct sink *sink, const char *path, const void *data, size_t bytes)
{
	const struct scene *s = (const struct scene *)(const void *)sink;

	if (fnmatch(s->fails, path, 0) == 0)
		return -ENOSPC;
	return s->below->publish(s->below, path, data, bytes);
}

static void describe(void *context, uint64_t period_bytes, char *text, size_t text_bytes)
{
	(void)context, (void)period_bytes;
	snprintf(text, text_bytes, "a session");
}

static int claim(void *context, const struct target *target, const char *name, char *path, size_t path_bytes)
{
	const struct scene *s = context;
	const struct store_claim wish = {
	    .service = "app", .snapshot = name, .pid = target->pid, .time_s = s->now_s};

	return store_claim(s->store, &wish, path, path_bytes);
}

static void answer(void *context, uint64_t asker, pid_t pid, const char *path, int error)
{
	(void)context, (void)asker, (void)pid, (void)path, (void)error;
}

static void open_process(struct scene *s)
{
	struct region *region = malloc(sizeof(*region));

	fixture_open(region, REGION_SEGMENT_SLOTS);
	fixture_own(region, 0, 0);
	s->modules = modules_new(4);
	s->run = program_run_new(region, 1);
	s->run->life.state = RUN_READY;
	s->intake = (struct intake){.books.memory = &s->memory};
	assert_int_equal(books_add_run(&s->intake.books, s->run), 0);
	s->probe.backend = BACKEND_COPY;
	s->registry = (struct registry){.setup = {.intake = &s->intake, .probe = &s->probe, .verbosity = -1}};
	registry_init(&s->registry);
	s->process.run = s->run;
	assert_true(target_init(&s->process.target, getpid(), 0));
	s->process.target.maps = maps_new(s->modules, 0, false);
	s->process.heap = heap_new(region, &(const struct heap_options){.temporary_ns = 1, .deltas = true});
	fixture_live(region, 0, &(const struct fixture_block){.seq = 1, .size_bytes = 64, .time_ns = 5});
	fixture_peak(region, 0, 1, 1);
	fixture_count(region, 0, 1, 64);
}

static void open_scheduler(struct scene *s)
{
	s->settings.verbosity = -1;
	s->settings.interval_ns = SECOND_NS;
	s->settings.sink = &s->sink;
	const struct scheduler_setup setup = {.settings = &s->settings,
	    .output = &s->output,
	    .reserve = s->store ? claim : NULL,
	    .answer = answer,
	    .context = s};
	s->source = (struct heap_source){
	    .base = {.kind = &heap_source_kind, .scheduler = scheduler_new(&setup)},
	    .registry = &s->registry,
	    .describe = describe,
	    .period_bytes = 1,
	};
	assert_non_null(s->source.base.scheduler);
	const struct target_listener listener = scheduler_listener(&s->source.base);
	listener.watched(listener.context, &s->process.target);
}

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	*state = s;
	strcpy(s->folder, "/tmp/heaptap-standing.XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	s->sink.publish = publish;
	sink_files_init(&s->files, &s->output);
	s->below = &s->files.base;
	s->fails = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(s->fails != MAP_FAILED);
	assert_int_equal(output_init(&s->output, s->folder), 0);
	open_process(s);
	return 0;
}

static const struct store_settings *store_settings_of(const struct scene *s)
{
	static struct store_settings settings;

	settings = (struct store_settings){.path = s->folder, .disk_bytes = 1 << 24, .days = DAYS};
	return &settings;
}

static int open_scene_with_store(void **state)
{
	open_scene(state);
	struct scene *s = *state;
	assert_int_equal(store_open(&s->store, store_settings_of(s)), 0);
	s->below = store_sink(s->store);
	open_scheduler(s);
	return 0;
}

static int open_scene_with_files(void **state)
{
	open_scene(state);
	struct scene *s = *state;
	s->settings.keep = KEEP;
	s->settings.delta = true;
	open_scheduler(s);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static int close_scene(void **state)
{
	struct scene *s = *state;

	scheduler_free(s->source.base.scheduler);
	heap_source_fini(&s->source);
	store_close(s->store);
	output_fini(&s->output);
	heap_free(s->process.heap);
	target_fini(&s->process.target);
	books_remove_run(s->run);
	program_run_free(s->run);
	books_fini(&s->intake.books);
	modules_free(s->modules);
	munmap(s->fails, 4096);
	assert_int_equal(nftw(s->folder, remove_one, FILES_AT_ONCE, FTW_DEPTH | FTW_PHYS), 0);
	free(s);
	return 0;
}

/* One more snapshot, written or not. */
static void snapshot(struct scene *s, const char *fails)
{
	int status;

	strcpy(s->fails, fails);
	(void)scheduler_tend(s->source.base.scheduler, ++s->turn * SECOND_NS + 1);
	pid_t pid = waitpid(-1, &status, 0);
	assert_true(pid > 0);
	scheduler_reap(s->source.base.scheduler, pid, status);
}

static const char *wanted;
static int found;
static ino_t found_ino; /* of the last one */

static int find_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	if (flag != FTW_F || fnmatch(wanted, path + ftw->base, 0) != 0)
		return 0;
	found++;
	found_ino = st->st_ino;
	return 0;
}

static int count(const struct scene *s, const char *pattern)
{
	wanted = pattern;
	found = 0;
	assert_int_equal(nftw(s->folder, find_one, FILES_AT_ONCE, FTW_PHYS), 0);
	return found;
}

/* The store looks which of its files must go. */
static void sweep(struct scene *s)
{
	assert_int_equal(store_change(s->store, store_settings_of(s)), 0);
	assert_int_equal(store_thin(s->store), 0);
}

static void a_day_passes(struct scene *s)
{
	s->process.target.series->heap.peak.reserved_ns -= DAY_S * SECOND_NS;
	s->now_s += DAY_S;
}

/* ---- the peak, which is replaced */

/* Also if it does not move any more. */
static void the_peak_of_an_old_process_stays_in_a_store(void **state)
{
	struct scene *s = *state;

	s->now_s = time(NULL) - (int64_t)(DAYS + 2) * DAY_S;
	for (int day = 0; day <= DAYS + 2; day++) {
		snapshot(s, "");
		a_day_passes(s);
	}
	sweep(s);
	assert_int_equal(count(s, "*.peak.pb.gz"), 1);
}

static void within_a_day_the_peak_is_replaced(void **state)
{
	struct scene *s = *state;
	ino_t before = 0;

	s->now_s = time(NULL) - 100;
	for (uint64_t seq = 2; seq <= 4; seq++) {
		snapshot(s, "");
		assert_int_equal(count(s, "*.peak.pb.gz"), 1);
		assert_true(found_ino != before);
		before = found_ino;
		s->now_s++;
		fixture_live(s->run->region, 0,
		    &(const struct fixture_block){.seq = seq, .size_bytes = 64, .time_ns = 5});
		fixture_peak(s->run->region, 0, seq, 1);
	}
	assert_int_equal(count(s, "*.heap.pb.gz"), 3);
}

/* ---- what cannot be written */

static void a_peak_that_was_not_written_is_tried_again(void **state)
{
	struct scene *s = *state;

	snapshot(s, "*peak*");
	assert_int_equal(count(s, "*peak*"), 0);
	snapshot(s, "");
	assert_int_equal(count(s, "*peak*"), 1);
}

/* Half a day after the first it has a new name, under which there is no file yet. */
static void a_new_name_that_was_not_written_is_tried_again(void **state)
{
	struct scene *s = *state;
	const struct peak_file *file = &s->process.target.series->heap.peak;

	s->now_s = time(NULL) - 2 * DAY_S;
	snapshot(s, "");
	assert_int_equal(access(file->path, F_OK), 0);
	a_day_passes(s);
	snapshot(s, "*peak*");
	assert_int_equal(access(file->path, F_OK), -1);
	snapshot(s, "");
	assert_int_equal(access(file->path, F_OK), 0);
}

static void what_is_written_is_removed_although_the_rest_was_not(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < KEEP + 3; i++)
		snapshot(s, i % 2 ? "*delta*" : "*peak*");
	assert_int_equal(count(s, "*000[1-9].pb.gz"), KEEP);
	assert_int_equal(count(s, "*000[45].pb.gz"), KEEP);
	assert_int_equal(count(s, "*-delta*"), 1);
}

/* They are all that there is. */
static void what_was_not_written_pushes_out_nothing(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < KEEP; i++)
		snapshot(s, "");
	for (int i = 0; i < KEEP; i++)
		snapshot(s, "*");
	assert_int_equal(count(s, "*000[12].pb.gz"), KEEP);
}

/* ---- the period, by which readers reckon errors */

static struct profile *profile_of(const struct scene *s, const char *name)
{
	enum { MOST = 1 << 20 };
	struct profile *profile;
	char path[PATH_MAX];
	uint8_t *packed, *raw;
	size_t packed_bytes, raw_bytes;

	snprintf(path, sizeof(path), "%s/heaptap.unknown.%d.%s.pb.gz", s->folder, (int)getpid(), name);
	assert_int_equal(file_read(path, MOST, &packed, &packed_bytes), 0);
	assert_int_equal(gzip_decode(packed, packed_bytes, MOST, &raw, &raw_bytes, NULL), 0);
	assert_int_equal(decode_profile(raw, raw_bytes, MOST, &profile), 0);
	free(packed);
	free(raw);
	return profile;
}

static void assert_period(const struct scene *s, const char *name, uint64_t period_bytes, bool lowered)
{
	static const char start[] = "the period was lowered to ";
	struct profile *profile = profile_of(s, name);
	bool said = false;

	assert_int_equal(profile_period(profile), period_bytes);
	for (size_t i = 0; i < profile_comment_count(profile); i++)
		said |= strncmp(profile_comment(profile, i), start, strlen(start)) == 0;
	assert_int_equal(said, lowered);
	profile_free(profile);
}

/* The daemon lowers it for a service that has become quiet, and raises it under load. */
static void a_period_is_that_of_the_samples(void **state)
{
	enum { LARGE = 14 << 20, SMALL = 16 << 10 };
	struct scene *s = *state;
	const struct heap_sample sample = {.slot = 0,
	    .seq = 1,
	    .stack = stacks_intern(s->process.target.stacks, NULL, 0, STACK_NONE, s->process.target.maps),
	    .size_bytes = 64,
	    .period_bytes = LARGE};

	fixture_slot(s->run->region, 0)->sample.period_bytes = LARGE;
	assert_int_equal(heap_add(s->process.heap, &sample), 0);
	s->run->period.bytes = LARGE;
	snapshot(s, "");
	assert_period(s, "0001", LARGE, false);
	s->run->period.bytes = SMALL;
	snapshot(s, "");
	assert_period(s, "0002", LARGE, true);
	s->run->period.bytes = 2 * LARGE;
	snapshot(s, "");
	assert_period(s, "0003", 2 * LARGE, false);
}

int main(void)
{
#define TEST(name, open) cmocka_unit_test_setup_teardown(name, open, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(the_peak_of_an_old_process_stays_in_a_store, open_scene_with_store),
	    TEST(within_a_day_the_peak_is_replaced, open_scene_with_store),
	    TEST(a_peak_that_was_not_written_is_tried_again, open_scene_with_files),
	    TEST(a_new_name_that_was_not_written_is_tried_again, open_scene_with_store),
	    TEST(what_is_written_is_removed_although_the_rest_was_not, open_scene_with_files),
	    TEST(what_was_not_written_pushes_out_nothing, open_scene_with_files),
	    TEST(a_period_is_that_of_the_samples, open_scene_with_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
