/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak_server SOCKET: a small server with a small leak, for those who look for it with the manual page alone.
 *
 * A client sends lines "get KEY" and gets a line for each; the answers come from a cache that fills and then
 * stays. Of every request 64 bytes are remembered for a statistic that nobody reads. SIGTERM ends it in good
 * order.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CACHE_SLOTS = 1024, LINE_BYTES = 256 };

struct visit {
	struct visit *next;
	char key[56];
};

static char *cache[CACHE_SLOTS];
static struct visit *visits;
static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = signal;
}

__attribute__((noinline)) static void note_visit(const char *key)
{
	struct visit *visit = malloc(sizeof(*visit));

	visit->next = visits;
	strncpy(visit->key, key, sizeof(visit->key) - 1);
	visit->key[sizeof(visit->key) - 1] = '\0';
	visits = visit;
}

__attribute__((noinline)) static const char *cache_look_up(const char *key)
{
	unsigned int slot = 0;

	for (const char *at = key; *at; at++)
		slot = slot * 31 + (unsigned char)*at;
	slot %= CACHE_SLOTS;
	if (!cache[slot]) {
		cache[slot] = malloc(2000);
		snprintf(cache[slot], 2000, "value of slot %u", slot);
	}
	return cache[slot];
}

__attribute__((noinline)) static char *parse_request(const char *line)
{
	return strncmp(line, "get ", 4) == 0 ? strdup(line + 4) : NULL;
}

__attribute__((noinline)) static void handle_request(FILE *client, char *line)
{
	char *key;

	line[strcspn(line, "\r\n")] = '\0';
	key = parse_request(line);
	if (key) {
		note_visit(key);
		fprintf(client, "%s\n", cache_look_up(key));
	} else {
		fputs("?\n", client);
	}
	free(key);
}

static void serve(int fd)
{
	FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
	char line[LINE_BYTES];

	setvbuf(out, NULL, _IOLBF, 0);
	while (!stopped && fgets(line, sizeof(line), in))
		handle_request(out, line);
	fclose(in);
	fclose(out);
}

int main(int argc, char *argv[])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct sigaction action = {.sa_handler = stop};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (argc != 2)
		return 2;
	strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8)) {
		perror(argv[1]);
		return 1;
	}
	while (!stopped) {
		int client = accept(listener, NULL, NULL);

		if (client >= 0)
			serve(client);
		else if (errno != EINTR)
			return 1;
	}
	unlink(argv[1]);
	return 0;
}
