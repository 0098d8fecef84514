// A live page beside another command.
#pragma once

#include <memory>
#include <string>

#include "report/live_server.h"

namespace convoy {

// What `--serve [[ADDRESS:]PORT]` asks for; empty: the default port. Throws ConfigError.
LiveOptions parse_serve(const std::string& text);

// Starts the page on the store, which is made if there is none, and tells its address on standard
// error.
std::unique_ptr<LiveServer> serve_meanwhile(LiveOptions options, const std::string& store);

}  // namespace convoy
