#include "measure/resources.h"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSectorBytes = 512;  // whatever the disk's own are

// Empty where there is no such file.
std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

template <typename Use>
void each_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "name: 123 kB" or "name 123": the number behind a name; 0 where it is not there.
std::int64_t value_of(std::string_view text, std::string_view name) {
  std::int64_t value = 0;
  each_line(text, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < 2) return;
    std::string_view first = words[0];
    if (first.ends_with(':')) first.remove_suffix(1);
    if (first == name) value = number(words[1]);
  });
  return value;
}

double seconds(const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); }

// Where the control group of this process tells of its quota: version 2, else version 1.
std::string throttling_text(const fs::path& root) {
  std::string found;
  each_line(text_of(root / "proc/self/cgroup"), [&](std::string_view line) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) return;
    const std::string_view kinds = line.substr(first + 1, second - first - 1);
    const fs::path below = fs::path(line.substr(second + 1)).relative_path();
    if (kinds.empty())
      found += text_of(root / "sys/fs/cgroup" / below / "cpu.stat");
    else if (kinds.find("cpu") != std::string_view::npos)
      found += text_of(root / "sys/fs/cgroup/cpu" / below / "cpu.stat");
  });
  return found;
}

}  // namespace

void read_host_cpu(std::string_view stat, ResourceRecord& record) {
  const double tick_s = 1.0 / double(::sysconf(_SC_CLK_TCK));
  each_line(stat, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < 8 || !words[0].starts_with("cpu")) return;
    if (words[0] != "cpu") {
      ++record.host_cores;
      return;
    }
    // user nice system idle iowait irq softirq steal: all but the two idle ones
    std::int64_t busy = 0;
    for (const std::size_t place : {1, 2, 3, 6, 7}) busy += number(words[place]);
    record.host_cpu_s = double(busy) * tick_s;
  });
}

void read_host_memory(std::string_view meminfo, ResourceRecord& record) {
  record.host_memory_total_bytes = value_of(meminfo, "MemTotal") * 1024;
  record.host_memory_bytes =
      record.host_memory_total_bytes - value_of(meminfo, "MemAvailable") * 1024;
}

void read_process_io(std::string_view io, ResourceRecord& record) {
  record.read_operations = value_of(io, "syscr");
  record.write_operations = value_of(io, "syscw");
  record.read_bytes = value_of(io, "read_bytes");
  record.write_bytes = value_of(io, "write_bytes");
}

void read_network(std::string_view net_dev, ResourceRecord& record) {
  each_line(net_dev, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const auto name = words_of(line.substr(0, colon));
    const auto words = words_of(line.substr(colon + 1));  // 8 of what came in, 8 of what went out
    if (name.empty() || words.size() < 10) return;
    if (name[0] == "lo") {
      record.loopback_bytes += number(words[8]);
      record.loopback_packets += number(words[9]);
      return;
    }
    record.received_bytes += number(words[0]);
    record.received_packets += number(words[1]);
    record.sent_bytes += number(words[8]);
    record.sent_packets += number(words[9]);
  });
}

void read_disks(std::string_view diskstats, bool (*is_disk)(std::string_view, const void*),
                const void* argument, ResourceRecord& record) {
  each_line(diskstats, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < 10 || !is_disk(words[2], argument)) return;
    record.disk_read_operations += number(words[3]);
    record.disk_read_bytes += number(words[5]) * kSectorBytes;
    record.disk_write_operations += number(words[7]);
    record.disk_write_bytes += number(words[9]) * kSectorBytes;
  });
}

void read_throttling(std::string_view cpu_stat, ResourceRecord& record) {
  if (value_of(cpu_stat, "nr_periods") == 0) return;
  const std::int64_t us = value_of(cpu_stat, "throttled_usec");
  const std::int64_t ns = value_of(cpu_stat, "throttled_time");  // version 1
  record.throttled_s = us > 0 ? 1e-6 * double(us) : 1e-9 * double(ns);
}

ResourceRecord sample_resources(const fs::path& root) {
  ResourceRecord record;
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  record.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  record.peak_memory_bytes = std::int64_t(usage.ru_maxrss) * 1024;
  record.switches = usage.ru_nvcsw;
  record.forced_switches = usage.ru_nivcsw;
  const std::string statm = text_of(root / "proc/self/statm");
  if (const auto words = words_of(statm); words.size() > 1)
    record.memory_bytes = number(words[1]) * ::sysconf(_SC_PAGESIZE);
  read_process_io(text_of(root / "proc/self/io"), record);
  read_host_cpu(text_of(root / "proc/stat"), record);
  read_host_memory(text_of(root / "proc/meminfo"), record);
  read_network(text_of(root / "proc/self/net/dev"), record);
  const auto is_disk = [](std::string_view name, const void* place) {
    std::error_code ignored;
    const fs::path block = *static_cast<const fs::path*>(place) / "sys/block" / fs::path(name);
    return fs::exists(block / "device", ignored);  // not a loop, not memory
  };
  read_disks(text_of(root / "proc/diskstats"), is_disk, &root, record);
  read_throttling(throttling_text(root), record);
  return record;
}

}  // namespace convoy
