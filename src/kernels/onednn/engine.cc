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
  return Desc({batch, shape.channels, shape.height, shape.width}, Memory::data_type::f32,
              Tag::nchw);
}

Desc vector_desc(std::int64_t count) { return Desc({count}, Memory::data_type::f32, Tag::a); }

dnnl::primitive_attr scratchpad_attr(bool relu) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (relu) {
    dnnl::post_ops post;
    post.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(post);
  }
  return attr;
}

void Call::argument(int name, const Desc& desc) {
  if (desc.get_size() == 0) return;
  arguments_.insert_or_assign(name, Memory(desc, engine(), nullptr));
}

void Call::point(int name, const void* data) {
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) return;
  if (found->second.get_data_handle() != data)
    found->second.set_data_handle(const_cast<void*>(data));
}

void Call::execute() { primitive_.execute(stream(), arguments_); }

Call make_reorder(const Desc& from, const Desc& to) {
  dnnl::reorder::primitive_desc desc(engine(), from, engine(), to);
  Call call{dnnl::reorder(desc)};
  call.argument(DNNL_ARG_FROM, from);
  call.argument(DNNL_ARG_TO, to);
  return call;
}

std::string Call::kernel() const {
  const char* name = nullptr;
  const auto status = dnnl_primitive_desc_query(primitive_.get_primitive_desc(),
                                                dnnl_query_impl_info_str, 0, &name);
  CHECK(status == dnnl_success, "oneDNN does not name its kernel");
  return name;
}

PrimitivePass::PrimitivePass(dnnl::primitive primitive, const Desc& scratchpad)
    : call_(std::move(primitive)) {
  call_.argument(DNNL_ARG_SCRATCHPAD, scratchpad);
  scratch_bytes_ = (scratchpad.get_size() + 63) / 64 * 64;
}

void PrimitivePass::input(int name, const Desc& lies_as, const Desc& wanted) {
  operand(name, lies_as, wanted, true);
}

void PrimitivePass::output(int name, const Desc& lies_as, const Desc& made) {
  operand(name, lies_as, made, false);
}

void PrimitivePass::operand(int name, const Desc& lies_as, const Desc& used, bool before) {
  call_.argument(name, used);
  if (lies_as == used) return;
  conversions_.push_back({name, before, scratch_bytes_,
                          before ? make_reorder(lies_as, used) : make_reorder(used, lies_as)});
  scratch_bytes_ += (used.get_size() + 63) / 64 * 64;
}

void PrimitivePass::run(std::initializer_list<Operand> operands, std::byte* scratch) {
  call_.point(DNNL_ARG_SCRATCHPAD, scratch);
  for (const Operand& operand : operands) call_.point(operand.name, operand.data);
  for (Conversion& conversion : conversions_) {
    for (const Operand& operand : operands)
      if (operand.name == conversion.name)
        conversion.reorder.point(conversion.before ? DNNL_ARG_FROM : DNNL_ARG_TO, operand.data);
    conversion.reorder.point(conversion.before ? DNNL_ARG_TO : DNNL_ARG_FROM,
                             scratch + conversion.offset);
    call_.point(conversion.name, scratch + conversion.offset);
    if (conversion.before) conversion.reorder.execute();
  }
  call_.execute();
  for (Conversion& conversion : conversions_)
    if (!conversion.before) conversion.reorder.execute();
}

}  // namespace convoy::onednn
