/* SPDX-License-Identifier: Apache-2.0 */
/* Which connection gives way where there are too many. */
#include "serve/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 64 };

struct scene {
	struct connection_set set;
	struct connection_set_member members[MOST];
	size_t count;
};

/* It comes a ns after the one before. */
static struct connection_set_member *come(struct scene *scene, const char *address)
{
	struct connection_set_member *member = &scene->members[scene->count];
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((in_port_t)scene->count)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	bool is_v6 = inet_pton(AF_INET6, address, &v6.sin6_addr) == 1;

	if (!is_v6)
		assert_int_equal(inet_pton(AF_INET, address, &v4.sin_addr), 1);
	assert_int_equal(
	    connection_set_add(&scene->set, member,
	        is_v6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4, -1, ++scene->count),
	    0);
	return member;
}

static void leave(struct scene *scene)
{
	for (size_t i = 0; i < scene->count; i++) {
		connection_set_remove(&scene->set, &scene->members[i]);
		connection_set_remove(&scene->set, &scene->members[i]); /* again is fine */
	}
	assert_null(scene->set.first);
	assert_int_equal(scene->set.count, 0);
}

static void who_has_most_gives_way(void **state)
{
	struct scene scene = {.count = 0};
	struct connection_set_member *first, *many, *newest;

	(void)state;
	first = come(&scene, "10.0.0.1");
	assert_null(connection_set_choose(&scene.set, first));
	many = come(&scene, "10.0.0.2");
	for (int i = 0; i < 5; i++)
		come(&scene, "::ffff:10.0.0.2");
	for (int i = 0; i < 4; i++) {
		newest = come(&scene, "10.0.0.3");
		assert_ptr_equal(connection_set_choose(&scene.set, newest), many);
	}
	for (int i = 0; i < 2; i++) {
		connection_set_remove(&scene.set, many);
		many = i ? many : &scene.members[2];
	}
	/* Four each now: the oldest of them all, but not that of who has one. */
	assert_ptr_equal(connection_set_choose(&scene.set, newest), &scene.members[3]);
	leave(&scene);
}

/* Whoever has a network of IPv6 has any number of addresses. */
static void a_network_is_one_client(void **state)
{
	struct scene scene = {.count = 0};
	struct connection_set_member *other, *first;

	(void)state;
	other = come(&scene, "2001:db8:0:1::1");
	first = come(&scene, "2001:db8:0:2::1");
	assert_ptr_equal(connection_set_choose(&scene.set, come(&scene, "2001:db8:0:2:ffff::2")), first);
	assert_ptr_not_equal(other->client, first->client);
	leave(&scene);
}

static void who_reads_gives_way_before_who_is_served(void **state)
{
	struct scene scene = {.count = 0};
	struct connection_set_member *working, *sending, *newest;

	(void)state;
	working = come(&scene, "10.0.0.1");
	working->state = CONNECTION_SET_WORKING;
	sending = come(&scene, "10.0.0.1");
	sending->state = CONNECTION_SET_SENDING;
	/* Some room is left for those who have just come, before those who are served for ever. */
	for (int i = 0; i < CONNECTION_SET_READING_MIN; i++) {
		newest = come(&scene, "10.0.0.1");
		assert_ptr_equal(connection_set_choose(&scene.set, newest), sending);
	}
	newest = come(&scene, "10.0.0.1");
	assert_ptr_equal(connection_set_choose(&scene.set, newest), &scene.members[2]);
	connection_set_remove(&scene.set, sending);
	for (int i = 2; i < 5; i++)
		connection_set_remove(&scene.set, &scene.members[i]);
	assert_ptr_equal(connection_set_choose(&scene.set, newest), working);
	connection_set_remove(&scene.set, working);
	assert_ptr_equal(connection_set_choose(&scene.set, newest), &scene.members[5]);
	leave(&scene);
}

static void users_are_clients_of_a_unix_socket(void **state)
{
	struct scene scene = {.count = 2};
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(connection_set_add(&scene.set, &scene.members[i], NULL, pair[i], 1), 0);
	assert_ptr_equal(scene.members[0].client, scene.members[1].client);
	close(pair[0]);
	close(pair[1]);
	leave(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who_has_most_gives_way),
	    cmocka_unit_test(a_network_is_one_client),
	    cmocka_unit_test(who_reads_gives_way_before_who_is_served),
	    cmocka_unit_test(users_are_clients_of_a_unix_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
