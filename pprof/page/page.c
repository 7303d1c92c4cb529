/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/page/page.h"

#include <stdbool.h>
#include <string.h>

#include "pprof/text/utf8.h"

/* Defines the bytes of a file, with a NUL behind them. The Makefile has a rule that this object depends on
 * the files. */
#define EMBED(symbol, path)                                                      \
	__asm__(".pushsection .rodata\n"                                         \
	        "page_" #symbol ":\n"                                            \
	        ".incbin \"pprof/page/" path "\"\n"                              \
	        ".byte 0\n"                                                      \
	        "page_" #symbol "_end:\n"                                        \
	        ".popsection\n");                                                \
	extern const char page_##symbol[] __attribute__((visibility("hidden"))); \
	extern const char page_##symbol##_end[] __attribute__((visibility("hidden")));

#define HTML   "text/html; charset=utf-8"
#define CSS    "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define SVG    "image/svg+xml"

/* clang-format off */
/* symbol, file, type */
#define FILES(X) \
	X(html, "page.html", HTML) \
	X(icon, "icon.svg", SVG) \
	X(page_css, "page.css", CSS) \
	X(views_css, "views.css", CSS) \
	X(words, "words.js", SCRIPT) \
	X(dom, "dom.js", SCRIPT) \
	X(frames, "frames.js", SCRIPT) \
	X(graph, "graph.js", SCRIPT) \
	X(callers, "callers.js", SCRIPT) \
	X(shape, "shape.js", SCRIPT) \
	X(colour, "colour.js", SCRIPT) \
	X(facts, "facts.js", SCRIPT) \
	X(flame, "flame.js", SCRIPT) \
	X(table, "table.js", SCRIPT) \
	X(functions, "functions.js", SCRIPT) \
	X(outline, "outline.js", SCRIPT) \
	X(stacks, "stacks.js", SCRIPT) \
	X(timeline, "timeline.js", SCRIPT) \
	X(source, "source.js", SCRIPT) \
	X(address, "address.js", SCRIPT) \
	X(empty, "empty.js", SCRIPT) \
	X(list, "list.js", SCRIPT) \
	X(tools, "tools.js", SCRIPT) \
	X(answer, "answer.js", SCRIPT) \
	X(summary, "summary.js", SCRIPT) \
	X(moments, "moments.js", SCRIPT) \
	X(profile, "profile.js", SCRIPT) \
	X(page, "page.js", SCRIPT)

/* clang-format on */
#define FILE_EMBED(symbol, path, type) EMBED(symbol, path)
FILES(FILE_EMBED)

#define FILE_ROW(symbol, path, type) {path, type, page_##symbol, page_##symbol##_end},
static const struct page_file files[] = {FILES(FILE_ROW)};

const struct page_file *page_find(const char *name)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(files[i].name, name) == 0)
			return &files[i];
	return NULL;
}

/* ---- as one file */

static void write_html(FILE *out, const char *text)
{
	while (*text) {
		if (*text != '<' && *text != '&') {
			text = utf8_put(out, text, '?');
			continue;
		}
		fputs(*text++ == '<' ? "&lt;" : "&amp;", out);
	}
}

/* The file that a line of the page refers to: <link ... href="NAME" ...>, <script src="NAME"></script>. */
static const struct page_file *line_file(const char *line, size_t length, const char *before)
{
	const char *at = memmem(line, length, before, strlen(before)), *end;
	char name[64];

	if (!at)
		return NULL;
	at += strlen(before);
	end = memchr(at, '"', length - (size_t)(at - line));
	if (!end || (size_t)(end - at) >= sizeof(name))
		return NULL;
	memcpy(name, at, (size_t)(end - at));
	name[end - at] = '\0';
	return page_find(name);
}

static bool line_is(const char *line, size_t length, const char *text)
{
	return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

static void write_inline(FILE *out, const char *tag, const struct page_file *file)
{
	fprintf(out, "<%s>\n", tag);
	fwrite(file->bytes, 1, page_length(file), out);
	fprintf(out, "</%s>\n", tag);
}

static int write_data(FILE *out, int (*data)(FILE *out, void *context), void *context)
{
	int err;

	fputs("<script id=\"data\" type=\"application/json\">", out);
	err = data(out, context);
	fputs("</script>\n", out);
	return err;
}

int page_write(FILE *out, const char *title, int (*data)(FILE *out, void *context), void *context)
{
	const char *line = page_find("page.html")->bytes, *end;
	int err = 0;

	for (; *line && !err; line = end) {
		const size_t length = strcspn(line, "\n");
		const struct page_file *file = line_file(line, length, "href=\"");

		end = line + length + (line[length] == '\n');
		if (!file)
			file = line_file(line, length, "src=\"");
		if (file && strcmp(file->type, SCRIPT) == 0)
			write_inline(out, "script", file);
		else if (file && strcmp(file->type, CSS) == 0)
			write_inline(out, "style", file);
		else if (line_is(line, length, "<!-- policy -->"))
			fputs("<!-- No request to anywhere: what is in the profile stays in this file. -->\n"
			      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
			      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n",
			    out);
		else if (line_is(line, length, "<!-- data -->"))
			err = write_data(out, data, context);
		else if (line_is(line, length, "<title>")) {
			fputs("<title>", out);
			write_html(out, title);
			fputs("</title>\n", out);
		} else if (!file)
			fwrite(line, 1, (size_t)(end - line), out);
	}
	return err;
}
