#include "kernels/onednn/engine.h"

#include "base/check.h"
#include "kernels/cpu.h"

namespace convoy::onednn {

dnnl::engine& engine() {
  static const bool capped = cap_onednn_isa();
  static dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  (void)capped;
  return instance;
}

dnnl::stream& stream() {
  static thread_local dnnl::stream instance(engine());
  return instance;
}

int block() {
  static const int size = cpu().avx512 ? 16 : 8;
  return size;
}

bool is_blocked(const Shape& shape) { return shape.area() > 1 || shape.channels % block() == 0; }

std::size_t value_floats(const Shape& shape) {
  if (!is_blocked(shape)) return shape.count();
  const std::size_t padded = std::size_t(shape.channels + block() - 1) / block() * block();
  return padded * shape.area();
}

Desc value_desc(const Shape& shape, int batch) {
  const Tag blocked = block() == 16 ? Tag::nChw16c : Tag::nChw8c;
  return Desc({batch, shape.channels, shape.height, shape.width}, Memory::data_type::f32,
              is_blocked(shape) ? blocked : Tag::nchw);
}

Desc plain_images_desc(const Shape& shape, int batch) {
  return Desc({batch, shape.channels, shape.height, shape.width}, Memory::data_type::f32, Tag::nchw);
}

Desc vector_desc(std::int64_t count) { return Desc({count}, Memory::data_type::f32, Tag::a); }

bool same(const Desc& a, const Desc& b) { return a == b; }

dnnl::primitive_attr scratchpad_attr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

void Call::argument(int name, const Desc& desc) {
  if (desc.get_size() == 0) return;
  arguments_.insert_or_assign(name, Memory(desc, engine(), nullptr));
}

void Call::point(int name, const void* data) {
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) return;
  if (found->second.get_data_handle() != data) found->second.set_data_handle(const_cast<void*>(data));
}

void Call::execute() { primitive_.execute(stream(), arguments_); }

Call make_reorder(const Desc& from, const Desc& to) {
  dnnl::reorder::primitive_desc desc(engine(), from, engine(), to);
  Call call{dnnl::reorder(desc)};
  call.argument(DNNL_ARG_FROM, from);
  call.argument(DNNL_ARG_TO, to);
  return call;
}

}  // namespace convoy::onednn
