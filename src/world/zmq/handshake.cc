#include "world/zmq/handshake.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.h"

namespace convoy {

Nonce fresh_nonce() {
  Nonce nonce;
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), kNonceBytes) == 1,
        "no random bytes");
  return nonce;
}

Code Handshake::code(const char* role) const {
  std::string text = fmt::format("convoy {} {} {} {} ", role, job_id, client, server);
  text.append(reinterpret_cast<const char*>(client_nonce.data()), kNonceBytes);
  text.append(reinterpret_cast<const char*>(server_nonce.data()), kNonceBytes);
  Code code;
  unsigned int length = kCodeBytes;
  CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(),
             reinterpret_cast<unsigned char*>(code.data()), &length) != nullptr,
        "HMAC failed");
  return code;
}

bool same_code(const Code& code, std::span<const std::byte> given) {
  return given.size() == kCodeBytes && CRYPTO_memcmp(code.data(), given.data(), kCodeBytes) == 0;
}

}  // namespace convoy
