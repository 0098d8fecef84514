#include "world/zmq/gatekeeper.h"

#include <atomic>
#include <vector>

#include "world/runtime.h"

namespace convoy {
namespace {

void send_text(ZmqSocket& socket, std::string_view text, bool more) {
  ZmqMessage part(std::as_bytes(std::span(text)));
  socket.send(part, more);
}

}  // namespace

Gatekeeper::Gatekeeper(ZmqContext& context, const JobKeys& keys)
    : public_key_(keys.public_key), socket_(context, ZmqSocket::Kind::rep) {
  socket_.bind("inproc://zeromq.zap.01");
  thread_ = std::thread([this] { serve(); });
}

Gatekeeper::~Gatekeeper() {
  end_.ring();
  thread_.join();
}

// Request: version, id, domain, address, identity, mechanism, credentials.
// Answer: version, id, status, text, user, metadata.
void Gatekeeper::serve() {
  std::vector<ZmqMessage> parts;
  ZmqSocket* const sockets[] = {&socket_};
  for (;;) {
    while (socket_.recv_all(parts)) {
      const bool admitted = parts.size() == 7 && parts[5].text() == "CURVE" &&
                            z85_text(parts[6].bytes()) == public_key_;
      send_text(socket_, "1.0", true);
      send_text(socket_, parts.size() > 1 ? parts[1].text() : std::string_view(), true);
      send_text(socket_, admitted ? "200" : "400", true);
      send_text(socket_, admitted ? "" : "not the job's key", true);
      send_text(socket_, "", true);
      send_text(socket_, "", false);
    }
    if (end_.rung()) return;
    zmq_sleep(sockets, end_, kForever);
  }
}

}  // namespace convoy
