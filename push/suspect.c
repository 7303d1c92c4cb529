/* SPDX-License-Identifier: Apache-2.0 */
#include "push/suspect.h"

bool suspect_failed(
    struct suspect *suspect, uint64_t number, bool answered, uint64_t now_ns, uint64_t give_up_ns)
{
	if (!answered) {
		*suspect = (struct suspect){0};
		return false;
	}
	if (number == suspect->probe) {
		*suspect = (struct suspect){.number = suspect->number, .since_ns = now_ns};
		return false;
	}
	if (number != suspect->number)
		*suspect = (struct suspect){.number = number, .since_ns = now_ns};
	suspect->attempts++;
	return suspect->attempts >= SUSPECT_ATTEMPTS && now_ns - suspect->since_ns >= give_up_ns;
}
