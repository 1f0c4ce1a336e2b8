#include "trainer/serve/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/exhausted.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace elastor {
namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::string_body>;

constexpr size_t kReadBytes = 64 << 10;
constexpr uint32_t kHeaderBytes = 16 << 10;
constexpr int kTickMilliseconds = 100;
constexpr int kTakenAtOnce = 64;
constexpr rlim_t kOtherFiles = 64;  // besides connections
constexpr char kJsonLength[] = "Inference-Header-Content-Length";

enum class Phase {
  kIdle,       // no byte of a request
  kReading,    // part of a request
  kAnswering,  // the handler works
  kWriting,    // part of the response is sent
  kLeaving,    // the response is sent; what the client still sends is passed over until it leaves
};

// Bytes of a connection in both directions. One thread at a time has it: epoll's ONESHOT hands it
// on, and `turns` orders their memory. The clock's thread looks at the other atomics.
struct Connection {
  explicit Connection(int socket) : socket(socket) {}

  const int socket;
  std::optional<Parser> parser;
  std::string json_length;
  std::string input;  // read, but not parsed
  std::string output;
  size_t sent = 0;
  bool hungry = true;       // the parser needs more than `input`
  bool closes = false;      // after the response
  bool encouraged = false;  // was told to send the body
  std::atomic<Phase> phase = Phase::kIdle;
  std::atomic<double> due = 0;  // seconds on the server's clock
  std::atomic<bool> late = false;
  std::atomic<uint32_t> turns = 0;
};

Status AddressError(const HttpOptions& options, const std::string& what) {
  return UserError(StrCat("--host=", options.host, " --port=", options.port, ": ", what));
}

std::string Bytes(const HttpResponse& response, bool with_body, bool closes) {
  const auto reason = http::obsolete_reason(http::int_to_status(response.code));
  std::string text = StrCat(
      "HTTP/1.1 ", response.code, " ", std::string_view(reason.data(), reason.size()),
      "\r\nContent-Type: ", response.content_type, "\r\nContent-Length: ", response.body.size(),
      "\r\nConnection: ", closes ? "close" : "keep-alive", "\r\n");
  if (!response.json_length.empty()) {
    StrAppend(&text, kJsonLength, ": ", response.json_length, "\r\n");
  }
  if (!response.allow.empty()) StrAppend(&text, "Allow: ", response.allow, "\r\n");
  text += "\r\n";
  return with_body ? text + response.body : text;
}

class EpollServer final : public HttpServer {
 public:
  explicit EpollServer(const HttpOptions& options) : options_(options) {}
  ~EpollServer() override {
    EndThreads();
    for (const int descriptor : {listener_, epoll_, end_}) {
      if (descriptor >= 0) close(descriptor);
    }
  }

  Status Bind();
  int port() const override { return port_; }
  Status Listen(Handler handler, Counter counter) override;
  void Run(const std::function<bool()>& stops) override;
  int64_t connections() const override { return count_; }

 private:
  double Now() const { return SecondsSince(start_); }
  void Take();
  void Turn(int socket);
  void LookAtClock();
  void EndThreads();
  void Work();
  void Serve(Connection* connection);
  // Each returns whether there is more to do at once; else the connection waits or is gone.
  bool Write(Connection* connection);
  bool Read(Connection* connection, std::vector<char>* buffer);
  bool Parse(Connection* connection);
  bool CheckHeader(Connection* connection);
  void Answer(Connection* connection);
  void Respond(Connection* connection, const HttpResponse& response, bool with_body);
  void Refuse(Connection* connection, int code, const std::string& error) {
    connection->closes = true;
    Respond(connection, ErrorResponse(code, error), /*with_body=*/true);
  }
  void Enter(Connection* connection, Phase phase);
  void Wait(Connection* connection, uint32_t events);
  void Close(Connection* connection);
  void MakeParser(Connection* connection) const;

  const HttpOptions options_;
  const Clock::time_point start_ = Clock::now();
  int port_ = 0;
  int listener_ = -1;
  int epoll_ = -1;
  int end_ = -1;  // readable: the threads end
  Handler handler_;
  Counter counter_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> count_ = 0;

  std::mutex mutex_;
  std::unordered_map<int, std::unique_ptr<Connection>> open_;  // guarded by mutex_; by socket
};

Status EpollServer::Bind() {
  rlimit files = {};
  const rlim_t needed = static_cast<rlim_t>(options_.max_connections) + kOtherFiles;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < needed) {
    if (files.rlim_max < needed) {
      return UserError(StrCat("--max_connections=", options_.max_connections, ": needs ", needed,
                              " open files, and this process may have ", files.rlim_max,
                              " (ulimit -n); expected at most ",
                              files.rlim_max - std::min(files.rlim_max, kOtherFiles)));
    }
    files.rlim_cur = needed;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(options_.port);
  if (const int error = getaddrinfo(options_.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return AddressError(options_,
                        StrCat(gai_strerror(error), "; expected an address of this host"));
  }
  listener_ = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool bound = listener_ >= 0 && bind(listener_, found->ai_addr, found->ai_addrlen) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (!bound) {
    return AddressError(options_, StrCat(std::strerror(error),
                                         "; expected an address of this host and a free port"));
  }
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  char service[NI_MAXSERV] = "";
  getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size);
  getnameinfo(reinterpret_cast<sockaddr*>(&name), size, nullptr, 0, service, sizeof(service),
              NI_NUMERICSERV);
  port_ = std::atoi(service);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ < 0 || end_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, end_, &event) != 0) {
    return MachineError(StrCat("epoll: ", std::strerror(errno)));
  }
  return OkStatus();
}

Status EpollServer::Listen(Handler handler, Counter counter) {
  handler_ = std::move(handler);
  counter_ = std::move(counter);
  const int asked = options_.threads;
  try {
    threads_.reserve(static_cast<size_t>(asked));
    for (int i = 1; i <= asked; ++i) {
      threads_.push_back(StartThread(i, asked, "requests", [this] { Work(); }));
    }
  } catch (const std::exception& refused) {
    return MachineError(StrCat("--threads=", asked, ": the system refuses thread ",
                               threads_.size() + 1, " (", refused.what(),
                               "); expected fewer threads or a higher limit"));
  }
  if (listen(listener_, SOMAXCONN) == 0) return OkStatus();
  return AddressError(options_, StrCat(std::strerror(errno), "; expected a free port"));
}

void EpollServer::Run(const std::function<bool()>& stops) {
  double looked = Now();
  const auto look = [&] {
    if (Now() - looked < kTickMilliseconds / 1e3) return;
    looked = Now();
    LookAtClock();
  };
  while (!stops()) {
    pollfd ready = {.fd = listener_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kTickMilliseconds) > 0) Take();
    look();
  }
  close(std::exchange(listener_, -1));
  stopping_ = true;
  // A request may take the time to arrive and its response the time to be taken.
  const double end = Now() + 2 * options_.request_timeout_s;
  while (count_ > 0 && Now() < end) {
    LookAtClock();
    poll(nullptr, 0, kTickMilliseconds / 10);
  }
  EndThreads();
  for (const auto& [socket, connection] : open_) close(socket);
  open_.clear();
}

void EpollServer::EndThreads() {
  const uint64_t one = 1;
  while (end_ >= 0 && write(end_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// Takes connections that wait.
void EpollServer::Take() {
  for (int i = 0; i < kTakenAtOnce; ++i) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      // The system is out of files or memory, which others may give back.
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        poll(nullptr, 0, kTickMilliseconds);
      }
      return;
    }
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    Connection* connection = nullptr;
    try {
      if (count_ >= options_.max_connections) {
        Turn(socket);
        continue;
      }
      auto owned = std::make_unique<Connection>(socket);
      connection = owned.get();
      MakeParser(connection);
      Enter(connection, Phase::kIdle);
      const std::lock_guard lock(mutex_);
      open_[socket] = std::move(owned);
      ++count_;
    } catch (const std::bad_alloc&) {
      close(socket);
      poll(nullptr, 0, kTickMilliseconds);
      return;
    }
    epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = {.ptr = connection}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) Close(connection);
  }
}

// Turns a connection away.
void EpollServer::Turn(int socket) {
  const std::string bytes =
      Bytes(ErrorResponse(503, StrCat("the server has its ", options_.max_connections,
                                      " connections; try again later")),
            /*with_body=*/true, /*closes=*/true);
  counter_(503);
  // A new socket's buffer has room for it.
  if (send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) shutdown(socket, SHUT_WR);
  close(socket);
}

// Wakes the threads for connections whose time is over: a shut socket is readable.
void EpollServer::LookAtClock() {
  const double now = Now();
  const std::lock_guard lock(mutex_);
  for (const auto& [socket, connection] : open_) {
    const Phase phase = connection->phase;
    if (phase == Phase::kAnswering) continue;
    const bool leaves = stopping_ && (phase == Phase::kIdle || phase == Phase::kLeaving);
    if (!leaves && now < connection->due) continue;
    connection->late = true;
    // The first leaves what has arrived readable, and lets an answer out.
    const bool speaks = phase == Phase::kIdle || phase == Phase::kReading;
    shutdown(socket, speaks ? SHUT_RD : SHUT_RDWR);
  }
}

void EpollServer::Work() {
  for (;;) {
    epoll_event event;
    const int count = epoll_wait(epoll_, &event, 1, /*timeout=*/-1);
    if (count <= 0) continue;
    if (event.data.ptr == nullptr) return;
    auto* const connection = static_cast<Connection*>(event.data.ptr);
    connection->turns.load(std::memory_order_acquire);
    try {
      Serve(connection);
    } catch (const std::bad_alloc&) {
      Close(connection);
    }
  }
}

void EpollServer::Serve(Connection* connection) {
  thread_local std::vector<char> buffer(kReadBytes);
  for (;;) {
    const bool more = connection->phase == Phase::kWriting ? Write(connection)
                      : connection->hungry                 ? Read(connection, &buffer)
                                                           : Parse(connection);
    if (!more) return;
  }
}

bool EpollServer::Write(Connection* connection) {
  while (connection->sent < connection->output.size()) {
    const ssize_t count = send(connection->socket, connection->output.data() + connection->sent,
                               connection->output.size() - connection->sent, MSG_NOSIGNAL);
    if (count >= 0) {
      connection->sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      Wait(connection, EPOLLOUT);
      return false;
    } else if (errno != EINTR) {
      Close(connection);
      return false;
    }
  }
  connection->output = std::string();
  if (connection->closes) {
    // Closed at once, bytes that the client still sends would take the response from it.
    shutdown(connection->socket, SHUT_WR);
    connection->hungry = true;
    Enter(connection, Phase::kLeaving);
    return true;
  }
  connection->hungry = connection->input.empty();
  if (connection->hungry) connection->input = std::string();
  MakeParser(connection);
  Enter(connection, Phase::kIdle);
  // The next request takes its turn among other connections: a socket is nearly always writable.
  Wait(connection, connection->hungry ? EPOLLIN : EPOLLIN | EPOLLOUT);
  return false;
}

bool EpollServer::Read(Connection* connection, std::vector<char>* buffer) {
  const ssize_t count = recv(connection->socket, buffer->data(), buffer->size(), 0);
  if (count < 0 && errno == EINTR) return true;
  const bool passed_over = connection->phase == Phase::kLeaving && count > 0;
  if (passed_over || (count < 0 && errno == EAGAIN)) {
    Wait(connection, EPOLLIN);
    return false;
  }
  if (count > 0) {
    connection->input.append(buffer->data(), static_cast<size_t>(count));
    connection->hungry = false;
    return true;
  }
  if (count == 0 && connection->phase == Phase::kReading && connection->late) {
    Refuse(connection, 408,
           Format("the request did not arrive within %g s", options_.request_timeout_s));
    return true;
  }
  Close(connection);
  return false;
}

// Gives the parser what has been read, and answers a request that is whole.
bool EpollServer::Parse(Connection* connection) {
  Parser& parser = *connection->parser;
  if (connection->phase == Phase::kIdle) Enter(connection, Phase::kReading);
  boost::system::error_code error;
  while (!connection->input.empty() && !parser.is_done() && !error) {
    connection->input.erase(0, parser.put(boost::asio::buffer(connection->input), error));
    if (parser.is_header_done() && !parser.eager()) {
      if (!CheckHeader(connection)) return true;
      parser.eager(true);
    }
  }
  if (parser.is_done()) {
    Answer(connection);
    return true;
  }
  if (error == http::error::body_limit) {
    Refuse(connection, 413,
           StrCat("the body is too large; expected at most ", options_.max_body_bytes, " bytes"));
    return true;
  }
  if (error == http::error::header_limit) {
    Refuse(connection, 431,
           StrCat("the header is too large; expected at most ", kHeaderBytes, " bytes"));
    return true;
  }
  if (error == http::error::need_more && parser.is_header_done() &&
      connection->input.size() > kHeaderBytes) {
    Refuse(connection, 431,
           StrCat("a chunk's header or the trailer is too large; expected at most ", kHeaderBytes,
                  " bytes"));
    return true;
  }
  if (error && error != http::error::need_more) {
    Refuse(connection, 400, "not a request of HTTP: " + error.message());
    return true;
  }
  if (parser.is_header_done() && !connection->encouraged && parser.get().version() >= 11 &&
      boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    connection->encouraged = true;
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    // Without it, the client sends the body a little later.
    [[maybe_unused]] const ssize_t sent =
        send(connection->socket, kContinue.data(), kContinue.size(), MSG_NOSIGNAL);
  }
  connection->hungry = true;
  return true;
}

// Looks at a header once it is there: the fields of a trailer are added to it later. Returns
// whether the request goes on.
bool EpollServer::CheckHeader(Connection* connection) {
  const Parser::value_type& message = connection->parser->get();
  // The parser takes any other encoding for no body, and what follows for the next request.
  const auto encodings = message.count(http::field::transfer_encoding);
  const auto encoding = message[http::field::transfer_encoding];
  if (encodings > 1 || (encodings == 1 && !boost::beast::iequals(encoding, "chunked"))) {
    Refuse(connection, 501, "Transfer-Encoding: expected chunked");
    return false;
  }
  if (message.count(kJsonLength) > 1) {
    Refuse(connection, 400, StrCat(kJsonLength, ": is there twice"));
    return false;
  }
  const auto length = message[kJsonLength];
  connection->json_length.assign(length.data(), length.size());
  return true;
}

void EpollServer::Answer(Connection* connection) {
  const Parser::value_type& message = connection->parser->get();
  connection->closes = stopping_ || !message.keep_alive();
  const bool with_body = message.method() != http::verb::head;
  const auto text = [](boost::beast::string_view view) {
    return std::string(view.data(), view.size());
  };
  HttpRequest request;
  request.method = with_body ? text(message.method_string()) : "GET";
  request.path = text(message.target());
  request.path.resize(std::min(request.path.size(), request.path.find('?')));
  request.json_length = connection->json_length;
  request.body = message.body();
  Enter(connection, Phase::kAnswering);
  const auto encoding = message[http::field::content_encoding];
  HttpResponse response;
  if (!encoding.empty() && !boost::beast::iequals(encoding, "identity")) {
    response = ErrorResponse(415, "Content-Encoding: found " + text(encoding) + "; expected none");
  } else {
    response = handler_(request);
  }
  Respond(connection, response, with_body);
}

void EpollServer::Respond(Connection* connection, const HttpResponse& response, bool with_body) {
  counter_(response.code);
  connection->parser.reset();
  connection->output = Bytes(response, with_body, connection->closes);
  connection->sent = 0;
  Enter(connection, Phase::kWriting);
}

void EpollServer::Enter(Connection* connection, Phase phase) {
  connection->due =
      Now() + (phase == Phase::kIdle ? options_.idle_timeout_s : options_.request_timeout_s);
  connection->phase = phase;
}

// The last that a thread does with a connection.
void EpollServer::Wait(Connection* connection, uint32_t events) {
  epoll_event event = {.events = events | EPOLLONESHOT, .data = {.ptr = connection}};
  const int socket = connection->socket;
  connection->turns.fetch_add(1, std::memory_order_release);
  epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &event);
}

void EpollServer::Close(Connection* connection) {
  std::unique_ptr<Connection> owned;
  const std::lock_guard lock(mutex_);
  const auto place = open_.find(connection->socket);
  owned = std::move(place->second);
  open_.erase(place);
  close(owned->socket);
  --count_;
}

void EpollServer::MakeParser(Connection* connection) const {
  connection->parser.emplace();
  connection->parser->header_limit(kHeaderBytes);
  connection->parser->body_limit(static_cast<uint64_t>(options_.max_body_bytes));
  connection->encouraged = false;
}

}  // namespace

HttpResponse ErrorResponse(int code, const std::string& error) {
  Json body;
  body["error"] = error;
  return {.code = code, .body = body.dump()};
}

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Bind(const HttpOptions& options) {
  auto server = std::make_unique<EpollServer>(options);
  ELASTOR_RETURN_IF_ERROR(server->Bind());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace elastor
