// The live page: a web server on a run store, with lists and documents of runs, a stream of what
// changes, a way to stop a run, and /metrics for Prometheus. docs/live.md describes it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace convoy {

inline constexpr int kDefaultPort = 8180;

struct LiveOptions {
  std::filesystem::path store = {};
  std::string host = "127.0.0.1";
  int port = kDefaultPort;  // 0: any that is free
  // Who shows it may look and stop runs. Empty: everybody who reaches a loopback address may; for
  // another address a random one is made.
  std::string token = {};
};

// Serves from threads of its own until it is destroyed.
class LiveServer {
 public:
  // Throws ConfigError where it cannot listen, DataError where there is no store.
  explicit LiveServer(LiveOptions options);
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  // What a browser opens, with the token.
  std::string address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace convoy
