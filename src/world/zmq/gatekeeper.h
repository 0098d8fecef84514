// Admits to the CURVE sockets of a context whoever has the job's keys, and nobody else (ZeroMQ's
// authentication protocol, ZAP). In a thread of its own. Make it before the first socket is bound.
#pragma once

#include <string>
#include <thread>

#include "world/zmq/socket.h"

namespace convoy {

class Gatekeeper {
 public:
  Gatekeeper(ZmqContext& context, const JobKeys& keys);
  ~Gatekeeper();

 private:
  void serve();

  const std::string public_key_;
  ZmqSocket socket_;
  Doorbell end_;
  std::thread thread_;
};

}  // namespace convoy
