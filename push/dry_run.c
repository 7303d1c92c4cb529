/* SPDX-License-Identifier: Apache-2.0 */
#include "push/dry_run.h"

#include "pprof/text/utf8.h"
#include "push/delivery.h"
#include "push/target.h"

#include <stdio.h>
#include <string.h>

/* Valid UTF-8, unsafe characters as '?'. */
static void put(const char *text)
{
	while (*text)
		text = utf8_put(stdout, text, '?');
}

static void put_label(const char *name, const char *value)
{
	printf(" %s=", name);
	put(value);
}

void dry_run_print(const struct target *target, const char *path, const struct delivery *delivery)
{
	bool pyroscope = target->url.protocol == URL_PYROSCOPE;
	char cuts[512], name[4096];
	size_t bytes = 0, packed = 0;

	snprintf(name, sizeof(name), "%s", path);
	utf8_disarm(name, strlen(name));
	printf("%s\n  to      %s %s\n  labels ", name, url_protocol_title(target->url.protocol),
	    target->url.address);
	put_label("__name__", delivery->series);
	for (size_t i = 0; i < delivery->labels.count; i++)
		put_label(delivery->labels.rows[i].name, delivery->labels.rows[i].value);
	if (pyroscope)
		fputs(" __delta__=false pyroscope_spy=heaptap", stdout);
	if (*delivery->session)
		put_label("__session_id__", delivery->session);
	for (size_t i = 0; i < delivery->part_count; i++) {
		bytes += delivery->parts[i].profile_bytes;
		packed += delivery->parts[i].packed_bytes;
	}
	printf(
	    "\n  size    %zu bytes, %zu compressed, %zu stacks\n", bytes, packed, delivery->folded.samples);
	if (delivery->end_ns > delivery->start_ns)
		printf(
		    "  window  alloc_* of %.3f s\n", (double)(delivery->end_ns - delivery->start_ns) / 1e9);
	delivery_cuts(delivery, cuts, sizeof(cuts));
	printf("  cut     %s\n", *cuts ? cuts + 2 : "nothing");
}
