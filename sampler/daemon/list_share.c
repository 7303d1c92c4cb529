/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/list_share.h"

static struct list_share_user *user_of(struct list_share *share, uid_t uid)
{
	for (size_t i = 0; i < share->count; i++)
		if (share->users[i].uid == uid)
			return &share->users[i];
	if (share->count == LIST_SHARE_USERS)
		return &share->users[LIST_SHARE_USERS - 1];
	share->users[share->count] = (struct list_share_user){.uid = uid};
	return &share->users[share->count++];
}

bool list_share_allows(struct list_share *share, uid_t uid)
{
	const bool allowed = user_of(share, uid)->bytes < share->most_bytes;

	share->left_out += !allowed;
	return allowed;
}

void list_share_take(struct list_share *share, uid_t uid, size_t bytes)
{
	user_of(share, uid)->bytes += bytes;
}
