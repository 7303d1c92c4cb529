// SPDX-License-Identifier: Apache-2.0
// What symbol.c is tested on: templates, inlined calls, lambdas, local classes, anonymous namespaces, cold
// paths.
// A label marks a place; the comment // @NAME.DEPTH marks the line that frame DEPTH has there.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#ifdef NO_MARKS
#define MARK(name) (void)0
#else
// %= makes the label unique: a compiler may copy the code around it.
#define MARK(name) __asm__ volatile(".globl mark_" #name "_%=\nmark_" #name "_%=:\n\tnop" ::)
#endif

namespace app
{

template <class T> struct Cache {
	T sum = 0;
	__attribute__((always_inline)) inline void fill(const T *values, int n)
	{
		for (int i = 0; i < n; i++)
			sum += values[i];
		MARK(fill); // @fill.0
	}
};

namespace
{

__attribute__((always_inline)) inline double middle(const double *values, int n)
{
	Cache<double> cache;

	cache.fill(values, n); // @fill.1
	return cache.sum;
}

struct Hidden {
	std::unique_ptr<int[]> numbers;

	__attribute__((always_inline)) explicit Hidden(int n) : numbers(new int[n])
	{
		for (int i = 0; i < n; i++)
			numbers[i] = n - i;
		std::sort(numbers.get(), numbers.get() + n, [](int a, int b) { return (a ^ 5) < (b ^ 5); });
		MARK(hidden); // @hidden.0
	}
};

} // namespace

__attribute__((noinline)) double outer(const double *values, int n)
{
	return middle(values, n) + 1; // @fill.2
}

__attribute__((noinline)) int run(int n)
{
	Hidden hidden(n); // @hidden.1
	struct Local {
		__attribute__((noinline)) int grow(int x)
		{
			std::string s(x, 'c');

			MARK(local); // @local.0
			return (int)s.size();
		}
	} local;
	auto both = [&](auto q) {
		std::vector<decltype(q)> z(n, q);

		return z[n / 2];
	};

	return hidden.numbers[0] + local.grow(n) + both(3) + (int)both(2.5);
}

template <class T> struct Store {
	std::vector<T> list;
	std::map<std::string, T> index;

	void fill(int n)
	{
		for (int i = 0; i < n; i++) {
			list.push_back(T(i));
			index[std::to_string(i)] = list.back();
		}
	}

	T total() const
	{
		T t{};

		for (auto x : list)
			t += x;
		for (auto &p : index)
			t += p.second;
		return t;
	}
};

} // namespace app

extern "C" __attribute__((noinline)) int c_entry(int n)
{
	app::Store<double> store;

	MARK(c); // @c.0
	try {
		store.fill(n);
		if (n == 77)
			throw 3;
		return (int)store.total();
	} catch (int x) {
		return x;
	}
}

int main(int argc, char **argv)
{
	double values[] = {1, 2, 3};
	app::Store<int> store;

	store.fill(argc * 10);
	printf("%d %d %d %f\n", c_entry(argc * 20), app::run(argc * 30), store.total(),
	    app::outer(values, argc));
}
