// elastor_serve: a model behind the Open Inference Protocol (docs/use/serving.md).
#include <gflags/gflags.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/exhausted.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/process/build_info.h"
#include "core/process/command_line.h"
#include "core/process/standard_streams.h"
#include "core/process/stop_signals.h"
#include "trainer/score/elastor_score.h"
#include "trainer/serve/follower.h"
#include "trainer/serve/http_server.h"
#include "trainer/serve/service.h"

DEFINE_string(model, "", "the folder of a trained model, RUN/model");
DEFINE_string(
    follow, "",
    "in place of --model: a folder of publications (publish.path), whose newest version is "
    "served; the server is ready once it has a base");
DEFINE_string(
    rows, "FLOAT32",
    "embedding rows of --model: FLOAT32 keeps them as they are; INT8, INT4: makes them "
    "smaller, so that scores differ a little; with --follow the run decides (publish.rows)");
DEFINE_double(follow_interval_s, 1, "seconds between two looks into the folder of --follow");
DEFINE_string(name, "model", "the model's name in paths, /v2/models/NAME");
DEFINE_string(host, "127.0.0.1", "the address to listen on; 0.0.0.0: every IPv4 address");
DEFINE_int32(port, 8000, "the port to listen on; 0: the system chooses a free one");
DEFINE_int32(threads, 0, "threads that answer requests; 0: one a core");
DEFINE_int64(max_connections, 256, "open connections; more are turned away with code 503");
DEFINE_int64(max_body_bytes, 4 << 20, "bytes of a request's body; each connection may hold them");
DEFINE_int64(max_rows, 4096, "rows of a request");
DEFINE_double(request_timeout_s, 10,
              "seconds for a request to arrive, and for its answer to leave");
DEFINE_double(idle_timeout_s, 75, "seconds after which a connection without a request is closed");
DEFINE_double(drain_delay_s, 0,
              "seconds from SIGTERM, when the server is no longer ready, until it takes no more "
              "connections; for load balancers that ask whether it is ready");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "serve_main.cc";
constexpr char kUsage[] =
    "elastor_serve --model=RUN/model | --follow=PUBLICATIONS: scores rows over HTTP by the Open "
    "Inference Protocol\n"
    "(docs/use/serving.md). It has no authentication and no TLS. It listens on loopback unless\n"
    "--host says more; put a reverse proxy between it and others. SIGTERM ends it in order.\n";

template <typename T>
Status CheckRange(const char* flag, T value, T least, T most) {
  if (value >= least && value <= most) return OkStatus();
  return UserError(Format("--%s=%.10g: expected %.10g to %.10g", flag, static_cast<double>(value),
                          static_cast<double>(least), static_cast<double>(most)));
}

Status CheckFlags() {
  if (FLAGS_model.empty() && FLAGS_follow.empty()) {
    return UserError(
        "--model: expected the folder of a model, RUN/model, or --follow=PUBLICATIONS");
  }
  if (!FLAGS_model.empty() && !FLAGS_follow.empty()) {
    return UserError("--model and --follow: expected one of them");
  }
  if (FLAGS_rows != "FLOAT32" && !FLAGS_follow.empty()) {
    return UserError("--rows=" + FLAGS_rows + " and --follow: expected publish.rows in the run");
  }
  ELASTOR_RETURN_IF_ERROR(CheckRange("follow_interval_s", FLAGS_follow_interval_s, 0.01, 86400.0));
  const bool good = std::ranges::all_of(FLAGS_name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
  if (FLAGS_name.empty() || !good) {
    return UserError("--name=" + FLAGS_name + ": expected letters, digits, '_', '-' and '.'");
  }
  if (FLAGS_host.empty()) return UserError("--host: expected an address");
  constexpr double kDay = 86400;
  ELASTOR_RETURN_IF_ERROR(CheckRange("port", FLAGS_port, 0, 65535));
  ELASTOR_RETURN_IF_ERROR(CheckRange("threads", FLAGS_threads, 0, 1024));
  ELASTOR_RETURN_IF_ERROR(
      CheckRange<int64_t>("max_connections", FLAGS_max_connections, 1, 1'000'000));
  ELASTOR_RETURN_IF_ERROR(
      CheckRange<int64_t>("max_body_bytes", FLAGS_max_body_bytes, 1, int64_t{1} << 30));
  ELASTOR_RETURN_IF_ERROR(CheckRange<int64_t>("max_rows", FLAGS_max_rows, 1, 1'000'000));
  ELASTOR_RETURN_IF_ERROR(CheckRange("request_timeout_s", FLAGS_request_timeout_s, 0.1, kDay));
  ELASTOR_RETURN_IF_ERROR(CheckRange("idle_timeout_s", FLAGS_idle_timeout_s, 0.1, kDay));
  return CheckRange("drain_delay_s", FLAGS_drain_delay_s, 0.0, kDay);
}

// When the model was written.
std::time_t WrittenAt(const std::string& folder) {
  struct stat manifest = {};
  const std::string path = DirectoryToRead(folder) + "/manifest.json";
  return stat(path.c_str(), &manifest) == 0 ? manifest.st_mtime : std::time(nullptr);
}

Status Serve() {
  ELASTOR_RETURN_IF_ERROR(CheckFlags());
  HttpOptions http;
  http.host = FLAGS_host;
  http.port = FLAGS_port;
  http.threads = FLAGS_threads > 0
                     ? FLAGS_threads
                     : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  http.max_connections = FLAGS_max_connections;
  http.max_body_bytes = FLAGS_max_body_bytes;
  http.request_timeout_s = FLAGS_request_timeout_s;
  http.idle_timeout_s = FLAGS_idle_timeout_s;
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server, HttpServer::Bind(http));

  elastor_model* opened = nullptr;
  if (!FLAGS_model.empty()) {
    char error[1024] = "";
    if (const int code = elastor_open_with_rows(FLAGS_model.c_str(), FLAGS_rows.c_str(), &opened,
                                                error, sizeof(error));
        code != ELASTOR_OK) {
      return Status(static_cast<StatusCode>(code), error);
    }
  }
  const std::unique_ptr<elastor_model, void (*)(elastor_model*)> model(opened, elastor_close);
  const bool follows = model == nullptr;
  Service service(
      {FLAGS_name, FLAGS_max_rows, follows ? std::time_t{0} : WrittenAt(FLAGS_model), follows});
  if (!follows) service.SetModel(model.get());
  ELASTOR_RETURN_IF_ERROR(
      server->Listen([&](const HttpRequest& request) { return service.Answer(request); },
                     [&](int code) { service.CountAnswer(code); }));
  RememberStopSignals();
  const bool bracketed = FLAGS_host.find(':') != std::string::npos;
  ELASTOR_RETURN_IF_ERROR(WriteToStdout(StrCat(
      "elastor_serve: http://", bracketed ? "[" : "", FLAGS_host, bracketed ? "]" : "", ":",
      server->port(), "/v2/models/", FLAGS_name,
      follows ? " follows " + FLAGS_follow : StrCat(" version ", elastor_digest(model.get())), ", ",
      CountText(http.threads, "thread"), ", no authentication\n")));
  std::optional<Follower> follower;
  if (follows) {
    follower.emplace(FLAGS_follow, FLAGS_follow_interval_s, &service, [](const std::string& line) {
      std::fprintf(stderr, "elastor_serve: %s\n", line.c_str());
    });
  }
  Clock::time_point stopped;
  server->Run([&] {
    service.SetConnections(server->connections());
    if (StopSignal() == 0) return false;
    if (stopped == Clock::time_point()) {
      stopped = Clock::now();
      service.Stop();
    }
    return SecondsSince(stopped) >= FLAGS_drain_delay_s;
  });
  return OkStatus();
}

Status RunCommand(const std::vector<std::string>& arguments) {
  ELASTOR_ASSIGN_OR_RETURN(const CommandLine command_line,
                           ParseCommandLine(arguments, kSourceFile));
  if (command_line.help) return WriteToStdout(kUsage + FlagsHelp(kSourceFile));
  if (command_line.version) return WriteToStdout(VersionText("elastor_serve"));
  return Serve();
}

int Main(int argc, char** argv) {
  RaiseStackLimit();
  PrepareStandardStreams();
  StartLog(argv[0]);
  const Status status = RunCommand(std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "elastor_serve: %s\n", status.message().c_str());
  return static_cast<int>(status.code());
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) { return elastor::Main(argc, argv); }
