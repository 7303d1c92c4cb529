// SPDX-License-Identifier: Apache-2.0
// A server of three threads whose cache of routes is never emptied: gateway [SECONDS], then a clean exit.
//
// job: gateway
//   build: g++ -O2 -g -pthread -o $OUT/gateway $HERE/gateway.cc
//   start: $OUT/gateway
//   expect: grows RouteCache::resolve
// job: gateway-linked
//   build: objcopy --only-keep-debug $OUT/gateway $OUT/gateway-linked.debug
//   build: objcopy --strip-all --add-gnu-debuglink=$OUT/gateway-linked.debug $OUT/gateway $OUT/gateway-linked
//   start: $OUT/gateway-linked
//   expect: grows RouteCache::resolve
// job: gateway-stripped
//   build: strip -o $OUT/gateway-stripped $OUT/gateway
//   start: $OUT/gateway-stripped
//   expect: grows gateway-stripped\+0x
// job: gateway-exit
//   start: $OUT/gateway 100
//   expect: grows RouteCache::resolve
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace gw
{
struct Route {
	char rules[4000];
};

class RouteCache
{
	std::mutex lock;
	std::unordered_map<std::string, std::shared_ptr<Route>> routes;

      public:
	__attribute__((noinline)) std::shared_ptr<Route> resolve(const std::string &path)
	{
		const std::lock_guard<std::mutex> held(lock);
		auto &route = routes[path];

		if (!route)
			route = std::make_shared<Route>();
		return route;
	}
};

static RouteCache cache;
static std::atomic<bool> ends;

__attribute__((noinline)) static void handle_request(int thread, long request)
{
	std::vector<char> body(30000, 'x');

	cache.resolve("/user/" + std::to_string(thread) + "/" + std::to_string(request))->rules[0] = body[7];
}

static void worker(int thread)
{
	for (long request = 0; !ends; request++) {
		handle_request(thread, request);
		usleep(10000);
	}
}
} // namespace gw

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;

	puts("leak begins");
	fflush(stdout);
	for (int i = 0; i < 3; i++)
		threads.emplace_back(gw::worker, i);
	if (argc > 1) {
		sleep((unsigned)atoi(argv[1]));
		gw::ends = true;
	}
	for (auto &thread : threads)
		thread.join();
	return 0;
}
