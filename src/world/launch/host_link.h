// The launcher's end of the talk with one agent.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "world/launch/frames.h"
#include "world/launch/lines.h"
#include "world/launch/process.h"

namespace convoy {

class HostLink {
 public:
  // Starts the agent. Throws ConfigError where its command cannot be run.
  HostLink(std::string host, std::vector<std::string> command);
  ~HostLink();  // an agent that is still there is killed, and its ranks with it
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  const std::string& host() const { return host_; }
  bool greeted() const { return greeted_; }  // it has answered as an agent does
  bool done() const { return done_; }        // it has done its part
  bool gone() const { return pid_ == 0; }    // its process has ended
  int from() const { return from_.get(); }
  int errors() const { return errors_.get(); }
  Sink& to() { return to_; }

  void send(FrameKind kind, std::string_view bytes) { to_.add(encode_frame(kind, 0, bytes)); }
  // Nothing more will be sent; an agent that has not ended its part ends it now.
  void hang_up() { to_fd_.reset(); }
  bool hung_up() const { return !to_fd_; }
  void kill();  // the agent's process group

  // Reads what the agent wrote and hands over every frame.
  void receive(const std::function<void(const Frame&)>& take);
  void receive_errors();
  // Looks whether the process has ended; then calls for receive() until all that it wrote is read.
  void reap(const std::function<void()>& receive_rest);

  // Why there is no agent any more: "agent `ssh b` ended with exit code 255: Connection refused".
  std::string last_words() const;

 private:
  std::string host_;
  std::string command_;
  pid_t pid_ = 0;
  int status_ = 0;
  Fd to_fd_, from_, errors_;
  Sink to_;
  FrameReader frames_;
  std::string words_;  // the end of its standard error
  bool greeted_ = false;
  bool done_ = false;
};

}  // namespace convoy
