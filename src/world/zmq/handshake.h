// How a rank proves that it has the job's key on a connection whose data travels in plain: by a
// code (HMAC-SHA256, keyed by the job's secret) over fresh nonces of both sides. A recorded proof
// is worth nothing on another connection.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "world/job.h"
#include "world/zmq/message.h"

namespace convoy {

using Nonce = std::array<std::byte, kNonceBytes>;
using Code = std::array<std::byte, kCodeBytes>;

Nonce fresh_nonce();

// A connection from rank `client` to rank `server`.
struct Handshake {
  std::string secret;
  std::string job_id;
  int client = 0;
  int server = 0;
  Nonce client_nonce{};
  Nonce server_nonce{};

  Code server_code() const { return code("server"); }  // travels in challenge
  Code client_code() const { return code("client"); }  // travels in proof

 private:
  Code code(const char* role) const;
};

// In a time that does not tell where they differ.
bool same_code(const Code& code, std::span<const std::byte> given);

}  // namespace convoy
