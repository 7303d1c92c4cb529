/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/scan_budget.h"

static struct throttle_rate rate_of(const struct scan_budget *share)
{
	return (struct throttle_rate){
	    .burst = (int64_t)share->burst_ns, .units = 1, .step_ns = SCAN_BUDGET_PART};
}

/* Full buckets are forgotten. */
static void fill(struct scan_budget *share, uint64_t now_ns)
{
	const struct throttle_rate rate = rate_of(share);
	size_t kept = 0;

	for (size_t i = 0; i < share->count; i++) {
		struct scan_budget_bucket bucket = share->buckets[i];

		throttle_fill(&bucket.throttle, &rate, now_ns);
		if (bucket.throttle.left < rate.burst)
			share->buckets[kept++] = bucket;
	}
	share->count = kept;
}

static struct scan_budget_bucket *find(const struct scan_budget *share, uint64_t account)
{
	for (size_t i = 0; i < share->count; i++)
		if (share->buckets[i].account == account)
			return (struct scan_budget_bucket *)&share->buckets[i];
	return NULL;
}

bool scan_budget_is_needed(struct scan_budget *share, uint64_t now_ns)
{
	fill(share, now_ns);
	for (size_t i = 0; i < share->count; i++)
		if (share->buckets[i].throttle.left <= 0)
			return true;
	return false;
}

bool scan_budget_allows(const struct scan_budget *share, uint64_t account)
{
	const struct scan_budget_bucket *bucket = find(share, account);

	return !bucket || bucket->throttle.left > 0;
}

/* A free bucket, or that of whoever has the most left. */
static struct scan_budget_bucket *make(struct scan_budget *share)
{
	struct scan_budget_bucket *found = &share->buckets[0];

	if (share->count < SCAN_BUDGET_ACCOUNTS)
		return &share->buckets[share->count++];
	for (size_t i = 1; i < share->count; i++)
		if (share->buckets[i].throttle.left > found->throttle.left)
			found = &share->buckets[i];
	return found;
}

void scan_budget_spend(struct scan_budget *share, uint64_t account, uint64_t cpu_ns, uint64_t now_ns)
{
	const struct throttle_rate rate = rate_of(share);
	struct scan_budget_bucket *bucket = find(share, account);

	if (!bucket) {
		bucket = make(share);
		*bucket = (struct scan_budget_bucket){.account = account};
	}
	throttle_fill(&bucket->throttle, &rate, now_ns);
	throttle_spend(&bucket->throttle, cpu_ns);
}
