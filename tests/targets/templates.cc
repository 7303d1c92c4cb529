/* SPDX-License-Identifier: Apache-2.0 */
/* templates [ROUNDS]: threads that fill the standard library's containers: templates, inlining, exceptions,
 * futures. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace shop
{
struct Item {
	std::string name;
	std::vector<int> prices;
};

template <typename Key> class Stock
{
      public:
	void add(Key key, int count)
	{
		auto item = std::make_unique<Item>();
		item->name =
		    "an item with a name that is too long for the small buffer " + std::to_string(count);
		item->prices.assign(static_cast<size_t>(count % 50 + 1), count);
		items_[key] = std::move(item);
	}

	size_t total() const
	{
		size_t sum = 0;
		for (const auto &[key, item] : items_)
			sum += item->prices.size() + item->name.size();
		return sum;
	}

      private:
	std::unordered_map<Key, std::unique_ptr<Item>> items_;
};

static size_t fill_stock(int rounds)
{
	Stock<std::string> stock;
	for (int i = 0; i < rounds; i++)
		stock.add("key number " + std::to_string(i % 20000), i);
	return stock.total();
}

static size_t sort_words(int rounds)
{
	std::map<std::string, std::vector<std::string>> words;
	for (int i = 0; i < rounds; i++) {
		auto text = std::to_string(i * 2654435761u);
		words[text.substr(0, 3)].push_back(text + " and some more text to leave the small buffer");
	}
	size_t sum = 0;
	for (auto &[key, list] : words) {
		std::sort(list.begin(), list.end());
		sum += list.size();
	}
	return sum;
}

static size_t throw_often(int rounds)
{
	size_t caught = 0;
	for (int i = 0; i < rounds / 20; i++) {
		try {
			throw std::runtime_error("error number " + std::to_string(i) + std::string(200, 'x'));
		} catch (const std::exception &error) {
			caught += std::string(error.what()).size();
		}
	}
	return caught;
}
} // namespace shop

int main(int argc, char *argv[])
{
	int rounds = argc > 1 ? std::atoi(argv[1]) : 200000;
	std::vector<std::future<size_t>> results;
	for (int i = 0; i < 2; i++) {
		results.push_back(std::async(std::launch::async, shop::fill_stock, rounds));
		results.push_back(
		    std::async(std::launch::async, [rounds] { return shop::sort_words(rounds); }));
		results.push_back(std::async(std::launch::async, shop::throw_often, rounds));
	}
	size_t sum = shop::fill_stock(rounds / 2);
	for (auto &result : results)
		sum += result.get();
	std::printf("%zu\n", sum);
	return 0;
}
