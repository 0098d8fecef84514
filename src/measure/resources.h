// What a process and its host use, from /proc and the control group. Counters only grow.
#pragma once

#include <filesystem>
#include <string_view>

#include "measure/records.h"

namespace convoy {

// Of this process and its host; rank and time are the caller's. What cannot be read stays 0. `root`
// is where /proc and /sys stand (for tests).
ResourceRecord sample_resources(const std::filesystem::path& root = "/");

// The parts, each of a file's text into the fields it tells. Pure: any text will do.
void read_host_cpu(std::string_view stat, ResourceRecord& record);
void read_host_memory(std::string_view meminfo, ResourceRecord& record);
void read_process_io(std::string_view io, ResourceRecord& record);
void read_network(std::string_view net_dev, ResourceRecord& record);
// `is_disk` says of a name whether it is a whole disk, and not a part of one.
void read_disks(std::string_view diskstats, bool (*is_disk)(std::string_view, const void*),
                const void* argument, ResourceRecord& record);
void read_throttling(std::string_view cpu_stat, ResourceRecord& record);

}  // namespace convoy
