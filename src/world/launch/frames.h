// What the launcher and the agent of a host tell each other, over the agent's standard input and
// output. A frame is its kind, a rank, a length and that many bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "world/job.h"

namespace convoy {

// An agent begins with this line; what a login shell says before it is passed over.
inline constexpr std::string_view kAgentHello = "convoy-agent-1\n";

enum class FrameKind : char {
  // to the agent
  part = 'P',    // a Part; the first frame
  signal = 'S',  // a number as text: for every rank of the host
  // from the agent
  note = 'N',     // how it divides the cores
  started = 'B',  // a process id as text
  output = 'O',   // whole lines of a rank
  errors = 'E',   // the same, from its standard error
  ended = 'X',    // an End
  failed = 'F',   // why it cannot do its part; the exit code in place of a rank
  done = 'Q'      // all ranks have ended, and nothing comes after
};

struct Frame {
  FrameKind kind = FrameKind::done;
  int rank = 0;
  std::string bytes;
};

std::string encode_frame(FrameKind kind, int rank, std::string_view bytes);

// Puts frames together again.
class FrameReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  // The next whole frame. Throws TransportError where the bytes are no frames.
  std::optional<Frame> next();
  // Passes over all bytes up to the end of `mark`; false while it has not come.
  bool skip_past(std::string_view mark);
  const std::string& unread() const { return bytes_; }

 private:
  std::string bytes_;
  std::size_t done_ = 0;
};

// What a host has to do.
struct Part {
  Job job;                 // as the host's first rank gets it
  std::vector<int> ranks;  // of this host
  std::vector<std::string> command;
  std::string folder;                              // where the ranks run
  std::map<std::string, std::string> environment;  // beside what the host has
  int cores_per_rank = 0;                          // 0: divide all

  std::string encode() const;
  static Part decode(const std::string& bytes);  // throws ConfigError
};

// How a rank ended.
struct End {
  int pid = 0;
  int code = 0;    // of its exit
  int signal = 0;  // that killed it; 0: none
  int lost = -1;   // the peer whose loss made it end, by its own report; -1: none
  std::string why = {};

  bool failed() const { return code != 0 || signal != 0; }
  int exit_code() const { return signal ? 128 + signal : code; }
  std::string encode() const;
  static End decode(const std::string& bytes);  // throws ConfigError
};

}  // namespace convoy
