#ifndef ELASTOR_TRAINER_SERVE_SERVICE_H_
#define ELASTOR_TRAINER_SERVE_SERVICE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/clock.h"
#include "trainer/score/elastor_score.h"
#include "trainer/serve/http_server.h"

namespace elastor {

struct ServiceOptions {
  std::string name;         // the model's, in paths
  int64_t max_rows = 0;     // of a request
  std::time_t written = 0;  // when the model was written
  bool follows = false;     // whether it follows a folder of publications
};

// The version of a model that follows a folder of publications.
struct FollowedVersion {
  uint64_t number = 0;
  uint64_t lag = 0;         // publications in the folder that are not taken yet
  std::time_t written = 0;  // when it was written; 0: there is none yet
};

// Counts of what a server did, as text for Prometheus. Thread-safe.
class ServiceMetrics {
 public:
  void CountAnswer(int code);
  // An inference request that took so long; `rows` were scored, 0 on an error.
  void CountInference(double seconds, int64_t rows);
  std::string Text() const;

 private:
  static constexpr std::array kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                         0.1,    0.25,  0.5,    1.0,   2.5,  5.0,   10.0};

  mutable std::mutex mutex_;
  std::map<int, int64_t> answers_;                       // by code
  std::array<int64_t, kBounds.size() + 1> latencies_{};  // by the first bound that is not exceeded
  double seconds_ = 0;
  int64_t rows_ = 0;
};

// The endpoints of the Open Inference Protocol for one model, and /metrics. Thread-safe.
class Service {
 public:
  // Not ready before SetModel.
  explicit Service(const ServiceOptions& options) : options_(options) {}

  // `model` outlives the service.
  void SetModel(const elastor_model* model) { model_ = model; }
  void SetFollowed(const FollowedVersion& version);
  void CountUpdates(uint64_t count, double seconds);
  void CountFailedUpdate();

  HttpResponse Answer(const HttpRequest& request);
  void CountAnswer(int code) { metrics_.CountAnswer(code); }
  void SetConnections(int64_t connections) { connections_ = connections; }
  // From now on the server is not ready.
  void Stop() { ready_ = false; }

 private:
  HttpResponse AnswerModel(std::string path, const HttpRequest& request);
  // The model for one request, which no update changes; null: there is none, or no memory for it.
  using Held = std::unique_ptr<elastor_model, void (*)(elastor_model*)>;
  Held Hold() const;
  HttpResponse Ready() const;
  std::string MetricsText() const;

  std::atomic<const elastor_model*> model_ = nullptr;
  const ServiceOptions options_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<bool> ready_ = true;
  std::atomic<int64_t> connections_ = 0;
  ServiceMetrics metrics_;

  mutable std::mutex mutex_;
  FollowedVersion followed_;  // these are guarded by mutex_
  uint64_t updates_ = 0;
  uint64_t failed_updates_ = 0;
  double update_seconds_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SERVE_SERVICE_H_
