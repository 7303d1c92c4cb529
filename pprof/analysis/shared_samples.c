/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/shared_samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/filter.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/table/array.h"

enum { UNKNOWN_ORIGIN = 0, COPIES_MOST = 1000000 };

struct shared_samples_part {
	uint64_t unit, session, origin, holder;
	uint32_t column, row, copies;
	enum shared_samples_side side;
	struct estimate estimate;
};

void shared_samples_fini(struct shared_samples *o)
{
	index_fini(&o->index);
	free(o->keys);
	free(o->key_counts);
	free(o->parts);
	memset(o, 0, sizeof(*o));
}

size_t shared_samples_bytes(const struct shared_samples *o)
{
	return index_bytes(&o->index) + o->key_capacity * sizeof(*o->keys) +
	    o->key_count_capacity * sizeof(*o->key_counts) + o->part_capacity * sizeof(*o->parts);
}

/* ---- keys: hashes of what there is in a column, seeded, and so long that equal ones are the same */

enum key_kind {
	KEY_FILE,    /* profiles */
	KEY_OWN,     /* of one process */
	KEY_FROM,    /* inherited from this pid */
	KEY_UNKNOWN, /* inherited from an unknown process of a session */
	KEY_HOLDER,
};

static uint64_t key_make(enum key_kind kind, uint64_t session, uint64_t pid, uint64_t detail)
{
	uint64_t hash = index_mix(index_mix(index_seed(), (uint64_t)kind), session);

	return index_mix(index_mix(hash, pid), detail) | 1; /* not UNKNOWN_ORIGIN */
}

static uint32_t key_find(const struct shared_samples *o, uint64_t key)
{
	size_t cursor = index_start(index_fold(key));
	uint32_t id;

	while ((id = index_next(&o->index, index_fold(key), &cursor)))
		if (o->keys[id - 1] == key)
			return id;
	return 0;
}

static int key_count(struct shared_samples *o, uint64_t key)
{
	uint32_t id = key_find(o, key);

	if (id) {
		o->key_counts[id - 1] += o->key_counts[id - 1] < UINT32_MAX;
		return 0;
	}
	if (o->key_count == UINT32_MAX ||
	    array_reserve(&o->keys, &o->key_capacity, (size_t)o->key_count + 1, sizeof(*o->keys)) ||
	    array_reserve(
	        &o->key_counts, &o->key_count_capacity, (size_t)o->key_count + 1, sizeof(*o->key_counts)) ||
	    index_add(&o->index, index_fold(key), o->key_count + 1))
		return -ENOMEM;
	o->keys[o->key_count] = key;
	o->key_counts[o->key_count++] = 1;
	return 0;
}

static uint32_t key_counted(const struct shared_samples *o, uint64_t key)
{
	uint32_t id = key_find(o, key);

	return id ? o->key_counts[id - 1] : 0;
}

/* ---- profiles */

/* A merged profile says how many profiles it is the sum of, or has a comment of each process. A sum of deltas
 * has no sample twice. A sum of several states of a process has all samples several times. */
static void read_copies(struct shared_samples_holder *h, const struct origin *origin)
{
	size_t profiles = origin->process_count, processes = profiles;
	char what[16] = "";

	if (sscanf(origin->merged, "%zu %15s of %zu", &profiles, what, &processes) != 3)
		profiles = processes = origin->process_count;
	h->copies = h->inherited_copies = 1;
	if (!*origin->merged || strncmp(what, "delta", 5) == 0 || profiles > COPIES_MOST)
		return;
	h->inherited_copies = profiles > 1 ? (uint32_t)profiles : 1;
	h->copies = profiles > processes ? (uint32_t)(profiles - processes + 1) : 1;
}

static void read_holder(struct shared_samples_holder *h, const struct profile *profile, size_t column)
{
	struct origin origin;

	origin_read(&origin, profile);
	*h = (struct shared_samples_holder){.has_process = origin_has_process(&origin),
	    .is_merged = *origin.merged != '\0',
	    .session = index_mix(index_seed(), column)};
	h->session = index_mix_bytes(h->session, origin.session, strlen(origin.session));
	h->session = index_mix_bytes(h->session, origin.host, strlen(origin.host));
	h->own = key_make(KEY_OWN, h->session, (uint64_t)origin.pid, (uint64_t)origin.start_ns);
	h->from = key_make(KEY_FROM, h->session, (uint64_t)origin.pid, 0);
	/* The deltas of a process are parts of a whole. */
	h->id = h->has_process && origin.kind == ORIGIN_DELTA ? h->own : 0;
	read_copies(h, &origin);
}

/* What a sample's labels say. */
struct told {
	bool inherited;  /* by the process that holds it: it has not allocated it itself */
	uint64_t origin; /* key of the process that has sampled it, if the labels say which */
	int64_t pid;     /* of the holder, in a profile of several; 0 */
};

static int64_t number_label(const struct profile *profile, size_t sample, const char *key)
{
	struct profile_label label;

	return filter_label(profile, sample, key, &label) && !label.str && label.num > 0 ? label.num : 0;
}

static struct told read_labels(
    const struct shared_samples_holder *h, const struct profile *profile, size_t sample)
{
	struct profile_label label;
	struct told told = {.pid = number_label(profile, sample, ORIGIN_LABEL_PID)};
	int64_t from = number_label(profile, sample, ORIGIN_LABEL_FROM);

	told.inherited = from || filter_label(profile, sample, "inherited", &label);
	if (from && h->is_merged && !told.pid) /* of how many processes? */
		from = 0;
	if (from || (!told.inherited && told.pid))
		told.origin = key_make(KEY_FROM, h->session, (uint64_t)(from ? from : told.pid), 0);
	return told;
}

int shared_samples_expect(struct shared_samples *o, const struct profile *profile, size_t column)
{
	struct shared_samples_holder h;
	int err;

	read_holder(&h, profile, column);
	err = key_count(o, key_make(KEY_FILE, column, 0, 0));
	if (!err && h.is_merged) /* several in one */
		err = key_count(o, key_make(KEY_FILE, column, 0, 0));
	if (!err && h.has_process)
		err = key_count(o, h.own);
	for (size_t i = 0; i < profile_sample_count(profile) && !err; i++) {
		struct told told = read_labels(&h, profile, i);

		if (told.pid && !h.is_merged) { /* merged, but its comments are lost */
			h.is_merged = true;
			err = key_count(o, key_make(KEY_FILE, column, 0, 0));
		}
		if (told.inherited && !err)
			err =
			    key_count(o, told.origin ? told.origin : key_make(KEY_UNKNOWN, h.session, 0, 0));
	}
	return err;
}

void shared_samples_begin(struct shared_samples *o, const struct profile *profile, size_t column)
{
	struct shared_samples_holder *h = &o->holder;

	read_holder(h, profile, column);
	h->counts = key_counted(o, key_make(KEY_FILE, column, 0, 0)) > 1;
	o->holder_count++;
	if (!h->id)
		h->id = key_make(KEY_HOLDER, 0, 0, o->holder_count);
}

/* Sets the origin of what a sample has in use. Returns false if no other profile may have the sample too, as
 * in most programs. */
static bool inuse_is_shared(const struct shared_samples *o, const struct told *told, uint64_t *origin)
{
	const struct shared_samples_holder *h = &o->holder;
	bool any_unknown = key_find(o, key_make(KEY_UNKNOWN, h->session, 0, 0)) != 0;

	*origin = told->origin;
	if (told->inherited || h->copies > 1)
		return true;
	if (told->pid)
		return any_unknown || key_find(o, *origin);
	if (!h->has_process)
		return any_unknown && h->is_merged;
	*origin = key_find(o, h->from) ? h->from : h->own;
	return any_unknown || *origin == h->from || key_counted(o, h->own) > 1;
}

/* What was allocated is only in other states of the same process too. */
static bool alloc_is_shared(const struct shared_samples *o, const struct told *told, uint64_t *origin)
{
	const struct shared_samples_holder *h = &o->holder;

	*origin = told->pid ? key_make(KEY_OWN, h->session, (uint64_t)told->pid, 0) : h->own;
	return h->copies > 1 || (h->has_process && key_counted(o, h->own) > 1);
}

int shared_samples_add(struct shared_samples *o, const struct profile *profile, size_t sample, size_t column,
    uint64_t unit, uint32_t row, const struct estimate sides[SIDE_COUNT])
{
	const struct shared_samples_holder *h = &o->holder;
	struct told told;

	if (!h->counts)
		return 0;
	told = read_labels(h, profile, sample);
	for (enum shared_samples_side side = 0; side < SIDE_COUNT; side++) {
		bool inuse = side == SIDE_INUSE;
		struct shared_samples_part part = {
		    .unit = unit,
		    .session = h->session,
		    .holder = told.pid ? key_make(KEY_HOLDER, h->id, (uint64_t)told.pid, 0) : h->id,
		    .column = (uint32_t)column,
		    .row = row,
		    .copies = h->copies,
		    .side = side,
		    .estimate = sides[side],
		};

		if (sides[side].samples <= 0 ||
		    !(inuse ? inuse_is_shared(o, &told, &part.origin)
		            : alloc_is_shared(o, &told, &part.origin)))
			continue;
		if (inuse && told.inherited && !told.origin)
			part.copies = h->inherited_copies;
		if (array_reserve(&o->parts, &o->part_capacity, o->part_count + 1, sizeof(*o->parts)))
			return -ENOMEM;
		o->parts[o->part_count++] = part;
	}
	return 0;
}

/* ---- clusters */

struct finding {
	enum shared_samples_scope scope;
	shared_samples_found *found;
	void *context;
	double *values; /* as many as there are parts */
	bool is_bound;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_holders(const void *left, const void *right)
{
	return compare_numbers(((const struct shared_samples_part *)left)->holder,
	    ((const struct shared_samples_part *)right)->holder);
}

static int compare_parts(const void *left, const void *right, void *context)
{
	const struct shared_samples_part *a = left, *b = right;
	const struct finding *f = context;
	int order = compare_numbers(a->column, b->column);

	if (!order)
		order = compare_numbers(a->side, b->side);
	if (!order && f->scope != OVERLAP_ALL)
		order = compare_numbers(a->row == OVERLAP_NO_ROW, b->row == OVERLAP_NO_ROW);
	if (!order && f->scope == OVERLAP_ROWS)
		order = compare_numbers(a->row, b->row);
	if (!order)
		order = compare_numbers(a->unit, b->unit);
	if (!order)
		order = compare_numbers(a->session, b->session);
	if (!order)
		order = compare_numbers(a->origin, b->origin);
	return order ? order : compare_numbers(a->holder, b->holder);
}

static bool belong_together(
    const struct finding *f, const struct shared_samples_part *first, const struct shared_samples_part *other)
{
	if (f->scope == OVERLAP_ROWS && first->row != other->row)
		return false;
	if (f->scope == OVERLAP_SELECTED && (first->row == OVERLAP_NO_ROW) != (other->row == OVERLAP_NO_ROW))
		return false;
	return first->column == other->column && first->side == other->side && first->unit == other->unit &&
	    first->session == other->session &&
	    (first->origin == other->origin || first->origin == UNKNOWN_ORIGIN);
}

static int compare_values(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* 2 * the sum of the smaller of each pair. */
static double covariance(double *values, size_t count)
{
	double sum = 0;

	qsort(values, count, sizeof(*values), compare_values);
	for (size_t i = 0; i < count; i++)
		sum += values[i] * (double)(count - 1 - i);
	return 2 * sum;
}

static double number_of(const struct estimate *e, int which)
{
	return which == 0 ? e->samples : which == 1 ? e->bytes_variance : e->objects_variance;
}

/* Sums of one number by holder, into values; returns how many. *excess: what the holders' own copies add. */
static size_t sum_holders(
    const struct shared_samples_part *parts, size_t count, int which, double *values, double *excess)
{
	size_t holders = 0;

	*excess = 0;
	for (size_t i = 0, next; i < count; i = next) {
		double sum = 0;
		uint32_t copies = 1;

		for (next = i; next < count && parts[next].holder == parts[i].holder; next++) {
			sum += number_of(&parts[next].estimate, which);
			copies = parts[next].copies > copies ? parts[next].copies : copies;
		}
		*excess += which ? sum * (copies - 1) : -sum;
		values[holders++] = which ? sum * copies : sum / copies;
	}
	return holders;
}

static void find_in(struct finding *f, const struct shared_samples_part *parts, size_t count)
{
	struct estimate excess = {0, 0, 0};
	double *const numbers[] = {&excess.samples, &excess.bytes_variance, &excess.objects_variance};
	bool is_bound = false;

	for (size_t i = 0; i < count; i++) /* any of them: they are sorted by their holders' random keys */
		is_bound = is_bound || parts[i].copies > 1 || parts[i].origin == UNKNOWN_ORIGIN;
	for (int which = 0; which < 3; which++) {
		double more, most = 0;
		size_t holders = sum_holders(parts, count, which, f->values, &more);

		for (size_t i = 0; i < holders; i++)
			most = f->values[i] > most ? f->values[i] : most;
		*numbers[which] = more + (which ? covariance(f->values, holders) : most);
	}
	if (excess.bytes_variance <= 0 && excess.objects_variance <= 0)
		return;
	f->is_bound = f->is_bound || is_bound;
	f->found(f->context, parts[0].column, parts[0].row, parts[0].side, excess);
}

int shared_samples_find(
    struct shared_samples *o, enum shared_samples_scope scope, shared_samples_found *found, void *context)
{
	struct finding f = {.scope = scope, .found = found, .context = context};

	if (!o->part_count)
		return 0;
	f.values = calloc(o->part_count, sizeof(*f.values));
	if (!f.values)
		return -ENOMEM;
	qsort_r(o->parts, o->part_count, sizeof(*o->parts), compare_parts, &f);
	for (size_t i = 0, next; i < o->part_count; i = next) {
		struct shared_samples_part *first = &o->parts[i];

		for (next = i; next < o->part_count && belong_together(&f, first, &o->parts[next]); next++)
			;
		if (scope != OVERLAP_ALL && first->row == OVERLAP_NO_ROW)
			continue;
		if (first->origin == UNKNOWN_ORIGIN)
			qsort(first, next - i, sizeof(*first), compare_holders);
		find_in(&f, first, next - i);
	}
	free(f.values);
	o->is_bound = o->is_bound || f.is_bound;
	return 0;
}
