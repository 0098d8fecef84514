// Memory that the ranks of one host share. Every rank has a region of its own, which the others can
// read and write.
#pragma once

#include <cstddef>
#include <span>

namespace convoy {

class HostMemory {
 public:
  virtual ~HostMemory() = default;

  // The ranks of this host, ascending; the own one is among them.
  virtual std::span<const int> ranks() const = 0;
  // The place of the own rank in ranks().
  virtual int index() const = 0;

  // A new piece of the own region, 64-byte aligned, zero. All ranks of the host must ask for the
  // same sizes in the same order: a piece then lies at the same offset in every region. Stays until
  // the transport is gone.
  virtual std::span<std::byte> allocate(std::size_t bytes) = 0;

  // Where the bytes at `own` (inside an allocated piece) lie in the region of ranks()[index]; null
  // if `own` is not in shared memory.
  virtual std::byte* in_region_of(int index, const std::byte* own) = 0;

  // Waits until every rank of the host has come here. Spins for some microseconds, then sleeps.
  // Throws PeerLost and DeadlineExceeded.
  virtual void barrier(double timeout_s) = 0;

  // Says that this rank has just read and written so many bytes of shared memory. Where time is
  // virtual, the time for it passes.
  virtual void moved(std::size_t bytes) { static_cast<void>(bytes); }
};

}  // namespace convoy
