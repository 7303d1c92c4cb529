/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/list_quota.h"

static struct list_quota_user *user_of(struct list_quota *share, uid_t uid)
{
	for (size_t i = 0; i < share->count; i++)
		if (share->users[i].uid == uid)
			return &share->users[i];
	if (share->count == LIST_QUOTA_USERS)
		return &share->users[LIST_QUOTA_USERS - 1];
	share->users[share->count] = (struct list_quota_user){.uid = uid};
	return &share->users[share->count++];
}

bool list_quota_allows(struct list_quota *share, uid_t uid)
{
	const bool allowed = user_of(share, uid)->bytes < share->most_bytes;

	share->left_out += !allowed;
	return allowed;
}

void list_quota_take(struct list_quota *share, uid_t uid, size_t bytes)
{
	user_of(share, uid)->bytes += bytes;
}
