#include "kernels/cgroup.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace convoy {
namespace {

namespace fs = std::filesystem;

std::optional<double> read_number(const fs::path& path) {
  std::ifstream file(path);
  double value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

void limit_cpus(CgroupLimits& limits, double quota, double period) {
  if (quota > 0 && period > 0) limits.cpus = std::min(limits.cpus, quota / period);
}

void limit_memory(CgroupLimits& limits, std::optional<double> bytes) {
  constexpr double kNoLimit = 9e18;  // v1 says "none" with the largest multiple of a page
  if (bytes && *bytes > 0 && *bytes < kNoLimit)
    limits.memory_bytes = std::min(limits.memory_bytes, std::uint64_t(*bytes));
}

// Calls visit(folder) for mount/group and each of its parents up to the mount. In a container the
// group's path may be the host's and not exist here; the mount itself then is the container's
// group.
template <typename Visit>
void climb(const fs::path& mount, const std::string& group, Visit visit) {
  fs::path relative = fs::path(group).relative_path();
  while (!relative.empty()) {
    visit(mount / relative);
    relative = relative.parent_path();
  }
  visit(mount);
}

void apply_v2(CgroupLimits& limits, const fs::path& folder) {
  std::ifstream file(folder / "cpu.max");  // "max 100000" or "150000 100000"
  double quota = 0, period = 0;
  if (file >> quota >> period) limit_cpus(limits, quota, period);
  limit_memory(limits, read_number(folder / "memory.max"));
}

void apply_v1_cpu(CgroupLimits& limits, const fs::path& folder) {
  const auto quota = read_number(folder / "cpu.cfs_quota_us");
  const auto period = read_number(folder / "cpu.cfs_period_us");
  if (quota && period) limit_cpus(limits, *quota, *period);
}

bool names(const std::string& controllers, const std::string& wanted) {
  std::istringstream list(controllers);
  for (std::string one; std::getline(list, one, ',');)
    if (one == wanted) return true;
  return false;
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");  // lines "number:controllers:path"
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty())
      climb(mounts, group, [&](const fs::path& folder) { apply_v2(limits, folder); });
    if (names(controllers, "cpu"))
      climb(mounts / "cpu", group, [&](const fs::path& folder) { apply_v1_cpu(limits, folder); });
    if (names(controllers, "memory"))
      climb(mounts / "memory", group, [&](const fs::path& folder) {
        limit_memory(limits, read_number(folder / "memory.limit_in_bytes"));
      });
  }
  return limits;
}

}  // namespace convoy
