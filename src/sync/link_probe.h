// Latency and bandwidth between two ranks by message size, as NetPIPE measures them, and the line
// through them: a message of s bytes takes alpha + s / beta.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sync/communicator.h"

namespace convoy {

struct LinkPoint {
  std::size_t bytes = 0;
  double seconds = 0;  // one way, the best of several

  double bytes_per_s() const { return seconds > 0 ? double(bytes) / seconds : 0; }
};

struct LinkFit {
  double alpha_s = 0;
  double beta_bytes_per_s = 0;

  double seconds(double bytes) const { return alpha_s + bytes / beta_bytes_per_s; }
};

// beta is what large messages get for one more byte, and alpha what small ones take beside their
// bytes: each is taken where it decides. One line through all sizes would be bent by what lies
// between them: a shaper lets a burst pass at once, which makes middle sizes look faster than the
// link is. `points` in the order of their sizes.
LinkFit fit_link(std::span<const LinkPoint> points);

struct LinkCurve {
  int from = 0;
  int to = 0;
  std::vector<LinkPoint> points;
  LinkFit fit;
};

struct ProbeOptions {
  std::size_t most_bytes = std::size_t{64} << 20;
  double seconds_per_size = 0.05;  // of one link
};

// 1, 4, 16 ... bytes, up to the largest.
std::vector<std::size_t> probe_sizes(std::size_t most_bytes);

// Measures every ordered pair, one after the other while the others wait. All ranks call it; the
// first of the group gets the curves, the others nothing.
std::vector<LinkCurve> probe_links(Communicator& communicator, const ProbeOptions& options);

// Places in `curves` of links that stand out: more than 1.5 times as slow as the median one, at
// 1 B, 64 KiB or the largest size that all were measured with. The slowest first.
std::vector<std::size_t> slow_links(std::span<const LinkCurve> curves);

}  // namespace convoy
