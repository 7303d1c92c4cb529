/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/export/flamegraph.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/text/json.h"
#include "pprof/analysis/tree.h"
#include "pprof/text/utf8.h"

/* The page as a NUL-terminated string. The Makefile has a rule that this object depends on the file. */
__asm__(".pushsection .rodata\n"
        "flamegraph_page:\n"
        ".incbin \"pprof/export/flamegraph.html\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char flamegraph_page[] __attribute__((visibility("hidden")));

static void write_numbers(struct json *json, const char *key, const struct tree *tree, bool parents)
{
	json_array(json, key);
	for (uint32_t i = 0; i < tree->count; i++) {
		uint32_t number = parents ? tree->nodes[i].parent : tree->nodes[i].frame;

		json_integer(json, NULL, number == TREE_NONE ? -1 : (int64_t)number);
	}
	json_end(json);
}

static void write_kinds(struct json *json, const struct traces *t, const struct tree *tree,
    const enum measure_kind *kinds, size_t kind_count, const int64_t *values)
{
	json_array(json, "kinds");
	for (size_t k = 0; k < kind_count; k++) {
		json_object(json, NULL);
		json_text(json, "name",
		    kinds[k] == MEASURE_OTHER ? t->types[t->kinds[MEASURE_OTHER]]
		                              : traces_kind_word(kinds[k]));
		json_text(json, "unit", traces_unit(t, kinds[k]));
		json_array(json, "self");
		for (uint32_t i = 0; i < tree->count; i++)
			json_integer(json, NULL, values[(size_t)i * kind_count + k]);
		json_end(json);
		json_end(json);
	}
	json_end(json);
}

static void write_data(FILE *out, const struct traces *t, const struct tree *tree,
    const enum measure_kind *kinds, size_t kind_count, const int64_t *values)
{
	struct json json = {.out = out};

	json_object(&json, NULL);
	json_array(&json, "names");
	for (uint32_t i = 0; i < t->frames.count; i++)
		json_text(&json, NULL, t->frames.rows[i].name);
	json_end(&json);
	/* Only where it differs; the page takes the name otherwise. */
	json_array(&json, "labels");
	for (uint32_t i = 0; i < t->frames.count; i++)
		json_text(&json, NULL,
		    t->frames.rows[i].label == t->frames.rows[i].name ? "" : t->frames.rows[i].label);
	json_end(&json);
	json_array(&json, "places");
	for (uint32_t i = 0; i < t->frames.count; i++)
		json_text(
		    &json, NULL, *t->frames.rows[i].file ? t->frames.rows[i].file : t->frames.rows[i].module);
	json_end(&json);
	write_numbers(&json, "frame", tree, false);
	write_numbers(&json, "parent", tree, true);
	write_kinds(&json, t, tree, kinds, kind_count, values);
	json_end(&json);
}

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

/* Writes the page up to a mark, "@TITLE@", and returns what follows the mark. */
static const char *write_until(FILE *out, const char *page, const char *mark)
{
	const char *at = strstr(page, mark);

	fwrite(page, 1, (size_t)(at - page), out);
	return at + strlen(mark);
}

int flamegraph_write(FILE *out, const struct traces *t, const struct export_choice *choice)
{
	const size_t column = choice->column;
	const enum measure_kind shown = choice->kind;
	enum measure_kind kinds[MEASURE_COUNT];
	size_t kind_count = 0;
	struct tree tree;
	int64_t *values;
	int err;

	kinds[kind_count++] = shown;
	for (int kind = 0; kind < MEASURE_COUNT; kind++)
		if (traces_has(t, (enum measure_kind)kind) && kind != (int)shown)
			kinds[kind_count++] = (enum measure_kind)kind;
	err = tree_make_many(&tree, t, column, kinds, kind_count, &values);
	if (!err) {
		const char *page = write_until(out, flamegraph_page, "@TITLE@");

		write_html(out, choice->title);
		page = write_until(out, page, "@DATA@");
		write_data(out, t, &tree, kinds, kind_count, values);
		fputs(page, out);
	}
	free(values);
	tree_fini(&tree);
	return err;
}
