// Any bytes as a frame between ranks, and as a message of the rendezvous: refused, or read as what
// encodes to the same bytes, with a payload whose place lies inside its message.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "world/zmq/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace convoy;
  const std::span bytes = std::as_bytes(std::span(data, size));
  const std::size_t cut = std::min(size, kFrameHeadBytes);
  if (const auto frame = decode_frame(bytes.first(cut), bytes.subspan(cut))) {
    const FrameHead again = encode_frame(*frame);
    if (!std::equal(again.begin(), again.end(), bytes.begin())) std::abort();
    if (frame->payload.size() > kSegmentBytes || frame->tag > kLargestTag) std::abort();
    if (frame->kind == FrameKind::segment || frame->kind == FrameKind::eager)
      if (frame->offset > frame->total || frame->payload.size() > frame->total - frame->offset)
        std::abort();
  }
  if (const auto message = decode_control(bytes)) {
    const std::vector<std::byte> again = encode_control(*message);
    if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) std::abort();
  }
  return 0;
}
