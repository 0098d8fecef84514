// What every oneDNN op needs: the engine, memory descriptors in our layout, and a primitive with
// its arguments.
//
// Layout of a value: [batch][channels / B][height][width][B] f32, where B is 16 (AVX-512) or 8
// (AVX2) and the last block is padded with zeros; where height = width = 1 and the channels are no
// multiple of B it is plain [batch][channels].
#pragma once

#include <cstddef>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/shape.h"

namespace convoy::onednn {

using Memory = dnnl::memory;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;

dnnl::engine& engine();
dnnl::stream& stream();

int block();  // B
bool is_blocked(const Shape& shape);
std::size_t value_floats(const Shape& shape);           // of one sample, padding included
Desc value_desc(const Shape& shape, int batch);         // 4-D
Desc plain_images_desc(const Shape& shape, int batch);  // NCHW
Desc vector_desc(std::int64_t count);

// All primitives take their scratchpad from the caller, who has one for all. `relu`: applied to the
// result.
dnnl::primitive_attr scratchpad_attr(bool relu = false);

// A primitive and its arguments; the data handles change from call to call.
class Call {
 public:
  Call() = default;
  explicit Call(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

  void argument(int name, const Desc& desc);
  void point(int name, const void* data);
  void execute();
  std::string kernel() const;  // oneDNN's name of it
  explicit operator bool() const { return bool(primitive_); }

 private:
  dnnl::primitive primitive_;
  std::unordered_map<int, Memory> arguments_;
};

// Copies between two layouts of the same tensor.
Call make_reorder(const Desc& from, const Desc& to);

// A step of an op's work on operands named as oneDNN names them.
class Pass {
 public:
  struct Operand {
    int name;
    const void* data;
  };

  virtual ~Pass() = default;
  virtual void run(std::initializer_list<Operand> operands, std::byte* scratch) = 0;
  virtual std::size_t scratch_bytes() const = 0;
  virtual std::string kernel() const = 0;
};

// A primitive among operands that may lie in other layouts than it wants: those are converted on
// the way, inputs before it runs and outputs after, through the caller's scratch memory.
class PrimitivePass final : public Pass {
 public:
  PrimitivePass(dnnl::primitive primitive, const Desc& scratchpad);

  void input(int name, const Desc& lies_as, const Desc& wanted);
  void output(int name, const Desc& lies_as, const Desc& made);

  void run(std::initializer_list<Operand> operands, std::byte* scratch) override;
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string kernel() const override { return call_.kernel(); }

 private:
  struct Conversion {
    int name;
    bool before;         // an input
    std::size_t offset;  // of the converted copy in scratch
    Call reorder;
  };
  void operand(int name, const Desc& lies_as, const Desc& used, bool before);

  Call call_;
  std::vector<Conversion> conversions_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace convoy::onednn
