// convoy report and convoy serve as users meet them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "program.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;

class Report : public testing::Test {
 protected:
  void make_store(const std::string& runs) {
    const Ran made = run_words({CONVOY_MADE_UP_STORE, store_, runs, "50"});
    ASSERT_EQ(made.code, 0) << made.err;
  }
  Ran report(std::vector<std::string> more) {
    more.insert(more.begin(), {"report", "--store", store_});
    return run_convoy(more, {.folder = folder_.path()});
  }
  void expect_refused(const Ran& ran, int code, const std::string& words) {
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_TRUE(ran.one_line()) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(words));
  }

  TemporaryFolder folder_;
  std::string store_ = (folder_ / "store.db").string();
};

TEST_F(Report, IsOneFileOfTheRunsThatWereNamed) {
  make_store("3");
  const Ran ran = report({"1", "mnist_cnn-mnist-3", "-o", "both.html", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.answer().at("runs").size(), 2u);
  EXPECT_EQ(ran.answer().at("bytes"), std::filesystem::file_size(folder_ / "both.html"));
  EXPECT_LT(ran.answer().at("bytes").get<int>(), 5'000'000);
  std::ifstream file(folder_ / "both.html");
  const std::string html{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(html, HasSubstr("mnist_cnn-mnist-1"));
  EXPECT_EQ(html.find("mnist_cnn-mnist-2"), std::string::npos);
  EXPECT_EQ(html.find("https://"), std::string::npos);
}

TEST_F(Report, WithoutANameIsOfTheNewestRun) {
  make_store("2");
  const Ran ran = report({"--document"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.answer().at("runs")[0].at("name"), "mnist_cnn-mnist-2");
  EXPECT_EQ(report({}).out, "report.html\n");  // the folder of the run is gone
}

TEST_F(Report, SaysWhatIsWrong) {
  expect_refused(report({}), 1, "there is no run store yet");
  make_store("2");
  expect_refused(report({"mnist_cnn-mnist-9"}), 2, "there is no run 'mnist_cnn-mnist-9'");
  expect_refused(report({"1", "1"}), 2, "named twice");
  expect_refused(report({"1", "-o", "no/such/folder/r.html"}), 1, "no/such/folder");
  folder_.write("text.db", "this is no database, whatever its name says; it is long enough though");
  expect_refused(run_convoy({"report", "--store", (folder_ / "text.db").string()}), 1, "text.db");
  EXPECT_FALSE(folder_.has_parts());
}

TEST_F(Report, ServingOnATakenPortIsOneLine) {
  make_store("1");
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const std::string words = fmt::format("cannot listen on port {}", port);
  expect_refused(run_convoy({"serve", "--store", store_, "--port", port}), 2, words);
  const Ran train =
      run_convoy({"train", "--model", "shallow", "--data", "synthetic:1x28x28:10:64", "--epochs",
                  "1", "--out", (folder_ / "run").string(), "--store", store_, "--serve", port});
  expect_refused(train, 2, words);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
  ::close(fd);
}

TEST_F(Report, ServingRefusesWhatMakesNoSense) {
  make_store("1");
  expect_refused(run_convoy({"serve", "--store", store_, "--port", "70000"}), 2, "--port");
  expect_refused(run_convoy({"serve", "--store", store_, "--token", "a b"}), 2, "--token");
  expect_refused(run_convoy({"serve", "--store", (folder_ / "none.db").string()}), 1,
                 "there is no run store yet");
  expect_refused(run_convoy({"train", "--model", "shallow", "--data", "synthetic:1x28x28:10:64",
                             "--store", "none", "--serve"}),
                 2, "--store none");
}

}  // namespace
}  // namespace convoy
