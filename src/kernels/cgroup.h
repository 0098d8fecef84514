// The limits that a container or a service manager puts on this process, by cgroup v1 or v2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace convoy {

struct CgroupLimits {
  double cpus = std::numeric_limits<double>::infinity();
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();
};

// The smallest limits on the way from this process's groups up to the root. `root` is where /proc
// and /sys stand (for tests). What cannot be read is no limit.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace convoy
