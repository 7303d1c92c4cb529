/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples of a profile matter: groups of samples that the server will see as one, the largest first. */
#ifndef PUSH_FOLD_RANK_H
#define PUSH_FOLD_RANK_H

#include <stddef.h>
#include <stdint.h>

struct fold_input;

struct fold_group {
	double share;          /* the largest of any sample type's total */
	uint32_t first, count; /* of order[] */
};

struct fold_rank {
	struct fold_entry {
		uint64_t key;
		uint32_t sample;
	} * order;
	struct fold_group *groups; /* by share, largest first; samples without any value are in none */
	size_t count;
};

/* 0 or -ENOMEM, -EOVERFLOW. */
int fold_rank_make(struct fold_rank *rank, const struct fold_input *input);
void fold_rank_fini(struct fold_rank *rank);

#endif
