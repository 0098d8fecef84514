#include "measure/resources.h"

#include <gtest/gtest.h>

#include <vector>

namespace convoy {
namespace {

TEST(Resources, ReadsTheKernelsFiles) {
  ResourceRecord record;
  read_host_cpu(
      "cpu  100 10 50 1000 20 5 15 0 0 0\ncpu0 50 5 25 500 10 0 0 0 0 0\ncpu1 50 5 25 500 10 0 0 0 "
      "0 "
      "0\nintr 1 2 3\n",
      record);
  EXPECT_EQ(record.host_cores, 2);
  EXPECT_NEAR(record.host_cpu_s, (100 + 10 + 50 + 5 + 15) / 100.0, 1e-9);
  read_host_memory("MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n", record);
  EXPECT_EQ(record.host_memory_total_bytes, 1024000);
  EXPECT_EQ(record.host_memory_bytes, 600 * 1024);
  read_process_io("rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: 5\nwrite_bytes: 4\n",
                  record);
  EXPECT_EQ(record.read_operations, 7);
  EXPECT_EQ(record.write_bytes, 4);
}

TEST(Resources, NetworkWithoutLoopback) {
  ResourceRecord record;
  read_network(
      "Inter-|   Receive                    |  Transmit\n face |bytes    packets errs drop fifo "
      "frame "
      "compressed multicast|bytes\n    lo: 500 5 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n  eth0:1000 10 0 0 "
      "0 0 0 "
      "0 2000 20 0 0 0 0 0 0\n  eth1: 1 1 0 0 0 0 0 0 2 2 0 0 0 0 0 0\n",
      record);
  EXPECT_EQ(record.received_bytes, 1001);
  EXPECT_EQ(record.received_packets, 11);
  EXPECT_EQ(record.sent_bytes, 2002);
  EXPECT_EQ(record.sent_packets, 22);
  EXPECT_EQ(record.loopback_bytes, 500);
}

TEST(Resources, WholeDisksOnly) {
  ResourceRecord record;
  const auto is_disk = [](std::string_view name, const void*) { return name == "vda"; };
  read_disks(
      "   8 0 vda 10 0 16 0 20 0 32 0 0 0 0\n   8 1 vda1 10 0 16 0 20 0 32 0 0 0 0\n   7 0 loop0 1 "
      "0 2 0 0 0 0 0\n",
      is_disk, nullptr, record);
  EXPECT_EQ(record.disk_read_operations, 10);
  EXPECT_EQ(record.disk_read_bytes, 16 * 512);
  EXPECT_EQ(record.disk_write_operations, 20);
  EXPECT_EQ(record.disk_write_bytes, 32 * 512);
}

TEST(Resources, ThrottlingOfBothVersions) {
  ResourceRecord none, second, first;
  read_throttling("usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n", none);
  EXPECT_EQ(none.throttled_s, -1);
  read_throttling("nr_periods 9\nnr_throttled 3\nthrottled_usec 2500000\n", second);
  EXPECT_DOUBLE_EQ(second.throttled_s, 2.5);
  read_throttling("nr_periods 9\nnr_throttled 3\nthrottled_time 2500000000\n", first);
  EXPECT_DOUBLE_EQ(first.throttled_s, 2.5);
}

TEST(Resources, AnyTextWillDo) {
  for (const char* text :
       {"", "\n\n", "cpu", "cpu a b c d e f g h", ":", "lo:", "x y z", "MemTotal:"}) {
    ResourceRecord record;
    read_host_cpu(text, record);
    read_host_memory(text, record);
    read_process_io(text, record);
    read_network(text, record);
    read_throttling(text, record);
  }
}

TEST(Resources, OfThisProcess) {
  const ResourceRecord before = sample_resources();
  EXPECT_GT(before.memory_bytes, 0);
  EXPECT_GE(before.peak_memory_bytes, before.memory_bytes / 2);
  EXPECT_GT(before.host_memory_total_bytes, before.host_memory_bytes);
  EXPECT_GT(before.host_cores, 0);
  volatile double work = 0;
  for (int i = 0; i < 50'000'000; ++i) work = work + 1;
  const ResourceRecord after = sample_resources();
  EXPECT_GT(after.cpu_s, before.cpu_s);
  EXPECT_GT(after.read_operations, before.read_operations);
}

}  // namespace
}  // namespace convoy
