#include "train/workers.h"

#include <algorithm>

namespace convoy {

void Workers::sum(std::span<std::int64_t> values) {
  comm_.run([&](Communicator& communicator) { communicator.all_reduce(values); });
}

void Workers::sum(std::span<float> values) {
  comm_.run([&](Communicator& communicator) { communicator.all_reduce(values); });
}

void Workers::spread(std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  comm_.run([&](Communicator& communicator) { communicator.broadcast(bytes, 0); });
}

std::string Workers::spread(const std::string& text) {
  std::int64_t length = leads() ? std::int64_t(text.size()) : 0;
  sum({&length, 1});
  std::string all = text;
  all.resize(std::size_t(length));
  spread(std::as_writable_bytes(std::span(all)));
  return all;
}

// Worker by worker: the length, then the letters, each as a sum to which only one contributes.
std::vector<std::string> Workers::gather(const std::string& own) {
  std::vector<std::int64_t> lengths(std::size_t(size()), 0);
  lengths[std::size_t(rank())] = std::int64_t(own.size());
  sum(lengths);
  std::int64_t total = 0, first = 0;
  for (int i = 0; i < size(); ++i) {
    if (i == rank()) first = total;
    total += lengths[std::size_t(i)];
  }
  std::vector<std::int64_t> letters(std::size_t(total), 0);
  for (std::size_t i = 0; i < own.size(); ++i)
    letters[std::size_t(first) + i] = static_cast<unsigned char>(own[i]);
  if (total > 0) sum(letters);
  std::vector<std::string> texts;
  auto place = letters.begin();
  for (const std::int64_t length : lengths) {
    std::string text(std::size_t(length), ' ');
    std::transform(place, place + length, text.begin(),
                   [](std::int64_t letter) { return char(static_cast<unsigned char>(letter)); });
    place += length;
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace convoy
