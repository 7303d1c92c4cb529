/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels of a process and of its profiles. Servers group profiles by labels. service_name is the first.
 * Then come the labels that the user gave, then those that the daemon found for the process. A profile has
 * the daemon's labels in a comment, `labels: service_name=.. host=..`.
 *
 * Names are legal in Prometheus ([a-zA-Z_][a-zA-Z0-9_]*, not reserved by a leading __), values valid UTF-8.
 * A pid is never sent: a server keeps a series for each combination of values. Pyroscope's limits are 30
 * names of 1024 bytes with values of 2048 (pkg/validation/limits.go of v2). We send the first 12 labels.
 */
#ifndef PPROF_MODEL_LABELS_H
#define PPROF_MODEL_LABELS_H

#include <stdbool.h>
#include <stddef.h>

struct origin;
struct profile;

enum { LABELS_MAX = 30, LABELS_SENT_MAX = 12, LABELS_NAME_BYTES = 1024, LABELS_VALUE_BYTES = 2048 };

#define LABELS_COMMENT "labels: " /* the comment begins with it */

struct label {
	char *name, *value;
};

/* All zero is empty. */
struct labels {
	struct label rows[LABELS_MAX];
	size_t count;
	size_t left_out; /* labels for which there was no room */
};

void labels_fini(struct labels *labels);

/* Makes a legal name: each character that is not legal becomes '_', a digit at the beginning gets a '_'
 * before it, and a long name is cut. `name` has room for LABELS_NAME_BYTES + 2. */
void labels_name_clean(const char *from, size_t length, char *name);

/* Adds a label, unless there is one of that name: the first wins. The label is copied, cleaned and cut. An
 * empty value adds nothing. 0, -ENOMEM, or -EINVAL for an empty or reserved name. */
int labels_add(struct labels *labels, const char *name, const char *value);

/* "K=V", as --label has it. 0, -ENOMEM, -EINVAL. */
int labels_add_text(struct labels *labels, const char *text);

/* Adds the labels of the text behind "labels: ", which is `k=v` separated by spaces with values
 * percent-encoded. 0 or -ENOMEM. */
int labels_add_comment(struct labels *labels, const char *text);

/* The comment: LABELS_COMMENT, and what labels_add_comment() reads. The caller frees it. NULL if there is no
 * memory. */
char *labels_comment(const struct labels *labels);

/* The value of a label, NULL if there is no such label. */
const char *labels_find(const struct labels *labels, const char *name);

/* May a label of that name be sent? Not a pid, whoever names it. */
bool labels_may_send(const char *name);

/* Makes the labels to send with a profile, LABELS_SENT_MAX at most: service_name, then `given`, then the
 * labels of the comment; without a comment the name of the host. 0 or -ENOMEM; labels_fini() is due in any
 * case. */
int labels_of_profile(struct labels *labels, const struct profile *profile, const struct origin *origin,
    const struct labels *given);

#endif
