/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/decisions.h"

#include "sampler/daemon/daemon_state.h"
#include "sampler/daemon/periods.h"
#include "sampler/daemon/verdict.h"
#include "sampler/identity/process_labels.h"
#include "sampler/region/region_mapped.h"
#include "sampler/region/region_offer.h"
#include "sampler/target/target_plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An image costs the daemon 20 to 100 KiB, and the memory that is prefaulted for it. */
enum { IMAGE_BYTES = 128 << 10 };

/* Who runs the daemon need not share with himself; but of root's processes that is not true of those that a
 * container or a unit has. */
static bool is_own(const struct process_facts *facts, const char *account)
{
	return facts->uid == geteuid() && (facts->uid != 0 || strcmp(account, "uid-0") == 0);
}

/* Counts images, not processes: a child keeps its parent's when that has ended. */
bool decisions_has_room(const struct daemon *d, const struct process_facts *facts)
{
	const uint64_t most = d->rules->daemon.memory_bytes / IMAGE_BYTES;
	char account[TARGET_OWNER_BYTES];
	uint64_t all = 0, of_account = 0;

	process_labels_owner(facts, account, sizeof(account));
	for (const struct image *image = d->core.heap.intake.images; image; image = image->next) {
		all++;
		of_account += image->plan && strcmp(image->plan->account, account) == 0;
	}
	return all < most && (of_account < most / 2 || is_own(facts, account));
}

static struct image *image_of(const struct daemon *d, const struct roster_entry *entry)
{
	return entry->state == ROSTER_PROFILED ? registry_image_of(&d->core.heap.registry, entry->ino) : NULL;
}

static void decide_about_profiled(struct daemon *d, struct roster_entry *entry, struct image *image)
{
	struct verdict *verdict = verdict_make(d, entry, true);

	if (!verdict || region_mapped_by(image->region, entry->pid) == REGION_MAPPED_NO) {
		free(verdict); /* gone, or not the program that has this region */
		return;
	}
	if (image->plan)
		image->plan->decided = d->decisions;
	if (verdict_is_no(d, entry, verdict)) {
		region_offer_turn(image->region, false);
		entry->state = ROSTER_PROFILED; /* its books stay, and the entry says why it is off */
	} else {
		if (image->plan)
			verdict_plan(image->plan, d, verdict);
		roster_set(&entry->reason, NULL);
		region_offer_turn(image->region, !d->off.off);
	}
	free(verdict);
}

void decisions_about(struct daemon *d, struct roster_entry *entry)
{
	struct image *image = image_of(d, entry);

	if (image)
		decide_about_profiled(d, entry, image);
}

/* Images whose first process has ended: any of those that are left speaks for it. */
static void decide_about_children(struct daemon *d)
{
	for (size_t i = 0; i < d->roster.count; i++) {
		struct image *image = image_of(d, d->roster.entries[i]);

		if (image && image->plan && image->plan->decided != d->decisions)
			decide_about_profiled(d, d->roster.entries[i], image);
	}
}

void decisions_again(struct daemon *d)
{
	d->decisions++;
	for (size_t i = 0; i < d->roster.count; i++) {
		struct roster_entry *entry = d->roster.entries[i];
		struct image *image = image_of(d, entry);

		if (image && entry->first)
			decide_about_profiled(d, entry, image);
		else if (!image && entry->state != ROSTER_NEW && entry->state != ROSTER_ATTACHING) {
			entry->state = ROSTER_NOTHING;
			entry->looks = entry->looks ? entry->looks - 1 : 0;
		}
	}
	decide_about_children(d);
	periods_scale(d);
	finder_hurry(d->finder);
}
