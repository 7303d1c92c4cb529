/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a session: the folders it may be in, and the users that may ask. */
#include "tests/unit/session_scene.h"

#include "sampler/core/control_folder.h"

#include <sys/stat.h>
#include <sys/wait.h>

enum { NOBODYS_UID = 54321 };

static bool is_there(const char *folder)
{
	char path[PATH_MAX];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%d.sock", folder, (int)getpid());
	return stat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

static void the_socket_is_in_a_private_folder_until_it_is_closed(void **state)
{
	struct session_scene *s = *state;
	char folder[PATH_MAX], path[PATH_MAX];
	struct stat status;

	snprintf(folder, sizeof(folder), "%s/heaptap", s->shop.folder);
	assert_true(is_there(folder));
	assert_int_equal(stat(folder, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	close_control(s);
	assert_false(is_there(folder));
	/* A file that a killed sampler with our pid has left is replaced. */
	socket_path(s, path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(open_control(s), 0);
	close(connect_client(s));
}

static void a_folder_that_others_may_change_is_refused(void **state)
{
	static const char *const spoils[] = {"chmod 770 heaptap", "chmod 702 heaptap",
	    "rmdir heaptap && mkdir elsewhere && ln -s elsewhere heaptap",
	    "rm heaptap && rmdir elsewhere && touch heaptap",
	    "rm heaptap && mkdir heaptap && chown 54321 heaptap"};
	struct session_scene *s = *state;
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/heaptap", s->shop.folder);
	for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
		close_control(s);
		if (workshop_run(&s->shop, "%s", spoils[i]) != 0)
			continue; /* only root gives folders away */
		const int error = open_control(s);

		assert_false(is_there(folder));
		assert_int_equal(error != 0, s->server == NULL); /* the next folder may do, or none does */
	}
}

static void the_order_of_folders(void **state)
{
	char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES], wanted[CONTROL_FOLDER_BYTES], long_path[200];
	const struct session_scene *s = *state;

	assert_int_equal(control_folders(folders, 77), 3);
	snprintf(wanted, sizeof(wanted), "%s/heaptap", s->shop.folder);
	assert_string_equal(folders[0], wanted);
	assert_string_equal(folders[1], "/tmp/heaptap-77");
	assert_string_equal(folders[2], "/run/user/77/heaptap");
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	assert_int_equal(control_folders(folders, 77), 2);
	memset(long_path, '/', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	setenv("XDG_RUNTIME_DIR", long_path, 1);
	assert_int_equal(control_folders(folders, 77), 2);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(control_folders(folders, 77), 2);
	assert_string_equal(folders[0], "/tmp/heaptap-77");
}

static void only_our_user_and_root_may_ask(void **state)
{
	struct session_scene *s = *state;
	char path[PATH_MAX], command[PATH_MAX + 256];
	int status, told[2];

	if (geteuid() != 0) {
		print_message("only root can become a stranger\n");
		skip();
	}
	/* Even when the way to the socket stands open. */
	socket_path(s, path);
	snprintf(command, sizeof(command), "chmod 755 %s %s/heaptap && chmod 777 %s", s->shop.folder,
	    s->shop.folder, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char got;
		int fd =
		    setresuid(NOBODYS_UID, NOBODYS_UID, NOBODYS_UID) == 0 ? control_socket_connect(path) : -1;
		bool sent = fd >= 0 && send(fd, "snapshot 1", 10, MSG_NOSIGNAL) == 10;

		if (!sent || write(told[1], "", 1) != 1)
			_exit(1);
		ssize_t bytes = recv(fd, &got, 1, 0);
		_exit(bytes > 0 || (bytes < 0 && errno != ECONNRESET));
	}
	close(told[1]);
	assert_int_equal(read(told[0], command, 1), 1);
	close(told[0]);
	pump(s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(s->asked, 0);
}

static void other_descriptors_and_askers_are_ignored(void **state)
{
	struct session_scene *s = *state;

	assert_false(control_server_event(s->server, s->epoll_fd));
	assert_false(control_server_event(NULL, 0));
	control_server_written(NULL, 1, 1, "/x");
	control_server_written(s->server, 4711, 1, "/x");
	struct session_socket none = {.folder_fd = -1};
	session_socket_close(&none);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_session, close_session)
	const struct CMUnitTest tests[] = {
	    TEST(the_socket_is_in_a_private_folder_until_it_is_closed),
	    TEST(a_folder_that_others_may_change_is_refused),
	    TEST(the_order_of_folders),
	    TEST(only_our_user_and_root_may_ask),
	    TEST(other_descriptors_and_askers_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
