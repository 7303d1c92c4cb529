/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/screen.h"

#include "pprof/codec/file.h"
#include "pprof/table/array.h"
#include "pprof/text/log_line.h"
#include "pprof/text/short_name.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM_LEAST = 16, NARROW_COLUMNS = 100, NAME_BYTES = 4096, PAGER_MISSING = 127 };

int screen_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	long width = columns ? strtol(columns, NULL, 10) : 0;

	if (width > 0 && width < 10000)
		return (int)width;
	if (!isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* As setlocale(3) chooses, without its files. */
static bool is_utf8_locale(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *value = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && (!value || !*value); i++)
		value = getenv(names[i]);
	return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

/* As open_memstream(3), with a limit: a hostile profile of 1 MB may have a name of 100 KB in every row. */
static ssize_t collect(void *cookie, const char *text, size_t bytes)
{
	struct screen *screen = cookie;

	if (bytes > screen->max_bytes - screen->text_bytes) {
		errno = EFBIG;
		return 0;
	}
	if (array_reserve(&screen->text, &screen->text_capacity, screen->text_bytes + bytes + 1, 1)) {
		errno = ENOMEM;
		return 0;
	}
	memcpy(screen->text + screen->text_bytes, text, bytes);
	screen->text_bytes += bytes;
	return (ssize_t)bytes;
}

int screen_open(struct screen *screen, const char *path, bool pages, size_t max_bytes)
{
	bool terminal = !path && isatty(STDOUT_FILENO);
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	memset(screen, 0, sizeof(*screen));
	screen->path = path;
	screen->width = screen_width(path ? -1 : STDOUT_FILENO);
	screen->pages = terminal && pages;
	screen->colours = terminal && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
	screen->is_ascii = !is_utf8_locale();
	screen->max_bytes = max_bytes;
	screen->out = fopencookie(screen, "w", (cookie_io_functions_t){.write = collect});
	if (screen->out)
		return 0;
	log_line("not enough memory");
	return -ENOMEM;
}

/* ---- writing */

static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static const char *pager_name(void)
{
	const char *pager = getenv("HEAPTAP_PAGER");

	if (!pager)
		pager = getenv("PAGER");
	if (!pager)
		pager = "less";
	return *pager && strcmp(pager, "cat") != 0 ? pager : NULL;
}

static void pager_exec(const char *pager, const int channel[2])
{
	dup2(channel[0], STDIN_FILENO);
	close(channel[0]);
	close(channel[1]);
	/* as git does: no pager if it fits the screen, colours passed on, text left on the screen */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (strpbrk(pager, " \t|&;<>()$`\\\"'*?[#~=%"))
		execlp("sh", "sh", "-c", pager, (char *)NULL);
	else
		execlp(pager, pager, (char *)NULL);
	_exit(PAGER_MISSING);
}

/* True if the pager has shown it. Ctrl-C belongs to the pager while it runs. */
static bool pager_run(const char *pager, const char *text, size_t bytes)
{
	void (*interrupt)(int) = signal(SIGINT, SIG_IGN);
	void (*broken)(int) = signal(SIGPIPE, SIG_IGN);
	int channel[2], status = PAGER_MISSING << 8;
	pid_t pid = pipe(channel) == 0 ? fork() : -1;

	if (pid == 0)
		pager_exec(pager, channel);
	if (pid > 0) {
		close(channel[0]);
		write_all(channel[1], text, bytes);
		close(channel[1]);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	signal(SIGINT, interrupt);
	signal(SIGPIPE, broken);
	return !(WIFEXITED(status) && WEXITSTATUS(status) == PAGER_MISSING);
}

int screen_close(struct screen *screen, int status)
{
	const char *pager = screen->pages ? pager_name() : NULL;
	int err = 0;

	bool failed = ferror(screen->out) != 0;

	if (fclose(screen->out) != 0 || failed) {
		log_line("the output takes more memory than --max-memory allows: not printed");
		free(screen->text);
		return 1;
	}
	if (status == 1)
		err = 0;
	else if (screen->path)
		err = file_publish(screen->path, screen->text, screen->text_bytes, 0666, FILE_FOLLOW);
	else if (!pager || !pager_run(pager, screen->text, screen->text_bytes))
		err = write_all(STDOUT_FILENO, screen->text, screen->text_bytes);
	if (err)
		log_line(
		    "cannot write %s: %s", screen->path ? screen->path : "standard output", strerror(-err));
	free(screen->text);
	return err ? 1 : status;
}

/* ---- text */

const char *screen_style(const struct screen *screen, enum screen_style style)
{
	static const char *const sequences[] = {
	    [SCREEN_PLAIN] = "\033[m",
	    [SCREEN_HEAD] = "\033[1m",
	    [SCREEN_DIM] = "\033[2m",
	    [SCREEN_MORE] = "\033[31m",
	    [SCREEN_LESS] = "\033[32m",
	};

	return screen->colours ? sequences[style] : "";
}

/* In valid UTF-8 every byte except a continuation byte begins a character. */
static bool is_start(unsigned char byte)
{
	return (byte & 0xc0) != 0x80;
}

static size_t columns_of(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += is_start((unsigned char)*text);
	return columns;
}

int screen_columns(const char *text)
{
	size_t columns = columns_of(text);

	return columns < INT_MAX ? (int)columns : INT_MAX;
}

int screen_text(const struct screen *screen, const char *text, int room)
{
	size_t columns, at = 0, head, tail;

	if (ferror(screen->out)) /* over the limit: print nothing more */
		return 0;
	columns = columns_of(text);
	if (room <= 0 || columns <= (size_t)room) {
		int taken = screen_columns(text);

		while (*text)
			text = utf8_put(screen->out, text, '?');
		return taken;
	}
	head = (size_t)(room - 2) / 2;
	tail = (size_t)(room - 2) - head;
	for (; *text; at++) {
		if (at == head)
			fputs("..", screen->out);
		if (at < head || at >= columns - tail) {
			text = utf8_put(screen->out, text, '?');
			continue;
		}
		do
			text++;
		while (*text && !is_start((unsigned char)*text));
	}
	return room;
}

int screen_name(const struct screen *screen, const char *name, int room)
{
	const size_t columns = columns_of(name);
	char text[NAME_BYTES];

	if (room <= 0 || columns <= (size_t)room)
		return screen_text(screen, name, 0);
	short_name_fit(name, (size_t)room, screen->is_ascii ? "..." : "\xe2\x80\xa6", text, sizeof(text));
	return screen_text(screen, text, 0);
}

void screen_lines(const struct screen *screen, int indent, const char *text)
{
	screen_hanging(screen, "", indent, text);
}

void screen_hanging(const struct screen *screen, const char *label, int indent, const char *text)
{
	int at = 0;

	while (*text) {
		size_t length = strcspn(text, " ");
		char *word = strndup(text, length);
		int columns = word ? (int)columns_of(word) : 0;

		if (at && screen->width && at + 1 + columns > screen->width) {
			putc('\n', screen->out);
			at = 0;
		}
		fprintf(screen->out, "%-*s", at ? 1 : indent, at ? "" : label);
		label = "";
		at += (at ? 1 : indent) + columns;
		screen_text(screen, word ? word : "", 0);
		free(word);
		text += length;
		text += strspn(text, " ");
	}
	putc('\n', screen->out);
}

bool screen_is_narrow(const struct screen *screen)
{
	return screen->width && screen->width < NARROW_COLUMNS;
}

int screen_room(const struct screen *screen, int used)
{
	if (!screen->width)
		return 0;
	return screen->width - used > ROOM_LEAST ? screen->width - used : ROOM_LEAST;
}
