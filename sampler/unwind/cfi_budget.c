/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/cfi_budget.h"

#include "sampler/linux/clock.h"

enum { NS_PER_US = 1000 };

bool cfi_budget_allows(struct cfi_budget *budget)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t us = now_ns > budget->filled_ns ? (now_ns - budget->filled_ns) / NS_PER_US : 0;

	if (us > INT32_MAX || budget->left + (int64_t)us * CFI_BUDGET_PER_US >= CFI_BUDGET_MAX) {
		budget->left = CFI_BUDGET_MAX;
		budget->filled_ns = now_ns;
	} else {
		budget->left += (int64_t)us * CFI_BUDGET_PER_US;
		budget->filled_ns += us * NS_PER_US;
	}
	return budget->left > 0;
}

void cfi_budget_spend(struct cfi_budget *budget, uint64_t units)
{
	budget->left -= (int64_t)(units < INT32_MAX ? units : INT32_MAX);
}
