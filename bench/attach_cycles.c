/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_cycles LIBRARY PID CYCLES HOLD_MS: one sampler that attaches to PID and detaches from it, again and
 * again, by the functions with which `heaptap record -P` does it; no profile is written, so that a thousand
 * cycles take minutes. A line each:
 *
 *     cycle  status (0: attached and detached)  ms  attach: ms stood still, looks  detach: ms, looks
 *     resident KiB  mappings  of these ours
 *
 * and, where one failed, why, on standard error. Status 1 if PID has ended.
 */
#include "pprof/text/clock.h"
#include "sampler/inject/attachment.h"
#include "sampler/inject/holder.h"
#include "sampler/inject/library_copy.h"
#include "sampler/linux/proc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* False: it has ended. */
static bool say_memory(pid_t pid)
{
	char status[8192], *line = NULL;
	size_t room = 0, count = 0, ours = 0;
	FILE *maps = proc_open_text(pid, "maps");

	while (maps && getline(&line, &room, maps) > 0) {
		count++;
		ours += strstr(line, "heaptap") || strstr(line, "/dev/zero");
	}
	if (maps)
		fclose(maps);
	free(line);
	if (proc_read(pid, "status", status, sizeof(status)) <= 0)
		return false;
	printf(" %llu %zu %zu\n", proc_status_number(status, "\nVmRSS:", 10, 0), count, ours);
	return count > 0;
}

static void cycle(struct attachment_wish wish, int number, long hold_ms)
{
	const struct region_options options = {.period_bytes = 512 << 10,
	    .dump_bytes = 32 << 10,
	    .clock_id = region_clock(),
	    .live_max = 1 << 16,
	    .mode = REGION_MODE_COPY};
	struct attachment first = {0}, last = {0};
	struct region region;
	uint64_t began_ns = clock_now_ns();
	int error = region_open(&region, (uint32_t)number & 0xff, (uint64_t)(number + 1) << 32, &options);

	if (!error) {
		region_prefault(&region);
		wish.region = &region;
		error = attachment_begin(&first, &wish);
		sleep_ms(hold_ms);
		atomic_store(&region_header(&region)->mode, REGION_MODE_OFF);
		if (!error)
			error = attachment_end(&last, &wish);
		region_close(&region);
	}
	if (error)
		fprintf(stderr, "%d: %s%s: %s\n", number, first.reason, last.reason, strerror(-error));
	printf("%d %d %" PRIu64 " ", number, error ? 1 : 0, (clock_now_ns() - began_ns) / 1000000);
	printf(first.tries ? "%.2f %u " : "- - ", (double)first.stood_ns / 1e6, first.tries);
	printf(last.tries ? "%.2f %u" : "- -", (double)last.stood_ns / 1e6, last.tries);
}

int main(int argc, char *argv[])
{
	if (argc > 1 && strcmp(argv[1], HOLDER_COMMAND) == 0)
		return holder_main(argc - 2, argv + 2);
	struct library_copy library_copy = {.fd = -1};
	struct attachment_wish wish = {
	    .modules = modules_new(0), .cancel_fd = -1, .library_copy = &library_copy};
	if (argc != 5 || library_copy_open(&library_copy, argv[1]) != 0 || !wish.modules)
		return 2;
	wish.pid = atoi(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i <= atoi(argv[3]); i++) {
		cycle(wish, i, atol(argv[4]));
		if (!say_memory(wish.pid))
			return 1;
	}
	modules_free(wish.modules);
	return 0;
}
