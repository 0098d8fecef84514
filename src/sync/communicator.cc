#include "sync/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "sync/grouped_digits.h"

namespace convoy {
namespace {

// The streams of one operation.
constexpr int kData = 0, kIntent = 1, kSetup = 2;

// Below this, the number of steps decides; above, the bytes.
constexpr std::size_t kSmallBytes = 32 << 10;

// How a rank that gives up tells the others why.
constexpr std::string_view kLostPrefix = "lost rank ";

Group group_of(const Transport& transport, std::vector<int> ranks) {
  if (ranks.empty()) {
    ranks.resize(std::size_t(transport.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  const auto own = std::find(ranks.begin(), ranks.end(), transport.rank());
  CHECK(own != ranks.end(), "rank {} is not in its own group", transport.rank());
  const int index = static_cast<int>(own - ranks.begin());
  return {.ranks = std::move(ranks), .index = index};
}

// Everybody hears of everybody in log2 N rounds: in round k from the rank 2^k places to the left.
void dissemination_barrier(const Operation& operation) {
  const int n = operation.size(), i = operation.index();
  std::byte out{}, in{};
  for (int distance = 1; distance < n; distance *= 2) {
    Flight receives(operation, operation.peer((i - distance + n) % n));
    Flight sends(operation, operation.peer((i + distance) % n));
    receives.recv({&in, 1});
    sends.send({&out, 1});
    receives.finish_oldest();
    sends.finish_oldest();
  }
}

}  // namespace

Communicator::Communicator(Runtime& runtime, Transport& transport, CommunicatorOptions options)
    : runtime_(runtime),
      transport_(transport),
      options_(std::move(options)),
      group_(group_of(transport, options_.ranks)),
      scratch_(transport.carries_bytes()) {
  CHECK(options_.channel >= 0 && options_.channel < 16, "channel {}", options_.channel);
  if (options_.algorithm != "auto") algorithm_ = &find_algorithm(options_.algorithm);
}

// Bits: 30 collectives, 26-29 channel, 2-25 sequence, 0-1 stream.
Tag Communicator::tag(int stream) const {
  return kCollectiveTag | Tag(options_.channel) << 26 | Tag(sequence_ & 0xffffff) << 2 |
         Tag(stream);
}

Operation Communicator::operation(Element element, Reduction reduction) {
  CHECK(element != Element::i64 || reduction != Reduction::mean, "integers have no mean");
  return {.transport = transport_,
          .group = &group_,
          .scratch = scratch_,
          .tag = tag(kData),
          .element = element,
          .reduction = reduction,
          .factor = reduction == Reduction::mean ? 1.0 / size() : 1.0,
          .timeout_s = options_.timeout_s,
          .segment_bytes = options_.segment_bytes};
}

HostTeam& Communicator::team() {
  if (!team_) {
    Operation setup = operation(Element::i64, Reduction::sum);
    setup.tag = tag(kSetup);
    team_ = std::make_unique<HostTeam>(setup);
  }
  return *team_;
}

const Algorithm& Communicator::choose(std::size_t bytes) {
  if (algorithm_) return *algorithm_;
  if (size() == transport_.size() && transport_.carries_bytes() && team().leaders().size() < size())
    return find_algorithm("hierarchical");
  return find_algorithm(bytes <= kSmallBytes ? "halving_doubling" : "ring");
}

template <typename Body>
void Communicator::perform(const Intent& intent, const Body& body) {
  if (failure_) std::rethrow_exception(failure_);
  ++sequence_;
  position_.sequence = sequence_;
  position_.bytes = intent.bytes;
  publish(kind_name(intent.kind));
  IntentCheck intent_check(runtime_, transport_, group_, tag(kIntent), intent);
  try {
    body(intent_check);
    intent_check.finish(options_.timeout_s);
  } catch (const TransportError&) {
    try {
      explain(intent, intent_check);
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }
}

void Communicator::all_reduce(std::span<float> values, Reduction reduction) {
  all_reduce(std::as_writable_bytes(values), Element::f32, reduction);
}

void Communicator::all_reduce(std::span<std::int64_t> values, Reduction reduction) {
  all_reduce(std::as_writable_bytes(values), Element::i64, reduction);
}

void Communicator::all_reduce(std::span<std::byte> buffer, Element element, Reduction reduction) {
  all_reduce(buffer, element, reduction, choose(buffer.size()));
}

void Communicator::all_reduce(std::span<std::byte> buffer, Element element, Reduction reduction,
                              const Algorithm& algorithm) {
  const auto rows = algorithms();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Algorithm& one) { return one.name == algorithm.name; });
  const Intent intent{.kind = Kind::all_reduce,
                      .element = element,
                      .reduction = reduction,
                      .algorithm = static_cast<int>(row - rows.begin()),
                      .bytes = buffer.size()};
  perform(intent, [&](IntentCheck& intent_check) {
    Operation all = operation(element, reduction);
    all.intent_check = &intent_check;
    if (algorithm.run == hierarchical && size() == transport_.size()) all.team = &team();
    algorithm.run(all, buffer);
  });
}

void Communicator::reduce_scatter(std::span<std::byte> buffer, Element element,
                                  Reduction reduction) {
  const Intent intent{.kind = Kind::reduce_scatter,
                      .element = element,
                      .reduction = reduction,
                      .bytes = buffer.size()};
  perform(intent, [&](IntentCheck& intent_check) {
    Operation all = operation(element, reduction);
    all.intent_check = &intent_check;
    ring_reduce_scatter(all, buffer);
  });
}

void Communicator::all_gather(std::span<std::byte> buffer, Element element) {
  const Intent intent{.kind = Kind::all_gather, .element = element, .bytes = buffer.size()};
  perform(intent, [&](IntentCheck& intent_check) {
    Operation all = operation(element, Reduction::sum);
    all.intent_check = &intent_check;
    ring_all_gather(all, buffer);
  });
}

void Communicator::broadcast(std::span<std::byte> buffer, int root) {
  const Intent intent{.kind = Kind::broadcast, .root = root, .bytes = buffer.size()};
  perform(intent, [&](IntentCheck& intent_check) {
    Operation all = operation(Element::f32, Reduction::sum);
    all.intent_check = &intent_check;
    tree_broadcast(all, root, buffer);
  });
}

void Communicator::reduce(std::span<std::byte> buffer, Element element, Reduction reduction,
                          int root) {
  const Intent intent{.kind = Kind::reduce,
                      .element = element,
                      .reduction = reduction,
                      .root = root,
                      .bytes = buffer.size()};
  perform(intent, [&](IntentCheck& intent_check) {
    Operation all = operation(element, reduction);
    all.intent_check = &intent_check;
    tree_reduce(all, root, buffer);
  });
}

void Communicator::barrier() {
  perform({.kind = Kind::barrier}, [&](IntentCheck& intent_check) {
    Operation all = operation(Element::f32, Reduction::sum);
    all.intent_check = &intent_check;
    dissemination_barrier(all);
  });
}

void Communicator::publish(const std::string& place) {
  position_.set_place(place);
  transport_.publish(position_);
}

// Whom a rank that gave up has lost; -1 if it did not say so.
int Communicator::lost_by(int rank) const {
  const std::optional<Sighting> seen = transport_.last_seen(rank);
  if (!seen) return -1;
  const std::string_view place = seen->position.place.data();
  if (!place.starts_with(kLostPrefix)) return -1;
  int lost = -1;
  std::from_chars(place.data() + kLostPrefix.size(), place.data() + place.size(), lost);
  return lost < transport_.size() && lost != transport_.rank() ? lost : -1;
}

// Rank a lost rank b and left, so that this rank lost a: it should name b. Follows what the lost
// ranks said last. Two that lost each other (the link between them is cut, or one of them is cut
// off) are both named, first the one that more ranks have lost.
Communicator::Culprit Communicator::first_lost(int rank) const {
  std::vector<int> chain{rank};
  while (true) {
    const int next = lost_by(chain.back());
    if (next < 0) return {.rank = chain.back()};
    const auto met = std::find(chain.begin(), chain.end(), next);
    if (met == chain.end()) {
      chain.push_back(next);
      continue;
    }
    const auto accusers = [&](int accused) {
      return std::count_if(group_.ranks.begin(), group_.ranks.end(), [&](int other) {
        return other != transport_.rank() && lost_by(other) == accused;
      });
    };
    const int other = chain.back();
    return accusers(next) > accusers(other) ? Culprit{next, other} : Culprit{other, next};
  }
}

// Who was heard of lately in an earlier operation may wait for somebody too: where there are
// others, they are named.
std::vector<int> Communicator::absent() const {
  std::vector<int> missing, silent;
  for (int rank : group_.ranks) {
    const std::optional<Sighting> last = transport_.last_seen(rank);
    if (rank == transport_.rank() || (last && last->position.sequence >= sequence_)) continue;
    missing.push_back(rank);
    if (!last || last->age_s > options_.timeout_s / 2) silent.push_back(rank);
  }
  return silent.empty() ? missing : silent;
}

std::string Communicator::whereabouts(std::span<const int> missing) const {
  std::vector<std::string> seen;
  for (int rank : group_.ranks) {
    const std::optional<Sighting> last = transport_.last_seen(rank);
    const bool own = rank == transport_.rank();
    const Position& position = own ? position_ : last ? last->position : Position{};
    if (!own && !last)
      seen.push_back(fmt::format("rank {}: never heard of", rank));
    else if (position.sequence == sequence_ || own)
      seen.push_back(fmt::format("rank {}: in {} #{} ({} bytes)", rank, position.place.data(),
                                 position.sequence, grouped_digits(position.bytes)));
    else
      seen.push_back(fmt::format("rank {}: last seen in {} #{} {:.1f} s ago", rank,
                                 position.place.data(), position.sequence, last->age_s));
  }
  constexpr std::size_t kMost = 16;
  if (seen.size() > kMost) {
    seen[kMost - 1] = fmt::format("and {} more", seen.size() - kMost + 1);
    seen.resize(kMost);
  }
  const std::string who = missing.empty()
                              ? "every rank came, and yet no message"
                              : fmt::format("rank{} {} never came", missing.size() > 1 ? "s" : "",
                                            fmt::join(missing, ", "));
  return fmt::format("{}; {}", who, fmt::join(seen, ", "));
}

// Says what the error that is being handled means for this operation.
void Communicator::explain(const Intent& intent, IntentCheck& intent_check) {
  const std::string what = fmt::format("{} #{} ({} bytes)", kind_name(intent.kind), sequence_,
                                       grouped_digits(intent.bytes));
  try {
    throw;
  } catch (const PeerLost& lost) {
    const Culprit culprit = first_lost(lost.rank());
    publish(fmt::format("{}{}", kLostPrefix, culprit.rank));
    const std::string prefix = fmt::format("rank {} is lost: ", lost.rank());
    std::string why = lost.what();
    if (why.starts_with(prefix)) why.erase(0, prefix.size());
    if (culprit.rank != lost.rank()) why = fmt::format("rank {}, which left, said so", lost.rank());
    if (culprit.or_else >= 0) why = fmt::format("it and rank {} lost each other", culprit.or_else);
    throw PeerLost(culprit.rank, fmt::format("{}, during {}", why, what));
  } catch (const DeadlineExceeded&) {
    const std::vector<int> missing = absent();
    const std::string text = whereabouts(missing);
    publish(missing.empty() ? "deadline" : fmt::format("{}{}", kLostPrefix, missing[0]));
    throw DeadlineExceeded(fmt::format("{}: {}", what, text));
  } catch (const Mismatch& error) {
    publish("different operations");
    throw Mismatch(fmt::format("operation #{}: {}", sequence_, error.what()));
  } catch (const TransportError& error) {
    // Messages that do not fit may come of different operations: the check knows. It is a
    // message of its own, and may still be under way.
    const std::string text = error.what();
    try {
      intent_check.finish(std::min(options_.timeout_s, 1.0));
    } catch (const Mismatch& mismatch) {
      publish("different operations");
      throw Mismatch(fmt::format("operation #{}: {}", sequence_, mismatch.what()));
    } catch (const TransportError&) {
      // The first error says enough.
    }
    publish("broken collective");
    throw TransportError(fmt::format("{}: {}", what, text));
  }
}

}  // namespace convoy
