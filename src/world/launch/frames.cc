#include "world/launch/frames.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace convoy {
namespace {

using nlohmann::json;

struct Header {
  char kind;
  char zero[3];
  std::int32_t rank;
  std::uint32_t bytes;
};

constexpr std::uint32_t kLargestFrame = 64 << 20;
constexpr std::string_view kKinds = "PSNBOEXFQ";

template <typename Read>
auto read_cbor(const std::string& bytes, const char* what, Read read) {
  try {
    return read(json::from_cbor(bytes));
  } catch (const json::exception& error) {
    throw ConfigError("{} cannot be read: {}", what, error.what());
  }
}

// CBOR, since arguments and folders need not be UTF-8.
std::string to_bytes(const json& value) {
  const std::vector<std::uint8_t> bytes = json::to_cbor(value);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::string encode_frame(FrameKind kind, int rank, std::string_view bytes) {
  const Header header{char(kind), {}, rank, std::uint32_t(bytes.size())};
  std::string frame(sizeof header, '\0');
  std::memcpy(frame.data(), &header, sizeof header);
  frame += bytes;
  return frame;
}

std::optional<Frame> FrameReader::next() {
  Header header{};
  const std::size_t left = bytes_.size() - done_;
  if (left >= sizeof header) {
    std::memcpy(&header, bytes_.data() + done_, sizeof header);
    if (kKinds.find(header.kind) == std::string_view::npos || header.bytes > kLargestFrame)
      throw TransportError("unreadable bytes instead of a frame");
  }
  if (left < sizeof header || left < sizeof header + header.bytes) {
    bytes_.erase(0, std::exchange(done_, 0));
    return std::nullopt;
  }
  Frame frame{FrameKind(header.kind), header.rank,
              bytes_.substr(done_ + sizeof header, header.bytes)};
  done_ += sizeof header + header.bytes;
  return frame;
}

bool FrameReader::skip_past(std::string_view mark) {
  const std::size_t at = bytes_.find(mark);
  if (at == std::string::npos) {
    if (bytes_.size() > kLargestFrame) throw TransportError("endless bytes instead of a frame");
    return false;
  }
  bytes_.erase(0, at + mark.size());
  return true;
}

std::string Part::encode() const {
  return to_bytes({{"job", json::parse(job.to_json())},
                   {"ranks", ranks},
                   {"command", command},
                   {"folder", folder},
                   {"environment", environment},
                   {"cores_per_rank", cores_per_rank}});
}

Part Part::decode(const std::string& bytes) {
  return read_cbor(bytes, "the part of this host", [](const json& value) {
    Part part;
    part.job = Job::from_json(value.at("job").dump());
    value.at("ranks").get_to(part.ranks);
    value.at("command").get_to(part.command);
    value.at("folder").get_to(part.folder);
    value.at("environment").get_to(part.environment);
    value.at("cores_per_rank").get_to(part.cores_per_rank);
    return part;
  });
}

std::string End::encode() const {
  return to_bytes({{"pid", pid}, {"code", code}, {"signal", signal}, {"lost", lost}, {"why", why}});
}

End End::decode(const std::string& bytes) {
  return read_cbor(bytes, "the end of a rank", [](const json& value) {
    return End{value.at("pid"), value.at("code"), value.at("signal"), value.at("lost"),
               value.at("why")};
  });
}

}  // namespace convoy
