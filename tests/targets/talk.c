/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the signals it gets, and tells when asked: prints "ready PID" and then answers lines from stdin:
 *     counts    one line such as "INT=1 QUIT=0 TERM=0 HUP=0 USR1=0 USR2=0 CONT=0"
 *     stop N    N times: stops itself like Ctrl-Z, and once it goes on prints "continued COUNT", of SIGCONTs
 *     exit N    ends with status N
 *     crash     ends by SIGSEGV
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	int number;
	const char *name;
} watched[] = {
    {SIGINT, "INT"},
    {SIGQUIT, "QUIT"},
    {SIGTERM, "TERM"},
    {SIGHUP, "HUP"},
    {SIGUSR1, "USR1"},
    {SIGUSR2, "USR2"},
    {SIGCONT, "CONT"},
};

#define WATCHED (sizeof(watched) / sizeof(watched[0]))

static volatile sig_atomic_t counts[NSIG];

static void on_signal(int number)
{
	counts[number]++;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	char line[128];

	for (size_t i = 0; i < WATCHED; i++)
		sigaction(watched[i].number, &action, NULL);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strncmp(line, "exit", 4) == 0)
			return atoi(line + 4);
		if (strncmp(line, "crash", 5) == 0) {
			signal(SIGSEGV, SIG_DFL);
			raise(SIGSEGV);
		}
		for (int left = strncmp(line, "stop", 4) == 0 ? atoi(line + 4) : 0; left > 0; left--) {
			raise(SIGTSTP);
			printf("continued %d\n", (int)counts[SIGCONT]);
			fflush(stdout);
		}
		if (strncmp(line, "counts", 6) != 0)
			continue;
		for (size_t i = 0; i < WATCHED; i++)
			printf("%s%s=%d", i ? " " : "", watched[i].name, (int)counts[watched[i].number]);
		printf("\n");
		fflush(stdout);
	}
	return 99;
}
