/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/clock.h"

#include <time.h>

uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
}

int64_t clock_unix_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

uint64_t clock_thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t clock_process_cpu_ns(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return 0;
	return (uint64_t)used.tv_sec * CLOCK_NS_PER_S + (uint64_t)used.tv_nsec;
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
const char *clock_text(int64_t unix_ns, const char *format, char *text, size_t text_bytes)
{
	time_t seconds = (time_t)(unix_ns / CLOCK_NS_PER_S);
	struct tm tm;

	if (unix_ns <= 0 || !localtime_r(&seconds, &tm) || !strftime(text, text_bytes, format, &tm))
		text[0] = '\0';
	return text;
}
