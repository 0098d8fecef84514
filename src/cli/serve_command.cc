// convoy serve: the runs of a store as a live page.
#include <poll.h>

#include <charconv>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/serve.h"
#include "measure/store.h"
#include "report/live_server.h"
#include "train/interrupt.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy serve                                (http://127.0.0.1:8180/, this machine only)
  convoy serve --store other/convoy.db --port 0
  convoy serve --host 0.0.0.0                 (from everywhere, with the token it prints)
  convoy train --serve ...                    (the same, while it trains)
Prometheus reads /metrics. Ctrl-C ends it.)";

void run_serve(const LiveOptions& options) {
  const InterruptGuard interrupt(false);
  const LiveServer server(options);
  fmt::print("{}\n", server.address());
  std::fflush(stdout);
  while (!interrupt.requested()) ::poll(nullptr, 0, 200);
  throw Interrupted();
}

}  // namespace

LiveOptions parse_serve(const std::string& text) {
  LiveOptions options;
  if (text.empty()) return options;
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos) options.host = text.substr(0, colon);
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const char* end = port.data() + port.size();
  const auto [rest, error] = std::from_chars(port.data(), end, options.port);
  if (error != std::errc{} || rest != end || options.port < 0 || options.port > 65535 ||
      options.host.empty())
    throw ConfigError(
        "--serve {}: takes a port from 0 (any that is free) to 65535, or ADDRESS:PORT", text);
  return options;
}

std::unique_ptr<LiveServer> serve_meanwhile(LiveOptions options, const std::string& store) {
  if (store == "none")
    throw ConfigError("--serve shows what is recorded, and --store none records nothing");
  options.store = store;
  Store(options.store, Access::create);
  auto server = std::make_unique<LiveServer>(std::move(options));
  tell(stderr, fmt::format("live page: {}\n", server->address()));
  return server;
}

void add_serve_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("serve", "Show the runs as a live page");
  const auto options = std::make_shared<LiveOptions>();
  const auto store = std::make_shared<std::string>(kDefaultStore);
  command->add_option("--store", *store, "the run store")->type_name("FILE")->capture_default_str();
  command->add_option("--port", options->port, "0: any that is free")
      ->type_name("PORT")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--host", options->host,
                   "address to listen on; others than loopback need a token")
      ->type_name("ADDRESS")
      ->capture_default_str();
  command->add_option("--token", options->token, "what a browser must bring; made up if needed")
      ->type_name("TEXT");
  command->footer(kExamples);
  command->callback([options, store] {
    options->store = *store;
    run_serve(*options);
  });
}

}  // namespace convoy
