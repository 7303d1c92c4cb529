/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of docs/finding-a-leak.md: a shop that forgets to give something back.
 *
 *     shop SOCKET         serves on a Unix socket, until SIGINT or SIGTERM
 *     shop SOCKET N       N visitors, one after the other: each logs in, puts things into a cart and logs out
 *
 * A request is a line: "login NAME", "put THING", "logout". Each is answered by a line.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { THINGS = 500, CART_BYTES = 4096, PICTURE_BYTES = 2000, LINE_BYTES = 128, PUTS = 8 };

struct session {
	char name[64];
	char *cart; /* the things in it, a line each */
};

/* What the shop sells. A picture is loaded when a visitor asks for it, and kept. */
static char *pictures[THINGS];

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = signal;
}

static const char *find_picture(int thing)
{
	if (!pictures[thing]) {
		pictures[thing] = malloc(PICTURE_BYTES);
		memset(pictures[thing], '#', PICTURE_BYTES);
	}
	return pictures[thing];
}

static struct session *log_in(const char *name)
{
	struct session *session = malloc(sizeof(*session));

	snprintf(session->name, sizeof(session->name), "%.63s", name);
	session->cart = malloc(CART_BYTES);
	session->cart[0] = '\0';
	return session;
}

static void log_out(struct session *session)
{
	free(session);
}

static void put(struct session *session, int thing)
{
	size_t used = strlen(session->cart);

	snprintf(session->cart + used, CART_BYTES - used, "thing %d %.8s\n", thing, find_picture(thing));
}

static struct session *handle(struct session *session, const char *line)
{
	if (strncmp(line, "login ", 6) == 0 && !session)
		return log_in(line + 6);
	if (strncmp(line, "put ", 4) == 0 && session)
		put(session, abs(atoi(line + 4)) % THINGS);
	if (strncmp(line, "logout", 6) == 0 && session) {
		log_out(session);
		return NULL;
	}
	return session;
}

static void serve(FILE *client)
{
	struct session *session = NULL;
	char line[LINE_BYTES];

	while (!stopped && fgets(line, sizeof(line), client)) {
		session = handle(session, line);
		fputs("ok\n", client);
	}
	if (session)
		log_out(session);
	fclose(client);
}

static int serve_all(int listener)
{
	while (!stopped) {
		int client = accept(listener, NULL, NULL);

		if (client >= 0)
			serve(fdopen(client, "r+"));
		else if (errno != EINTR)
			return 1;
	}
	return 0;
}

static void ask(FILE *server, const char *line)
{
	char answer[LINE_BYTES];

	if (fputs(line, server) < 0 || !fgets(answer, sizeof(answer), server))
		exit(1);
}

static int visit(FILE *server, int visitors)
{
	char line[LINE_BYTES];

	for (int i = 0; i < visitors; i++) {
		snprintf(line, sizeof(line), "login visitor-%d\n", i);
		ask(server, line);
		for (int thing = 0; thing < PUTS; thing++) {
			snprintf(line, sizeof(line), "put %d\n", i * PUTS + thing);
			ask(server, line);
		}
		ask(server, "logout\n");
		usleep(1000);
	}
	return 0;
}

int main(int argc, char *argv[])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct sigaction action = {.sa_handler = stop};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (argc < 2 || argc > 3)
		return 2;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	if (argc == 3) {
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			return visit(fdopen(fd, "r+"), atoi(argv[2]));
	} else {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		signal(SIGPIPE, SIG_IGN);
		unlink(address.sun_path);
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0)
			return serve_all(fd);
	}
	perror(argv[1]);
	return 1;
}
