#ifndef ELASTOR_TRAINER_SERVE_HTTP_SERVER_H_
#define ELASTOR_TRAINER_SERVE_HTTP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace elastor {

struct HttpRequest {
  std::string method;       // "GET"
  std::string path;         // without the query
  std::string json_length;  // the header Inference-Header-Content-Length; empty: not there
  std::string_view body;
};

struct HttpResponse {
  int code = 200;
  std::string body = {};
  std::string content_type = "application/json";
  std::string json_length = {};  // the same header; empty: none
  std::string allow = {};        // the header Allow; empty: none
};

// The body of every error: {"error": "..."}.
HttpResponse ErrorResponse(int code, const std::string& error);

struct HttpOptions {
  std::string host;
  int port = 0;  // 0: the system chooses one
  int threads = 1;
  int64_t max_connections = 1;
  int64_t max_body_bytes = 0;
  // For a whole request to arrive, from its first byte on; also for a response to be taken.
  double request_timeout_s = 0;
  double idle_timeout_s = 0;  // between two requests of a connection
};

// A server of HTTP/1.0 and 1.1 on Linux, without TLS. Threads share all connections, and one that
// waits for its client holds none of them: a slow client costs a connection and its buffers until
// the timeout, never a thread.
class HttpServer {
 public:
  // Is called on any of the threads, also on several at once.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  // Is called with the code of every answer, also of those to what is no request.
  using Counter = std::function<void(int code)>;

  // Takes the address, but no connection yet. User error in one line if the address is not to be
  // had, or if the process may not open so many files.
  static StatusOr<std::unique_ptr<HttpServer>> Bind(const HttpOptions& options);
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
  // Starts the threads, and takes connections from now on. `handler` and `counter` outlive Run.
  // Machine error in one line if the system refuses a thread.
  virtual Status Listen(Handler handler, Counter counter) = 0;
  // Serves until `stops` returns true, which is asked ten times a second. Then takes no connection
  // any more, answers the requests that have begun, and returns.
  virtual void Run(const std::function<bool()>& stops) = 0;
  virtual int64_t connections() const = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SERVE_HTTP_SERVER_H_
