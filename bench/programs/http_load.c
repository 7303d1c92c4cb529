/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_load PORT PATH CONNECTIONS SECONDS [REQUESTS]: a thread per connection asks for PATH of 127.0.0.1,
 * again and again, and connects anew after REQUESTS (0: never). Prints answers, errors, and the longest wait
 * in ms. An error is whatever is not a whole answer with status 200: a connection refused, closed or reset,
 * an answer cut short.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 64 };

static struct sockaddr_in address;
static const char *path;
static int each;
static double end_s, longest_s[CONNECTIONS];
static atomic_long answers, errors;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The value of a header line, or -1. */
static long header(const char *head, const char *name)
{
	const char *at = strcasestr(head, name);

	return at ? atol(at + strlen(name)) : -1;
}

/* One whole answer; false: it is none. */
static int ask(int fd)
{
	char request[256], answer[65536];
	int length = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
	size_t got = 0, wanted = sizeof(answer);

	if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
		return 0;
	while (got < wanted) {
		ssize_t more = recv(fd, answer + got, sizeof(answer) - 1 - got, 0);

		if (more <= 0)
			return 0;
		answer[got += (size_t)more] = '\0';
		const char *body = strstr(answer, "\r\n\r\n");
		long bytes = header(answer, "Content-Length:");
		if (body && bytes < 0)
			return 0;
		if (body)
			wanted = (size_t)(body - answer) + 4 + (size_t)bytes;
	}
	return got == wanted && strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
}

static int open_connection(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void *load(void *argument)
{
	long number = (long)argument;
	int fd = -1, left = 0;

	while (now_s() < end_s) {
		double began_s = now_s();

		if (fd < 0) {
			fd = open_connection();
			left = each;
		}
		int good = fd >= 0 && ask(fd);
		double took_s = now_s() - began_s;
		longest_s[number] = took_s > longest_s[number] ? took_s : longest_s[number];
		atomic_fetch_add(good ? &answers : &errors, 1);
		if (fd >= 0 && (!good || --left == 0)) {
			close(fd);
			fd = -1;
		}
	}
	return NULL;
}

int main(int argc, char *argv[])
{
	pthread_t threads[CONNECTIONS];
	double longest = 0, began_s = now_s();
	long count = argc > 4 ? atol(argv[3]) : 0;

	if (count < 1 || count > CONNECTIONS)
		return 2;
	address = (struct sockaddr_in){.sin_family = AF_INET,
	    .sin_addr = {htonl(INADDR_LOOPBACK)},
	    .sin_port = htons((uint16_t)atoi(argv[1]))};
	path = argv[2];
	each = argc > 5 ? atoi(argv[5]) : 0;
	end_s = began_s + atof(argv[4]);
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, load, (void *)i);
	for (long i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		longest = longest_s[i] > longest ? longest_s[i] : longest;
	}
	printf("%.1f per second, %ld errors, longest %.1f ms\n", (double)answers / (now_s() - began_s),
	    (long)errors, longest * 1e3);
	return errors != 0;
}
