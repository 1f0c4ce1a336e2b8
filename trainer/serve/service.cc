#include "trainer/serve/service.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/process/build_info.h"
#include "trainer/serve/inference.h"

namespace elastor {
namespace {

constexpr std::string_view kModels = "/v2/models/";

HttpResponse JsonResponse(const Json& body) { return {.body = body.dump()}; }

HttpResponse NotFound(const std::string& error) { return ErrorResponse(404, error); }

// Makes the answer, if the request has the method that its path asks for.
template <typename Make>
HttpResponse ByMethod(std::string_view method, const HttpRequest& request, const Make& make) {
  if (request.method == method) return make();
  HttpResponse response =
      ErrorResponse(405, StrCat(request.path, ": found ", request.method, "; expected ", method));
  response.allow = method == "GET" ? "GET, HEAD" : method;
  return response;
}

// Takes `word` off the front of a path.
bool Take(std::string_view word, std::string* path) {
  if (!path->starts_with(word)) return false;
  path->erase(0, word.size());
  return true;
}

// The memory of this process in RAM; 0 if the kernel does not tell it.
int64_t ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long pages = 0;
  const int read = std::fscanf(file, "%*d %ld", &pages);
  std::fclose(file);
  return read == 1 ? int64_t{pages} * sysconf(_SC_PAGESIZE) : 0;
}

void AddMetric(const char* name, const char* type, const char* help, std::string* text) {
  StrAppend(text, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void AddValue(const std::string& name, double value, std::string* text) {
  *text += name + Format(" %.17g\n", value);
}

}  // namespace

void ServiceMetrics::CountAnswer(int code) {
  const std::lock_guard lock(mutex_);
  ++answers_[code];
}

void ServiceMetrics::CountInference(double seconds, int64_t rows) {
  const auto bound = std::ranges::lower_bound(kBounds, seconds);
  const std::lock_guard lock(mutex_);
  ++latencies_[static_cast<size_t>(bound - kBounds.begin())];
  seconds_ += seconds;
  rows_ += rows;
}

std::string ServiceMetrics::Text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  AddMetric("elastor_requests_total", "counter", "Answers by code of HTTP.", &text);
  for (const auto& [code, count] : answers_) {
    StrAppend(&text, "elastor_requests_total{code=\"", code, "\"} ", count, "\n");
  }
  AddMetric("elastor_rows_total", "counter", "Rows that were scored.", &text);
  StrAppend(&text, "elastor_rows_total ", rows_, "\n");
  constexpr const char* kLatency = "elastor_inference_duration_seconds";
  AddMetric(kLatency, "histogram",
            "Time of an inference request, from its last byte read to its answer made.", &text);
  int64_t count = 0;
  for (size_t i = 0; i < latencies_.size(); ++i) {
    count += latencies_[i];
    StrAppend(&text, kLatency, "_bucket{le=\"",
              i < kBounds.size() ? Format("%g", kBounds[i]) : std::string("+Inf"), "\"} ", count,
              "\n");
  }
  AddValue(StrCat(kLatency, "_sum"), seconds_, &text);
  StrAppend(&text, kLatency, "_count ", count, "\n");
  return text;
}

HttpResponse Service::Answer(const HttpRequest& request) {
  try {
    std::string path = request.path;
    if (path == "/metrics") {
      return ByMethod("GET", request, [&] {
        return HttpResponse{.body = MetricsText(), .content_type = "text/plain; version=0.0.4"};
      });
    }
    if (path == "/v2" || path == "/v2/") {
      return ByMethod("GET", request, [] {
        Json body;
        body["name"] = "elastor_serve";
        body["version"] = BuildName();
        body["extensions"] = Json::array({"binary_tensor_data"});
        return JsonResponse(body);
      });
    }
    if (path == "/v2/health/live") {
      return ByMethod("GET", request, [] {
        Json body;
        body["live"] = true;
        return JsonResponse(body);
      });
    }
    if (path == "/v2/health/ready") return ByMethod("GET", request, [&] { return Ready(); });
    if (Take(kModels, &path)) return AnswerModel(std::move(path), request);
    return NotFound(StrCat(request.path,
                           ": no such path; expected /v2, /v2/health/live, /v2/health/ready, ",
                           kModels, options_.name, " or /metrics"));
  } catch (const std::bad_alloc&) {
    return ErrorResponse(503, "the system refuses memory");
  }
}

void Service::SetFollowed(const FollowedVersion& version) {
  const std::lock_guard lock(mutex_);
  followed_ = version;
}

void Service::CountUpdates(uint64_t count, double seconds) {
  const std::lock_guard lock(mutex_);
  updates_ += count;
  update_seconds_ += seconds;
}

void Service::CountFailedUpdate() {
  const std::lock_guard lock(mutex_);
  ++failed_updates_;
}

Service::Held Service::Hold() const {
  elastor_model* held = nullptr;
  if (const elastor_model* const model = model_) elastor_hold(model, &held, nullptr, 0);
  return Held(held, elastor_close);
}

HttpResponse Service::AnswerModel(std::string path, const HttpRequest& request) {
  const std::string name = path.substr(0, path.find('/'));
  if (name != options_.name) {
    return NotFound(StrCat("model '", name, "': not here; expected '", options_.name, "'"));
  }
  path.erase(0, name.size());
  const Held model = Hold();
  if (model == nullptr) {
    if (path == "/ready") return ByMethod("GET", request, [&] { return Ready(); });
    return ErrorResponse(503, "no version of the model is there yet");
  }
  const std::string digest = elastor_digest(model.get());
  if (Take("/versions/", &path)) {
    const std::string version = path.substr(0, path.find('/'));
    if (version != digest) {
      return NotFound(StrCat("version '", version, "' of model '", name, "': not here; expected '",
                             digest, "'"));
    }
    path.erase(0, version.size());
  }
  if (path.empty()) {
    return ByMethod("GET", request,
                    [&] { return JsonResponse(ModelMetadata(model.get(), options_.name)); });
  }
  if (path == "/ready") return ByMethod("GET", request, [&] { return Ready(); });
  if (path != "/infer") {
    return NotFound(StrCat(request.path, ": no such path; expected ", kModels, name, "[/versions/",
                           digest, "] alone, with /ready or with /infer"));
  }
  return ByMethod("POST", request, [&] {
    const Clock::time_point start = Clock::now();
    Inferred inferred = Infer(model.get(), options_.name, options_.max_rows, request);
    metrics_.CountInference(SecondsSince(start), inferred.rows);
    return std::move(inferred.response);
  });
}

HttpResponse Service::Ready() const {
  if (!ready_) return ErrorResponse(503, "the server is stopping");
  if (model_ == nullptr) return ErrorResponse(503, "no version of the model is there yet");
  Json body;
  body["ready"] = true;
  return JsonResponse(body);
}

std::string Service::MetricsText() const {
  std::string text = metrics_.Text();
  const auto add = [&](const char* name, const char* help, double value) {
    AddMetric(name, "gauge", help, &text);
    AddValue(name, value, &text);
  };
  FollowedVersion followed = {.written = options_.written};
  if (options_.follows) {
    const std::lock_guard lock(mutex_);
    followed = followed_;
    add("elastor_model_number", "Number of the version among the publications.",
        static_cast<double>(followed.number));
    add("elastor_publications_lag", "Publications in the folder that are not taken.",
        static_cast<double>(followed.lag));
    AddMetric("elastor_updates_total", "counter", "Publications that were taken.", &text);
    StrAppend(&text, "elastor_updates_total ", updates_, "\n");
    AddMetric("elastor_update_seconds_total", "counter", "Time of taking them.", &text);
    AddValue("elastor_update_seconds_total", update_seconds_, &text);
    AddMetric("elastor_failed_updates_total", "counter", "Looks into the folder that failed.",
              &text);
    StrAppend(&text, "elastor_failed_updates_total ", failed_updates_, "\n");
  }
  if (const Held model = Hold(); model != nullptr) {
    AddMetric("elastor_model_info", "gauge", "1; the labels tell the model.", &text);
    StrAppend(&text, "elastor_model_info{model=\"", options_.name, "\",version=\"",
              elastor_digest(model.get()), "\"} 1\n");
  }
  if (followed.written > 0) {
    add("elastor_model_age_seconds", "Time since the model was written.",
        std::difftime(std::time(nullptr), followed.written));
  }
  add("elastor_connections", "Open connections.", static_cast<double>(connections_));
  add("elastor_uptime_seconds", "Time since the server was ready.", SecondsSince(start_));
  add("elastor_resident_memory_bytes", "Memory of the process in RAM.",
      static_cast<double>(ResidentBytes()));
  return text;
}

}  // namespace elastor
