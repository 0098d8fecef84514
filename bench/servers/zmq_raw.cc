// What ZeroMQ alone does with the messages of a push and pull, over loopback: two processes, each
// with one socket, nothing copied but by ZeroMQ.
//   one way: all messages are sent, the last is acknowledged
//   echo:    each is sent back as it came
//
//   zmq_raw [bytes] [message bytes] [rounds] [curve]
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kKeyText = 41;

struct Keys {
  char public_key[kKeyText] = {}, secret_key[kKeyText] = {};
};

void check(int code, const char* what) {
  if (code == -1) throw std::runtime_error(fmt::format("{}: {}", what, zmq_strerror(errno)));
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Socket {
 public:
  Socket() : context_(zmq_ctx_new()), socket_(zmq_socket(context_, ZMQ_DEALER)) {
    const int unlimited = 0;
    zmq_setsockopt(socket_, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(socket_, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
  }
  ~Socket() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  std::string bind(const Keys* own) {
    if (own) {
      const int yes = 1;
      check(zmq_setsockopt(socket_, ZMQ_CURVE_SERVER, &yes, sizeof yes), "curve");
      check(zmq_setsockopt(socket_, ZMQ_CURVE_SECRETKEY, own->secret_key, kKeyText), "curve");
    }
    check(zmq_bind(socket_, "tcp://127.0.0.1:*"), "bind");
    char endpoint[128] = {};
    std::size_t length = sizeof endpoint;
    check(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, endpoint, &length), "endpoint");
    return endpoint;
  }
  void connect(const std::string& endpoint, const Keys* own, const Keys* other) {
    if (own) {
      check(zmq_setsockopt(socket_, ZMQ_CURVE_PUBLICKEY, own->public_key, kKeyText), "curve");
      check(zmq_setsockopt(socket_, ZMQ_CURVE_SECRETKEY, own->secret_key, kKeyText), "curve");
      check(zmq_setsockopt(socket_, ZMQ_CURVE_SERVERKEY, other->public_key, kKeyText), "curve");
    }
    check(zmq_connect(socket_, endpoint.c_str()), "connect");
  }
  // The bytes stay until they came back or were acknowledged.
  void send(std::byte* bytes, std::size_t count) {
    zmq_msg_t message;
    check(zmq_msg_init_data(
              &message, bytes, count, [](void*, void*) {}, nullptr),
          "message");
    check(zmq_msg_send(&message, socket_, 0), "send");
  }
  std::size_t receive() {
    zmq_msg_t message;
    zmq_msg_init(&message);
    check(zmq_msg_recv(&message, socket_, 0), "receive");
    const std::size_t bytes = zmq_msg_size(&message);
    zmq_msg_close(&message);
    return bytes;
  }
  void send_back() {
    zmq_msg_t message;
    zmq_msg_init(&message);
    check(zmq_msg_recv(&message, socket_, 0), "receive");
    check(zmq_msg_send(&message, socket_, 0), "send");
  }

 private:
  void* context_;
  void* socket_;
};

struct Options {
  std::size_t bytes = 100 << 20, message_bytes = 4 << 20;
  int rounds = 10;
  bool curve = false;

  std::size_t messages() const { return (bytes + message_bytes - 1) / message_bytes; }
};

void answer(const Options& options, int to_parent, const Keys& own) {
  Socket socket;
  const std::string endpoint = socket.bind(options.curve ? &own : nullptr);
  if (write(to_parent, endpoint.c_str(), endpoint.size() + 1) < 0) _exit(1);
  for (int round = 0; round < options.rounds + 1; ++round) {
    for (std::size_t i = 0; i < options.messages(); ++i) socket.receive();
    std::byte byte{};
    socket.send(&byte, 1);
    for (std::size_t i = 0; i < options.messages(); ++i) socket.send_back();
  }
  socket.receive();  // all that came back has arrived
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void measure(const Options& options, int from_child, const Keys& own, const Keys& other) {
  char endpoint[128] = {};
  if (read(from_child, endpoint, sizeof endpoint) <= 0) throw std::runtime_error("no endpoint");
  Socket socket;
  socket.connect(endpoint, options.curve ? &own : nullptr, &other);
  std::vector<std::byte> data(options.messages() * options.message_bytes, std::byte{1});
  const auto send_all = [&] {
    for (std::size_t i = 0; i < options.messages(); ++i)
      socket.send(data.data() + i * options.message_bytes, options.message_bytes);
  };
  std::vector<double> one_way_s, echo_s;
  for (int round = 0; round < options.rounds + 1; ++round) {  // the first connects
    const double start_s = now_s();
    send_all();
    socket.receive();
    const double middle_s = now_s();
    send_all();
    for (std::size_t i = 0; i < options.messages(); ++i)
      if (socket.receive() != options.message_bytes) throw std::runtime_error("another message");
    if (round == 0) continue;
    one_way_s.push_back(middle_s - start_s);
    echo_s.push_back(now_s() - middle_s);
  }
  std::byte byte{};
  socket.send(&byte, 1);
  const double gb = double(data.size()) * 1e-9;
  fmt::print("{{\"one_way_gb_s\": {}, \"echo_gb_s\": {}, \"curve\": {}, \"messages\": {}}}\n",
             gb / median(one_way_s), 2 * gb / median(echo_s), options.curve, options.messages());
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  if (count > 1) options.bytes = std::strtoull(arguments[1], nullptr, 10);
  if (count > 2) options.message_bytes = std::strtoull(arguments[2], nullptr, 10);
  if (count > 3) options.rounds = std::max(1, std::atoi(arguments[3]));
  options.curve = count > 4 && std::string(arguments[4]) == "curve";
  Keys here, there;
  zmq_curve_keypair(here.public_key, here.secret_key);
  zmq_curve_keypair(there.public_key, there.secret_key);
  int ends[2];
  if (options.message_bytes == 0 || pipe(ends) != 0) return 1;
  const pid_t child = fork();
  try {
    if (child == 0) {
      answer(options, ends[1], there);
      return 0;
    }
    measure(options, ends[0], here, there);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
