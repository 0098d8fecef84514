#include "kernels/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <dnnl.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/cgroup.h"
#include "kernels/parallel.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

TEST(Cpu, IsDescribedConsistently) {
  const Cpu& found = cpu();
  EXPECT_FALSE(found.model.empty());
  EXPECT_GE(found.cores, 1);
  EXPECT_GT(found.memory_bytes, 64u << 20);
  EXPECT_TRUE(found.avx2) << "the build's baseline";
  if (found.amx_works) {
    EXPECT_TRUE(found.amx_bf16);
    EXPECT_EQ(found.isa(), "amx");
  } else {
    EXPECT_NE(found.isa(), "amx");
  }
  EXPECT_EQ(&found, &cpu()) << "found once";
}

TEST(Cpu, NamesTheWidestIsa) {
  Cpu one;
  EXPECT_EQ(one.isa(), "x86-64");
  one.avx2 = true;
  EXPECT_EQ(one.isa(), "avx2");
  one.avx512 = true;
  EXPECT_EQ(one.isa(), "avx512");
  one.avx512_bf16 = true;
  one.amx_bf16 = true;  // announced is not enough
  EXPECT_EQ(one.isa(), "avx512_bf16");
  one.amx_works = true;
  EXPECT_EQ(one.isa(), "amx");
}

TEST(Cpu, CountsCoresOfItsAffinityOnly) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_LE(cpu().cores, CPU_COUNT(&set));
}

// A bf16 convolution of ones: an inner output is the sum of 64 channels x 9 taps.
bool bf16_convolution_is_right() {
  using namespace dnnl;
  using dt = memory::data_type;
  engine engine(engine::kind::cpu, 0);
  stream stream(engine);
  const memory::dims in{2, 64, 8, 8}, weight{64, 64, 3, 3}, out{2, 64, 8, 8}, one{1, 1};
  const memory::desc in_any(in, dt::bf16, memory::format_tag::any);
  const memory::desc weight_any(weight, dt::bf16, memory::format_tag::any);
  const memory::desc out_any(out, dt::bf16, memory::format_tag::any);
  const convolution_forward::desc desc(prop_kind::forward_training, algorithm::convolution_direct,
                                       in_any, weight_any, out_any, one, one, one);
  const convolution_forward::primitive_desc primitive(desc, engine);
  const auto ones = [&](const memory::dims& dims, const memory::desc& wanted) {
    memory plain({dims, dt::f32, memory::format_tag::nchw}, engine);
    memory stored(wanted, engine);
    float* values = static_cast<float*>(plain.get_data_handle());
    std::fill_n(values, plain.get_desc().get_size() / sizeof(float), 1.0f);
    reorder(plain, stored).execute(stream, plain, stored);
    return stored;
  };
  memory source = ones(in, primitive.src_desc());
  memory weights = ones(weight, primitive.weights_desc());
  memory stored(primitive.dst_desc(), engine);
  memory plain({out, dt::f32, memory::format_tag::nchw}, engine);
  convolution_forward(primitive).execute(
      stream, {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, stored}});
  reorder(stored, plain).execute(stream, stored, plain);
  stream.wait();
  const float* values = static_cast<const float*>(plain.get_data_handle());
  return values[3 * 8 + 3] == 64 * 9 && values[0] == 64 * 4;
}

// In a process of its own, since the crash this guards against is SIGILL, and oneDNN takes its cap
// only before first use.
TEST(CpuDeathTest, OnednnRunsBf16WhereItsAmxWouldCrash) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (!cpu().avx512) {
    EXPECT_FALSE(cap_onednn_isa()) << "nothing to cap";
    return;
  }
  EXPECT_EXIT(
      {
        const bool capped = cap_onednn_isa();
        if (capped != (cpu().amx_bf16 && !cpu().amx_palette)) std::_Exit(3);
        std::_Exit(bf16_convolution_is_right() ? 0 : 4);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Threads, CanBeSetAndDefaultToAllCores) {
  const int before = threads();
  set_threads(1);
  EXPECT_EQ(threads(), 1);
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  set_threads(0);
  EXPECT_EQ(threads(), cpu().cores);
  set_threads(before);
}

class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "convoy-cgroup-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
};

TEST_F(Cgroup, WithoutFilesThereIsNoLimit) {
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_EQ(limits.cpus, CgroupLimits{}.cpus);
  EXPECT_EQ(limits.memory_bytes, CgroupLimits{}.memory_bytes);
}

TEST_F(Cgroup, Version2TakesTheSmallestOnTheWayUp) {
  write("proc/self/cgroup", "0::/service/job\n");
  write("sys/fs/cgroup/service/job/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/service/job/memory.max", "4294967296\n");
  write("sys/fs/cgroup/service/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/service/memory.max", "max\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_DOUBLE_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 4294967296u);
}

TEST_F(Cgroup, Version1InAContainerWhosePathIsTheHosts) {
  write("proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:cpuset:/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_DOUBLE_EQ(limits.cpus, 2);
  EXPECT_EQ(limits.memory_bytes, 1073741824u);
}

TEST_F(Cgroup, Version1SaysNoneWithMinusOneAndAHugeNumber) {
  write("proc/self/cgroup", "4:memory:/\n3:cpu:/\ngarbage\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_EQ(limits.cpus, CgroupLimits{}.cpus);
  EXPECT_EQ(limits.memory_bytes, CgroupLimits{}.memory_bytes);
}

}  // namespace
}  // namespace convoy
