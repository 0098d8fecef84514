#include "train/cluster.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "train/config.h"
#include "world/launch/hosts.h"

namespace convoy {
namespace {

constexpr double kMostWorkers = 1024;
constexpr int kMostHosts = 4096;
constexpr double kUpdatePasses = 5;  // over memory: read gradient, weight, momentum; write two

// One key with the range of its number.
struct Key {
  std::string name;
  double low, high;
  double standard;
};

const std::vector<Key>& keys() {
  static const std::vector<Key> all = {{"workers", 1, kMostWorkers, 0},
                                       {"images_per_s", 1e-3, 1e9, 0},
                                       {"gbit_per_s", 1e-3, 1e6, 1},
                                       {"latency_us", 0, 1e9, 50},
                                       {"workers_per_host", 1, kMostWorkers, 1},
                                       {"local_gb_per_s", 1e-3, 1e6, 5},
                                       {"local_latency_us", 0, 1e9, 1},
                                       {"memory_gb_per_s", 1e-3, 1e6, 10},
                                       {"message_s_per_gb", 0, 1e6, 0},
                                       {"load_ms", 0, 1e6, 0}};
  return all;
}

const Key& key_named(const ConfigEntry& entry) {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (key.name == entry.name) return key;
    names.push_back(key.name);
  }
  throw ConfigError("{}: unknown key '{}': did you mean {}?", entry.place, entry.name,
                    nearest(entry.name.substr(0, 100), names));
}

bool may_be_list(const Key& key) { return key.name == "images_per_s" || key.name == "load_ms"; }

std::vector<double> numbers(const ConfigEntry& entry, const Key& key) {
  std::vector<double> list;
  if (const auto* whole = std::get_if<std::int64_t>(&entry.value)) list = {double(*whole)};
  if (const auto* number = std::get_if<double>(&entry.value)) list = {*number};
  if (const auto* several = std::get_if<std::vector<double>>(&entry.value)) list = *several;
  bool good = !list.empty() && (list.size() == 1 || may_be_list(key));
  for (const double number : list) good = good && number >= key.low && number <= key.high;
  if (!good)
    throw ConfigError("{}: {} must be a number from {} to {}{}", entry.place, key.name, key.low,
                      key.high, may_be_list(key) ? ", or a list of such" : "");
  return list;
}

}  // namespace

TrainingCluster parse_cluster(std::string_view text, const std::string& file) {
  std::vector<std::vector<double>> found;
  for (const Key& key : keys()) found.push_back({key.standard});
  for (const ConfigEntry& entry : read_entries(text, file)) {
    const Key& key = key_named(entry);
    found[std::size_t(&key - keys().data())] = numbers(entry, key);
  }
  const auto number = [&](std::size_t key) { return found[key].front(); };
  std::vector<double> speeds = found[1];
  if (speeds.front() <= 0)
    throw ConfigError("{}: images_per_s is missing: what a worker trains in a second", file);
  int workers = int(number(0));
  if (workers == 0) workers = int(speeds.size());
  if (speeds.size() == 1) speeds.assign(std::size_t(workers), speeds.front());
  if (int(speeds.size()) != workers)
    throw ConfigError("{}: images_per_s has {} numbers: there are {} workers", file, speeds.size(),
                      workers);
  std::vector<double> loads = found[9];
  if (loads.size() == 1) loads.assign(std::size_t(workers), loads.front());
  if (int(loads.size()) != workers)
    throw ConfigError("{}: load_ms has {} numbers: there are {} workers", file, loads.size(),
                      workers);
  for (double& load : loads) load *= 1e-3;
  TrainingCluster result{
      .cluster = {.ranks = workers,
                  .network = {.latency_s = number(3) * 1e-6, .bytes_per_s = number(2) * 1e9 / 8},
                  .local = {.latency_s = number(6) * 1e-6, .bytes_per_s = number(5) * 1e9},
                  .memory_bytes_per_s = number(7) * 1e9},
      .images_per_s = std::move(speeds),
      .message_s_per_byte = number(8) * 1e-9,
      .load_s = std::move(loads),
      .update_s_per_byte = kUpdatePasses / (number(7) * 1e9)};
  for (int worker = 0; worker < workers; ++worker)
    result.cluster.host_of.push_back(worker / int(number(4)));
  return result;
}

void add_servers(TrainingCluster& cluster, int servers, const std::string& place) {
  std::vector<int>& hosts = cluster.cluster.host_of;
  const int used = *std::max_element(hosts.begin(), hosts.end()) + 1;
  std::vector<int> chosen;
  if (place.empty() || place == "apart") {
    for (int i = 0; i < servers; ++i) chosen.push_back(used + i);
  } else if (place == "spread") {
    for (int i = 0; i < servers; ++i) chosen.push_back(i % used);
  } else {
    chosen = parse_places(place, servers);
    if (*std::max_element(chosen.begin(), chosen.end()) > kMostHosts)
      throw ConfigError("--place {}: at most {} hosts", place, kMostHosts);
  }
  hosts.insert(hosts.end(), chosen.begin(), chosen.end());
  cluster.cluster.ranks += servers;
  cluster.images_per_s.resize(std::size_t(cluster.cluster.ranks), 0.0);
}

TrainingCluster read_cluster(const std::string& file) {
  const auto bytes = read_file(file, kMaxConfigBytes);
  return parse_cluster({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
}

}  // namespace convoy
