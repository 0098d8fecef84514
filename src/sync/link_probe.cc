#include "sync/link_probe.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace convoy {
namespace {

constexpr Tag kPing = 0x3fff0000, kPong = kPing + 1, kCount = kPing + 2, kReport = kPing + 3;
constexpr double kWait_s = 120;
constexpr double kNoisy = 1.5;

void send(Transport& transport, int to, Tag tag, std::span<const std::byte> bytes) {
  transport.wait(transport.send(to, tag, bytes), kWait_s);
}
void receive(Transport& transport, int from, Tag tag, std::span<std::byte> bytes) {
  transport.wait(transport.recv(from, tag, bytes), kWait_s);
}

// One message there, one byte back.
double round_trip(Runtime& runtime, Transport& transport, int to, std::span<std::byte> message) {
  std::byte reply{};
  const double start_s = runtime.now_s();
  const Ticket answer = transport.recv(to, kPong, {&reply, 1});
  send(transport, to, kPing, message);
  transport.wait(answer, kWait_s);
  return runtime.now_s() - start_s;
}

void answer(Transport& transport, int from, std::span<std::byte> room) {
  receive(transport, from, kPing, room);
  const std::byte reply{};
  send(transport, from, kPong, {&reply, 1});
}

// The sender's part for one size: after a first message it decides how many more are worth it, and
// tells the receiver.
double best_round_trip(Runtime& runtime, Transport& transport, int to, std::span<std::byte> message,
                       double seconds) {
  const double first_s = round_trip(runtime, transport, to, message);
  const std::uint64_t count =
      std::uint64_t(std::clamp(seconds / std::max(first_s, 1e-7), 3.0, 1000.0));
  send(transport, to, kCount, std::as_bytes(std::span(&count, 1)));
  double best_s = first_s;
  for (std::uint64_t i = 0; i < count; ++i)
    best_s = std::min(best_s, round_trip(runtime, transport, to, message));
  return best_s;
}

void answer_all(Transport& transport, int from, std::span<std::byte> room) {
  answer(transport, from, room);
  std::uint64_t count = 0;
  receive(transport, from, kCount, std::as_writable_bytes(std::span(&count, 1)));
  for (std::uint64_t i = 0; i < count; ++i) answer(transport, from, room);
}

std::vector<LinkPoint> measure(Communicator& communicator, int to,
                               std::span<const std::size_t> sizes, std::span<std::byte> memory,
                               double seconds) {
  std::vector<LinkPoint> points;
  double least_s = std::numeric_limits<double>::max();
  for (const std::size_t size : sizes) {
    const double there_and_back_s = best_round_trip(
        communicator.runtime(), communicator.transport(), to, memory.first(size), seconds);
    points.push_back({size, there_and_back_s});
    least_s = std::min(least_s, there_and_back_s);
  }
  // The reply takes half of the shortest round trip; nothing takes less than that.
  for (LinkPoint& point : points)
    point.seconds = std::max({point.seconds - least_s / 2, least_s / 2, 1e-9});
  return points;
}

// The slope of the line with the least squares of relative errors, whatever it is at zero bytes:
// the seconds that one more byte takes. Zero where the points give none.
double seconds_per_byte(std::span<const LinkPoint> points) {
  // Minimises the sum over (a * constant + b * slope - 1)^2, with a = 1 / t and b = s / t.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const LinkPoint& point : points) {
    const double a = 1 / point.seconds, b = double(point.bytes) / point.seconds;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  if (std::fabs(determinant) <= 1e-12 * aa * bb) return 0;
  return std::max((b1 * aa - a1 * ab) / determinant, 0.0);
}

}  // namespace

std::vector<std::size_t> probe_sizes(std::size_t most_bytes) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 1; size <= most_bytes; size *= 4) sizes.push_back(size);
  if (sizes.back() != most_bytes) sizes.push_back(most_bytes);
  return sizes;
}

LinkFit fit_link(std::span<const LinkPoint> points) {
  if (points.empty()) return {0, 1};
  // The large sizes: the largest and those of at least a hundredth of it.
  const std::size_t least_bytes = points.back().bytes / 100;
  const auto large = std::find_if(points.begin(), points.end(), [&](const LinkPoint& point) {
    return point.bytes >= least_bytes;
  });
  double slope = seconds_per_byte({large, points.end()});
  if (slope == 0) slope = 1 / std::max(points.back().bytes_per_s(), 1.0);
  // Of small messages the bytes take less than half of the time: the mean of the rest.
  double rest_s = 0;
  int small = 0;
  for (const LinkPoint& point : points) {
    const double bytes_s = double(point.bytes) * slope;
    if (bytes_s > point.seconds / 2 && small > 0) break;
    rest_s += std::max(point.seconds - bytes_s, 0.0);
    ++small;
  }
  return {rest_s / small, 1 / slope};
}

std::vector<LinkCurve> probe_links(Communicator& communicator, const ProbeOptions& options) {
  const std::vector<std::size_t> sizes = probe_sizes(options.most_bytes);
  std::vector<std::byte> memory(sizes.back());
  std::vector<LinkCurve> curves;
  Transport& transport = communicator.transport();
  const std::vector<int>& ranks = communicator.group().ranks;
  const int me = transport.rank();
  for (const int from : ranks)
    for (const int to : ranks) {
      if (from == to) continue;
      communicator.barrier();
      std::vector<LinkPoint> points(sizes.size());
      if (me == from) points = measure(communicator, to, sizes, memory, options.seconds_per_size);
      if (me == to)
        for (const std::size_t size : sizes)
          answer_all(transport, from, std::span(memory).first(size));
      const std::span<std::byte> report = std::as_writable_bytes(std::span(points));
      if (me == from && from != ranks[0]) send(transport, ranks[0], kReport, report);
      if (me == ranks[0] && from != me) receive(transport, from, kReport, report);
      if (me == ranks[0]) curves.push_back({from, to, points, fit_link(points)});
    }
  return curves;
}

std::vector<std::size_t> slow_links(std::span<const LinkCurve> curves) {
  std::vector<std::size_t> slow;
  std::vector<double> excess(curves.size(), 0);
  if (curves.empty()) return slow;
  for (const double bytes : {1.0, 65536.0, double(curves[0].points.back().bytes)}) {
    std::vector<double> times;
    for (const LinkCurve& curve : curves) times.push_back(curve.fit.seconds(bytes));
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted[(sorted.size() - 1) / 2];
    for (std::size_t i = 0; i < times.size(); ++i)
      excess[i] = std::max(excess[i], median > 0 ? times[i] / median : 0);
  }
  for (std::size_t i = 0; i < excess.size(); ++i)
    if (excess[i] > kNoisy) slow.push_back(i);
  std::sort(slow.begin(), slow.end(),
            [&](std::size_t a, std::size_t b) { return excess[a] > excess[b]; });
  return slow;
}

}  // namespace convoy
