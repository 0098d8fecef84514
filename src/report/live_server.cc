#include "report/live_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "report/document.h"
#include "report/html.h"
#include "report/live_access.h"
#include "report/metrics.h"
#include "report/stop_run.h"

namespace convoy {
namespace {

constexpr int kThreads = 32;  // a request or an open stream each
constexpr int kMostStreams = 12;
constexpr std::size_t kMaxRequestBytes = 1 << 14;
constexpr auto kPeriod = std::chrono::seconds(1);  // between two looks at the store

std::string to_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void answer(httplib::Response& response, const nlohmann::json& json, int status = 200) {
  response.status = status;
  response.set_content(to_text(json), "application/json");
}

void refuse(httplib::Response& response, int status, const std::string& why) {
  answer(response, {{"error", why}}, status);
}

// What changed since the last look, as summaries.
class Changes {
 public:
  explicit Changes(const std::filesystem::path& store) : store_(store, Access::read) {}

  std::vector<nlohmann::json> look() {
    const bool first = seen_.empty();
    std::vector<nlohmann::json> changed;
    if (first) changed = run_summaries(store_);
    std::map<std::int64_t, std::string> seen;
    for (const RunRow& run : store_.list()) {
      const std::string mark =
          fmt::format("{} {} {}", run_state(run), run.steps, run.written_unix_s);
      const auto before = seen_.find(run.id);
      if (!first && (before == seen_.end() || before->second != mark))
        changed.push_back(run_summary(store_, run));
      seen[run.id] = mark;
    }
    for (const auto& [id, mark] : seen_)
      if (!seen.contains(id)) changed.push_back({{"id", std::to_string(id)}, {"state", "deleted"}});
    seen_ = std::move(seen);
    return changed;
  }

 private:
  Store store_;
  std::map<std::int64_t, std::string> seen_;
};

}  // namespace

class LiveServer::Impl {
 public:
  explicit Impl(LiveOptions options) : options_(std::move(options)) {
    Store(options_.store, Access::read);  // says what is wrong with it, if anything is
    if (options_.token.empty() && !is_loopback(options_.host)) options_.token = random_token();
    if (!options_.token.empty() && !is_token(options_.token))
      throw ConfigError("--token: takes 8 or more letters, digits, '-' and '_'");
    configure();
    listen();
    add_routes();
    thread_ = std::thread([this] {
      server_.listen_after_bind();
      ended_ = true;
    });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stopped_.notify_all();
    // stop() does nothing before listen_after_bind() has begun.
    while (!server_.is_running() && !ended_) std::this_thread::yield();
    server_.stop();
    thread_.join();
  }

  std::string address() const {
    const bool everywhere = options_.host == "0.0.0.0" || options_.host == "::";
    const std::string host = everywhere ? this_host()
                             : options_.host.find(':') != std::string::npos
                                 ? fmt::format("[{}]", options_.host)
                                 : options_.host;
    const std::string token = options_.token.empty() ? "" : "?token=" + options_.token;
    return fmt::format("http://{}:{}/{}", host, port_, token);
  }

 private:
  static std::string this_host() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
  }

  void configure() {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_payload_max_length(kMaxRequestBytes);
    server_.set_read_timeout(5, 0);
    server_.set_write_timeout(10, 0);
    server_.set_keep_alive_timeout(2);
    server_.set_tcp_nodelay(true);
    // Not SO_REUSEPORT, httplib's default, by which two servers would share a port unnoticed.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                                 {"X-Frame-Options", "DENY"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cache-Control", "no-store"}});
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          return let_in(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                           : httplib::Server::HandlerResponse::Handled;
        });
    server_.set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, std::exception_ptr error) {
          try {
            std::rethrow_exception(error);
          } catch (const ConfigError& problem) {
            refuse(response, 404, problem.what());
          } catch (const std::exception& problem) {
            refuse(response, 500, problem.what());
          }
        });
    server_.set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) refuse(response, response.status, "there is no such page");
    });
  }

  void listen() {
    port_ = options_.port;
    if (port_ == 0)
      port_ = server_.bind_to_any_port(options_.host);
    else if (!server_.bind_to_port(options_.host, port_))
      port_ = -1;
    if (port_ < 0)
      throw ConfigError(
          "cannot listen on port {} of {}: another program has it, or it is not ours to use: "
          "choose "
          "another port (0: any that is free)",
          options_.port, options_.host);
  }

  std::string cookie_name() const { return fmt::format("convoy-{}", port_); }

  // True: it may. Otherwise the response says why not, or leads a browser that brought the token to
  // the page, with a cookie instead of it.
  bool let_in(const httplib::Request& request, httplib::Response& response) {
    // A page from elsewhere can make a browser send simple requests only: not with this header.
    if (request.method != "GET" && request.method != "HEAD" && !request.has_header("X-Convoy")) {
      refuse(response, 403, "requests that change something need the header X-Convoy");
      return false;
    }
    if (options_.token.empty()) {
      if (is_loopback_header(request.get_header_value("Host"))) return true;
      refuse(response, 403, "this server answers to 127.0.0.1 and localhost only");
      return false;
    }
    constexpr std::string_view kBearer = "Bearer ";
    const std::string bearer = request.get_header_value("Authorization");
    if (equal_secrets(options_.token, cookie(request.get_header_value("Cookie"), cookie_name())) ||
        (bearer.starts_with(kBearer) &&
         equal_secrets(options_.token, std::string_view(bearer).substr(kBearer.size()))))
      return true;
    if (request.path == "/" && equal_secrets(options_.token, request.get_param_value("token"))) {
      response.set_header("Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/",
                                                    cookie_name(), options_.token));
      response.set_redirect("/", 303);
      return false;
    }
    refuse(response, 401, "a token is needed: open the address that convoy printed");
    return false;
  }

  void add_routes() {
    server_.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(page().data(), page().size(), "text/html; charset=utf-8");
    });
    server_.Get("/api/runs", [this](const httplib::Request&, httplib::Response& response) {
      Store store(options_.store, Access::read);
      answer(response, {{"format", kDocumentFormat}, {"runs", run_summaries(store)}});
    });
    server_.Get(R"(/api/runs/(\d{1,18}))",
                [this](const httplib::Request& request, httplib::Response& response) {
                  Store store(options_.store, Access::read);
                  answer(response, run_document(store, store.find(request.matches[1])));
                });
    server_.Post(R"(/api/runs/(\d{1,18})/stop)",
                 [this](const httplib::Request& request, httplib::Response& response) {
                   Store store(options_.store, Access::read);
                   const RunRow run = store.find(request.matches[1]);
                   stop_run(run);
                   answer(response, {{"stopping", run.name}}, 202);
                 });
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      Store store(options_.store, Access::read);
      response.set_content(prometheus_text(store), "text/plain; version=0.0.4");
    });
    server_.Get("/api/events", [this](const httplib::Request&, httplib::Response& response) {
      open_stream(response);
    });
  }

  // One event for every look at which something had changed; the first has all runs. A comment
  // otherwise, so that a browser that has gone is noticed.
  void open_stream(httplib::Response& response) {
    if (streams_.fetch_add(1) >= kMostStreams) {
      streams_.fetch_sub(1);
      refuse(response, 503, "too many pages are open");
      return;
    }
    const auto changes = std::make_shared<Changes>(options_.store);
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, changes](std::size_t, httplib::DataSink& sink) {
          std::vector<nlohmann::json> changed;
          try {
            changed = changes->look();
          } catch (const DataError&) {
            return false;  // the store is gone or locked: the browser comes again
          }
          const std::string text = changed.empty()
                                       ? ": nothing new\n\n"
                                       : fmt::format("event: runs\ndata: {}\n\n", to_text(changed));
          if (!sink.write(text.data(), text.size())) return false;
          std::unique_lock lock(mutex_);
          return !stopped_.wait_for(lock, kPeriod, [this] { return stopping_; });
        },
        [this](bool) { streams_.fetch_sub(1); });
  }

  LiveOptions options_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::atomic<bool> ended_ = false;
  std::atomic<int> streams_ = 0;
};

LiveServer::LiveServer(LiveOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
LiveServer::~LiveServer() = default;
std::string LiveServer::address() const { return impl_->address(); }

}  // namespace convoy
