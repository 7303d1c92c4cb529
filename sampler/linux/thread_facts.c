/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/thread_facts.h"

#include "sampler/linux/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct thread_facts thread_facts_read(pid_t tid)
{
	char line[256], state = 0;
	struct thread_facts facts = {0};
	FILE *status = proc_open_text(tid, "status");
	if (!status) {
		facts.unread = proc_is_shortage(errno);
		return facts;
	}
	while (fgets(line, sizeof(line), status)) {
		const char *last = strrchr(line, '\t');
		unsigned int uid[4];
		if (strncmp(line, "NSpid:", 6) == 0 && last)
			facts.inner = atoi(last + 1);
		else if (sscanf(line, "Uid: %u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) == 4)
			facts.like_us =
			    uid[0] == geteuid() && uid[1] == uid[0] && uid[2] == uid[0] && uid[3] == uid[0];
		else if (sscanf(line, "Tgid: %d", &facts.pid) != 1 &&
		    sscanf(line, "PPid: %d", &facts.parent) != 1)
			(void)sscanf(line, "State: %c", &state);
	}
	fclose(status);
	if (state == 'Z' || state == 'X')
		facts.pid = 0;
	return facts;
}

struct thread_birth thread_facts_birth(pid_t pid)
{
	char line[1024] = "";
	struct thread_birth birth = {0};
	FILE *stat = proc_open_text(pid, "stat");
	if (!stat)
		return birth;
	/* the name may contain any characters */
	const char *after = fgets(line, sizeof(line), stat) ? strrchr(line, ')') : NULL;
	if (!after ||
	    sscanf(after + 1,
	        " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64
	        " %*s %*s %*s %*s %*s %" SCNu64,
	        &birth.ticks, &birth.stack_start) < 1)
		birth = (struct thread_birth){0};
	fclose(stat);
	return birth;
}

uint64_t thread_facts_now(void)
{
	struct timespec up = {0};
	uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return (uint64_t)up.tv_sec * hertz + (uint64_t)up.tv_nsec * hertz / 1000000000;
}
