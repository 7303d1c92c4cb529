/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/children.h"

#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/linux/proc.h"

#include <stdio.h>
#include <string.h>

enum { GROUP_BYTES = 8 << 10 };

/* Is the process in the control group of root? True also if that cannot be read. */
static bool is_in_group_of(pid_t pid, pid_t root)
{
	char own[GROUP_BYTES], other[GROUP_BYTES];

	return proc_read(pid, "cgroup", own, sizeof(own)) <= 0 ||
	    proc_read(root, "cgroup", other, sizeof(other)) <= 0 || strcmp(own, other) == 0;
}

static bool see(struct children *c, pid_t pid)
{
	for (size_t i = 0; i < c->seen_count; i++)
		if (c->seen[i] == pid)
			return false;
	if (c->seen_count < CHILDREN_LOOKED_AT_MAX)
		c->seen[c->seen_count++] = pid;
	return true;
}

size_t children_look(struct children *c, struct descendant found[OPTION_PIDS_MAX], size_t room,
    bool (*is_followed)(void *context, pid_t pid), void *context)
{
	struct descendant all[CHILDREN_LOOKED_AT_MAX];
	const size_t count = descendants_find(c->roots, c->root_count, all, CHILDREN_LOOKED_AT_MAX);
	size_t taken = 0;

	if (count > CHILDREN_LOOKED_AT_MAX)
		c->left_out = count - CHILDREN_LOOKED_AT_MAX;
	for (size_t i = 0; i < count && i < CHILDREN_LOOKED_AT_MAX; i++) {
		struct children_of *of = &c->of[all[i].root];

		if (!see(c, all[i].pid))
			continue;
		if (!is_in_group_of(all[i].pid, c->roots[all[i].root])) {
			of->elsewhere++;
			continue;
		}
		of->all++;
		if (is_followed && is_followed(context, all[i].pid))
			of->taken++;
		else if (taken < room && taken < OPTION_PIDS_MAX)
			found[taken++] = all[i];
		else
			c->left_out++;
	}
	return taken;
}

void children_took(struct children *c, const struct descendant *child)
{
	c->of[child->root].taken++;
}

void children_ended(struct children *c, const struct descendant *child)
{
	c->of[child->root].all--;
}

/* "its 2 children", "1 of its 2 children"; whose: "its", "the" */
static void describe(char *text, size_t text_bytes, const struct children_of *of, const char *whose)
{
	char part[32] = "";

	text[0] = '\0';
	if (of->taken < of->all && of->taken)
		snprintf(part, sizeof(part), "%zu of ", of->taken);
	else if (of->taken < of->all)
		snprintf(part, sizeof(part), "%s", of->all == 1 ? "not " : "none of ");
	if (of->all == 1)
		text_append(text, text_bytes, "%s%s child", part, whose);
	else
		text_append(text, text_bytes, "%s%s %zu children", part, whose, of->all);
}

static void say(const struct children_of *of, pid_t pid)
{
	char name[PROC_COMM_BYTES], text[128];

	proc_read_comm(pid, name);
	describe(text, sizeof(text), of, of->refused ? "the" : "its");
	if (of->all && of->refused)
		log_line("attached to %s of %s (pid %d)", text, name, (int)pid);
	else if (of->all)
		log_line("attached to %s (pid %d) and %s", name, (int)pid, text);
	if (of->elsewhere)
		log_line("%zu %s of %s (pid %d) in other control groups: -P takes their pids too",
		    of->elsewhere, of->elsewhere == 1 ? "descendant is" : "descendants are", name, (int)pid);
}

void children_say(const struct children *c)
{
	for (size_t i = 0; i < c->root_count; i++)
		say(&c->of[i], c->roots[i]);
	if (c->left_out)
		log_line("%zu %s left out: at most %d processes are recorded", c->left_out,
		    c->left_out == 1 ? "child was" : "children were", OPTION_PIDS_MAX);
}
