#include "report/live_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/made_up/made_up_run.h"

namespace convoy {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class LiveServerTest : public testing::Test {
 protected:
  LiveServerTest() { add_run(store_, {.name = "first", .steps = 20}); }
  ~LiveServerTest() override {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path_.string() + end);
  }

  void serve(LiveOptions options = {}) {
    options.store = path_;
    options.port = 0;
    server_ = std::make_unique<LiveServer>(options);
    const std::string address = server_->address();
    port_ = std::atoi(address.substr(address.rfind(':') + 1).c_str());
  }
  httplib::Client client() const {
    httplib::Client client("127.0.0.1", port_);
    client.set_read_timeout(20, 0);
    return client;
  }
  nlohmann::json get_json(const std::string& path) const {
    const auto result = client().Get(path);
    return result ? nlohmann::json::parse(result->body, nullptr, false) : nlohmann::json();
  }
  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("{}-{}.db", testing::UnitTest::GetInstance()->current_test_info()->name(),
                  ::getpid());
  Store store_{path_, Access::create};
  std::unique_ptr<LiveServer> server_;
  int port_ = 0;
};

TEST_F(LiveServerTest, AnswersWithPageListAndDocument) {
  serve();
  const auto page = client().Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, StartsWith("<!doctype html>"));
  EXPECT_EQ(page->get_header_value("X-Frame-Options"), "DENY");
  EXPECT_EQ(get_json("/api/runs")["runs"][0]["name"], "first");
  EXPECT_EQ(get_json("/api/runs/1")["steps_table"]["step"].size(), 20u);
  EXPECT_THAT(get_json("/api/runs/99")["error"], HasSubstr("there is no run"));
}

TEST_F(LiveServerTest, KnowsNoFiles) {
  serve();
  for (const char* path :
       {"/../../etc/passwd", "/..%2f..%2fetc/passwd", "/api/runs/../../etc/passwd",
        "/%2e%2e/etc/passwd", "/etc/passwd", "/api/runs/1%00", "/api/runs/x"}) {
    const auto result = client().Get(path);
    ASSERT_TRUE(result) << path;
    EXPECT_THAT(result->status, testing::AnyOf(400, 404)) << path;
    EXPECT_THAT(result->body, Not(HasSubstr("root:"))) << path;
  }
}

TEST_F(LiveServerTest, OnlyWhoBringsTheTokenComesIn) {
  serve({.token = "right-token"});
  EXPECT_THAT(server_->address(), HasSubstr("?token=right-token"));
  EXPECT_EQ(client().Get("/")->status, 401);
  EXPECT_EQ(client().Get("/?token=wrong-token")->status, 401);
  EXPECT_EQ(client().Get("/api/runs")->status, 401);
  EXPECT_EQ(client().Get("/api/runs?token=right-token")->status, 401);  // it belongs in no log
  EXPECT_EQ(client().Get("/api/runs", {{"Authorization", "Bearer right-toke"}})->status, 401);
  EXPECT_EQ(client().Get("/metrics", {{"Authorization", "Bearer right-token"}})->status, 200);
  const auto entry = client().Get("/?token=right-token");
  EXPECT_EQ(entry->status, 303);
  EXPECT_EQ(entry->get_header_value("Location"), "/");
  const std::string cookie = entry->get_header_value("Set-Cookie");
  EXPECT_THAT(cookie, HasSubstr("HttpOnly; SameSite=Strict"));
  EXPECT_EQ(client().Get("/", {{"Cookie", cookie.substr(0, cookie.find(';'))}})->status, 200);
}

TEST_F(LiveServerTest, AnAddressThatOthersReachGetsAToken) {
  serve({.host = "0.0.0.0"});
  EXPECT_THAT(server_->address(), testing::ContainsRegex("\\?token=[0-9a-f]{32}$"));
  EXPECT_EQ(client().Get("/")->status, 401);
}

TEST_F(LiveServerTest, PagesFromElsewhereAreRefused) {
  serve();
  // A name that somebody pointed at this machine.
  EXPECT_EQ(client().Get("/api/runs", {{"Host", "evil.example"}})->status, 403);
  // A form on another page.
  EXPECT_EQ(client().Post("/api/runs/1/stop", "", "text/plain")->status, 403);
}

TEST_F(LiveServerTest, LongRequestsAreRefused) {
  serve();
  const std::string much(1 << 20, 'x');
  const auto body = client().Post("/api/runs/1/stop", {{"X-Convoy", "stop"}}, much, "text/plain");
  if (body) {  // otherwise the connection was closed
    EXPECT_THAT(body->status, testing::AnyOf(400, 413));
  }
  const auto address = client().Get("/" + std::string(9000, 'a'));
  ASSERT_TRUE(address);
  EXPECT_THAT(address->status, testing::AnyOf(400, 404, 414));
  EXPECT_EQ(client().Get("/")->status, 200);
}

TEST_F(LiveServerTest, SlowRequestsKeepNobodyWaiting) {
  serve();
  std::vector<int> sockets;
  for (int i = 0; i < 20; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(std::uint16_t(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_GT(::write(fd, "GET / HT", 8), 0);  // and no more
    sockets.push_back(fd);
  }
  EXPECT_EQ(client().Get("/api/runs")->status, 200);
  for (const int fd : sockets) ::close(fd);
}

TEST_F(LiveServerTest, APortThatIsTakenIsSaidInOneLine) {
  serve();
  try {
    LiveServer second({.store = path_, .port = port_});
    FAIL() << "two servers share a port";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("port {} of 127.0.0.1", port_)));
  }
}

TEST_F(LiveServerTest, WithoutAStoreItDoesNotStart) {
  EXPECT_THROW(LiveServer({.store = "no/such/store.db", .port = 0}), DataError);
}

TEST_F(LiveServerTest, TheStreamTellsWhatChanges) {
  serve();
  std::string stream;
  bool added = false;
  httplib::Client listener = client();
  listener.Get("/api/events", [&](const char* data, std::size_t size) {
    stream.append(data, size);
    if (!added && stream.find("\"first\"") != std::string::npos) {
      add_run(store_, {.name = "second", .steps = 5});
      added = true;
    }
    return stream.find("\"second\"") == std::string::npos;  // false: enough
  });
  EXPECT_THAT(stream, StartsWith("event: runs\ndata: [{"));
  EXPECT_THAT(stream, HasSubstr("\"second\""));
}

TEST_F(LiveServerTest, StoppingSendsWhatCtrlCWould) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);
    for (;;) ::pause();
  }
  add_run(store_, {.name = "stoppable", .pid = child});
  serve();
  EXPECT_EQ(get_json("/api/runs")["runs"][0]["state"], "running");
  const auto result = client().Post("/api/runs/2/stop", {{"X-Convoy", "stop"}}, "", "text/plain");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 202);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  const auto again = client().Post("/api/runs/2/stop", {{"X-Convoy", "stop"}}, "", "text/plain");
  EXPECT_EQ(again->status, 404);
  EXPECT_THAT(again->body, HasSubstr("is not running"));
}

TEST_F(LiveServerTest, AProcessThatTookTheNumberIsLeftAlone) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  add_run(store_, {.name = "gone", .pid = child});
  store_.database().run("UPDATE runs SET written_unix_s = 1000");  // long before the process began
  serve();
  const auto result = client().Post("/api/runs/2/stop", {{"X-Convoy", "stop"}}, "", "text/plain");
  EXPECT_EQ(result->status, 404);
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(LiveServerTest, MetricsOfWhatRuns) {
  add_run(store_, {.name = "a \"quoted\\ name\"", .steps = 7, .pid = ::getpid()});
  serve();
  const std::string text = client().Get("/metrics")->body;
  EXPECT_THAT(text, HasSubstr("convoy_runs{state=\"finished\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("convoy_runs{state=\"running\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE convoy_steps_total counter\n"));
  EXPECT_THAT(text, HasSubstr(R"(convoy_steps_total{run="a \"quoted\\ name\"",model="mnist_cnn")"));
  EXPECT_THAT(text, HasSubstr(R"(rank="1",phase="backward"} 0.042)"));
}

}  // namespace
}  // namespace convoy
