// A program that follows publications through the C interface, as they come: PUBLISHED WORK ROWS
// MODE. PUBLISHED is a whole folder of publications, WORK a new one into which they are copied one
// by one. The columns of ROWS, between tabs, are the model's fields; of a model without them, each
// line has the numbers and then the ids of a row.
// Modes:
// - scores: after each publication the updated model and a fresh one must have the same bits. Their
//   scores go into WORK/scores-NUMBER.
// - open: a model is opened in a folder with damages as far as it can be.
// - damage SEED N OTHER: N damages of next deltas are refused, each with a line, and change no
//   score. OTHER has another run's publications, which are refused in the place of these too.
// - small ROWS: the last base, opened with small rows, takes no delta. WORK/scores gets its scores.
// - load T MS S [ROWS]: T threads score ROWS rows a call (64) while a publication comes every MS
//   milliseconds, for S seconds.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "trainer/score/elastor_score.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

[[noreturn]] void End(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

class Scored {
 public:
  explicit Scored(const char* path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines_.push_back(line);
    if (lines_.empty()) End("no rows");
  }
  size_t rows() const { return lines_.size(); }

  // The scores of the rows [first, first + rows). `seconds`, if given, gets the time of the call.
  std::vector<float> Of(const elastor_model* model, size_t first, size_t rows,
                        double* seconds = nullptr) const {
    std::vector<float> scores(rows * elastor_outputs(model));
    char error[512];
    int code;
    Clock::time_point begin;
    if (const size_t fields = elastor_fields(model); fields > 0) {
      std::vector<std::string> texts;
      for (size_t row = first; row < first + rows; ++row) {
        std::istringstream columns(lines_[row]);
        for (size_t i = 0; i < fields; ++i) std::getline(columns, texts.emplace_back(), '\t');
      }
      std::vector<const char*> values;
      for (const std::string& text : texts) values.push_back(text.c_str());
      begin = Clock::now();
      code = elastor_score_values(model, values.data(), rows, scores.data(), error, sizeof(error));
    } else {
      std::vector<float> numeric;
      std::vector<int64_t> ids;
      for (size_t row = first; row < first + rows; ++row) {
        std::istringstream columns(lines_[row]);
        for (size_t i = 0; i < elastor_numeric_fields(model); ++i) {
          columns >> numeric.emplace_back();
        }
        for (size_t i = 0; i < elastor_categorical_fields(model); ++i) {
          columns >> ids.emplace_back();
        }
      }
      begin = Clock::now();
      code = elastor_score_ids(model, numeric.data(), ids.data(), nullptr, rows, scores.data(),
                               error, sizeof(error));
    }
    if (seconds != nullptr) *seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (code != ELASTOR_OK) End(std::string("score: ") + error);
    return scores;
  }
  std::vector<float> All(const elastor_model* model) const { return Of(model, 0, rows()); }

 private:
  std::vector<std::string> lines_;
};

elastor_model* Open(const fs::path& folder) {
  char error[512] = "";
  elastor_model* model;
  if (elastor_open(folder.c_str(), &model, error, sizeof(error)) != ELASTOR_OK) {
    End("open: " + std::string(error));
  }
  return model;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void WriteScores(const std::vector<float>& scores, const fs::path& path) {
  std::ofstream out(path);
  char text[64];
  for (const float score : scores) {
    std::snprintf(text, sizeof(text), "%.9g\n", score);
    out << text;
  }
}

// The folders of every number, deltas first.
std::map<int64_t, std::vector<std::string>> Numbers(const fs::path& published) {
  std::map<int64_t, std::vector<std::string>> numbers;
  for (const auto& entry : fs::directory_iterator(published)) {
    const std::string name = entry.path().filename();
    const size_t dash = name.find('-');
    if (dash == name.npos) continue;
    numbers[std::atoll(name.c_str() + dash + 1)].push_back(name);
  }
  for (auto& [number, names] : numbers) std::sort(names.rbegin(), names.rend());
  return numbers;
}

// As the trainer does: whole under its name, or not there.
void Bring(const fs::path& published, const fs::path& work, const std::string& name) {
  const fs::path partial = work / (name + ".partial");
  fs::remove_all(partial);
  fs::copy(published / name, partial, fs::copy_options::recursive);
  fs::rename(partial, work / name);
}

uint64_t MustUpdate(elastor_model* model, const fs::path& work) {
  char error[512] = "";
  uint64_t version = 0;
  if (elastor_update(model, work.c_str(), &version, error, sizeof(error)) != ELASTOR_OK) {
    End("update: " + std::string(error));
  }
  return version;
}

void FollowScores(const fs::path& published, const fs::path& work, const Scored& rows) {
  elastor_model* model = nullptr;
  elastor_model* held = nullptr;  // an older version
  std::vector<float> of_held;
  size_t compared = 0, deltas = 0;
  for (const auto& [number, names] : Numbers(published)) {
    for (const std::string& name : names) Bring(published, work, name);
    deltas += names.front().starts_with("delta");
    if (model == nullptr) model = Open(work);
    if (MustUpdate(model, work) != static_cast<uint64_t>(number)) End("another version");
    const std::vector<float> updated = rows.All(model);
    elastor_model* const fresh = Open(work);
    if (!SameBits(updated, rows.All(fresh))) End("other bits at number " + std::to_string(number));
    if (std::strcmp(elastor_digest(model), elastor_digest(fresh)) != 0) End("another digest");
    elastor_close(fresh);
    if (held != nullptr && !SameBits(of_held, rows.All(held))) End("a held version changed");
    if (number % 7 == 1) {
      elastor_close(held);
      if (elastor_hold(model, &held, nullptr, 0) != ELASTOR_OK) End("hold");
      of_held = updated;
    }
    WriteScores(updated, work / ("scores-" + std::to_string(number)));
    ++compared;
  }
  elastor_close(held);
  elastor_close(model);
  std::printf("%zu versions, %zu of them deltas, %zu rows each: same bits\n", compared, deltas,
              rows.rows());
}

std::string ReadBytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void WriteBytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void FlipLast(const fs::path& path) {
  std::string bytes = ReadBytes(path);
  bytes.back() ^= 1;
  WriteBytes(path, bytes);
}

// Updates with an error; `number` must stay.
void MustNotUpdate(elastor_model* model, const char* folder, int64_t number) {
  char error[512] = "";
  uint64_t version = 77;
  if (elastor_update(model, folder, &version, error, sizeof(error)) == ELASTOR_OK ||
      version != static_cast<uint64_t>(number) || error[0] == 0) {
    End("an update that should fail: version " + std::to_string(version) + " " + error);
  }
}

// A scorer that starts takes what one that runs would have.
void OpenDamaged(const fs::path& published, const fs::path& work) {
  const auto numbers = Numbers(published);
  std::vector<int64_t> bases;
  for (const auto& [number, names] : numbers) {
    for (const std::string& name : names) {
      if (name.starts_with("base")) bases.push_back(number);
    }
  }
  const int64_t base = bases.back(), last = numbers.rbegin()->first;
  if (bases.size() < 2 || last < base + 2) End("too few publications");
  const auto begin_with = [&](int64_t damaged, const std::string& kind) {
    fs::remove_all(work);
    fs::create_directories(work);
    for (const auto& [number, names] : numbers) {
      for (const std::string& name : names) {
        Bring(published, work, name);
        if (number == damaged && name.starts_with(kind)) {
          FlipLast(work / name / "embedding-00000-of-00001.safetensors");
        }
      }
    }
    return Open(work);
  };
  elastor_model* model = begin_with(base + 2, "delta");
  if (elastor_version(model) != static_cast<uint64_t>(base + 1)) End("before a damaged delta");
  MustNotUpdate(model, work.c_str(), base + 1);
  MustNotUpdate(model, nullptr, base + 1);
  elastor_model* held;
  if (elastor_hold(model, &held, nullptr, 0) != ELASTOR_OK) End("hold");
  MustNotUpdate(held, work.c_str(), base + 1);
  MustNotUpdate(nullptr, work.c_str(), 0);
  elastor_close(held);
  elastor_close(model);
  model = begin_with(base, "base");
  if (elastor_version(model) != static_cast<uint64_t>(last)) End("with a damaged base");
  elastor_close(model);
}

// Rows that are made small where a model is opened.
void OpenSmall(const fs::path& published, const fs::path& work, const Scored& rows,
               const char* format) {
  const auto numbers = Numbers(published);
  const auto bring = [&](int64_t number) {
    for (const std::string& name : numbers.at(number)) Bring(published, work, name);
  };
  int64_t base = 0;
  for (const auto& [number, names] : numbers) {
    for (const std::string& name : names) {
      if (name.starts_with("base") && numbers.contains(number + 1)) base = number;
    }
  }
  bring(base);
  elastor_model* model;
  char error[512] = "";
  if (elastor_open_with_rows(work.c_str(), format, &model, error, sizeof(error)) != ELASTOR_OK) {
    End("open with rows: " + std::string(error));
  }
  const std::vector<float> scores = rows.All(model);
  bring(base + 1);
  MustNotUpdate(model, work.c_str(), base);
  if (!SameBits(scores, rows.All(model))) End("the old version changed");
  elastor_close(model);
  WriteScores(scores, work / "scores");
  std::printf("%lld\n", static_cast<long long>(base));
}

void Damage(const fs::path& published, const fs::path& work, const Scored& rows, uint64_t seed,
            int count, const fs::path& other) {
  const auto numbers = Numbers(published);
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t end) { return random() % end; };
  std::vector<int64_t> starts;  // numbers with a delta behind the next one
  for (const auto& [number, names] : numbers) {
    if (number > 1 && numbers.contains(number + 2)) starts.push_back(number);
  }
  std::map<std::string, int> kinds;
  int passed = 0, begun = -1;
  elastor_model* model = nullptr;
  std::vector<float> before;
  int64_t number = 0;
  for (int trial = 0; trial < count; ++trial) {
    if (trial % 100 == 0 && trial != begun) {
      begun = trial;
      elastor_close(model);
      fs::remove_all(work);
      fs::create_directories(work);
      number = starts[below(starts.size())];
      for (const auto& [n, names] : numbers) {
        for (const std::string& name : names) {
          if (n <= number) Bring(published, work, name);
        }
      }
      model = Open(work);
      before = rows.All(model);
    }
    const auto name_of = [](int64_t n) {
      char name[32];
      std::snprintf(name, sizeof(name), "delta-%010lld", static_cast<long long>(n));
      return std::string(name);
    };
    const std::string next = name_of(number + 1), second = name_of(number + 2);
    std::string kind;
    switch (below(9)) {
      case 0:
        kind = "lost";
        Bring(published, work, second);
        break;
      case 1:  // the next one is an old one once more, or a later one
        kind = "doubled";
        fs::copy(published / name_of(number), work / next, fs::copy_options::recursive);
        break;
      case 2:
        kind = "reordered";
        fs::copy(published / second, work / next, fs::copy_options::recursive);
        fs::copy(published / next, work / second, fs::copy_options::recursive);
        break;
      case 3:
        kind = fs::exists(other / next) ? "other run" : "same";
        if (kind == "other run") Bring(other, work, next);
        break;
      case 4: {
        kind = "mixed";  // a file of another delta
        Bring(published, work, next);
        std::vector<fs::path> files;
        for (const auto& file : fs::directory_iterator(work / next)) files.push_back(file.path());
        std::sort(files.begin(), files.end());
        const fs::path file = files[below(files.size())];
        const std::string bytes = ReadBytes(file);
        fs::copy(published / second / file.filename(), file, fs::copy_options::overwrite_existing);
        if (ReadBytes(file) == bytes) kind = "same";
        break;
      }
      default: {
        Bring(published, work, next);
        std::vector<fs::path> files;
        for (const auto& file : fs::directory_iterator(work / next)) files.push_back(file.path());
        std::sort(files.begin(), files.end());
        const fs::path file = files[below(files.size())];
        std::string bytes = ReadBytes(file);
        switch (below(4)) {
          case 0:
            kind = "cut";
            bytes.resize(below(bytes.size()));
            break;
          case 1:
            kind = "longer";
            bytes += static_cast<char>(below(256));
            break;
          case 2:
            kind = "file lost";
            fs::remove(file);
            break;
          default: {
            kind = "flipped";
            bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
          }
        }
        if (kind != "file lost") WriteBytes(file, bytes);
      }
    }
    if (kind == "same") {  // no damage: another one in its place
      fs::remove_all(work / next);
      --trial;
      continue;
    }
    char error[512] = "";
    uint64_t version = 0;
    const int code = elastor_update(model, work.c_str(), &version, error, sizeof(error));
    if (code == ELASTOR_OK || version != static_cast<uint64_t>(number) || error[0] == 0 ||
        std::strchr(error, '\n') != nullptr) {
      End(kind + ": code " + std::to_string(code) + " version " + std::to_string(version) + " " +
          error);
    }
    if (!SameBits(before, rows.All(model))) End(kind + ": the old version changed");
    if (kinds[kind]++ == 0) std::printf("%s: %s\n", kind.c_str(), error);
    fs::remove_all(work / next);
    fs::remove_all(work / second);
    ++passed;
    if (trial % 10 != 9) continue;
    // It is none the worse for it.
    Bring(published, work, next);
    if (MustUpdate(model, work) != static_cast<uint64_t>(number + 1)) End("no update afterwards");
    elastor_model* const fresh = Open(work);
    if (!SameBits(rows.All(model), rows.All(fresh))) End("other bits afterwards");
    elastor_close(fresh);
    elastor_close(model);
    fs::remove_all(work / next);
    model = Open(work);
  }
  elastor_close(model);
  if (fs::exists(other)) {
    fs::remove_all(work);
    fs::create_directories(work);
    for (const auto& [n, names] : numbers) {
      for (const std::string& name : names) Bring(published, work, name);
    }
    model = Open(work);
    const int64_t last = numbers.rbegin()->first;
    MustUpdate(model, work);
    for (const std::string& name : numbers.rbegin()->second) {
      fs::remove_all(work / name);
      Bring(other, work, name);
    }
    MustNotUpdate(model, work.c_str(), last);
    elastor_close(model);
  }
  for (const auto& [kind, times] : kinds) std::printf("%s %d\n", kind.c_str(), times);
  std::printf("%d damages, each refused with a line\n", passed);
}

long ResidentKb() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  }
  return 0;
}

void Load(const fs::path& published, const fs::path& work, const Scored& rows, int thread_count,
          int pause_ms, double seconds, size_t rows_of_call) {
  const auto numbers = Numbers(published);
  // The scores of the probe rows at every version tell it.
  const size_t probes = std::min(rows.rows(), rows_of_call);
  std::map<int64_t, std::vector<float>> versions;
  elastor_model* model = nullptr;
  for (const auto& [number, names] : numbers) {
    for (const std::string& name : names) Bring(published, work, name);
    if (model == nullptr) model = Open(work);
    MustUpdate(model, work);
    versions[number] = rows.Of(model, 0, probes);
  }
  elastor_close(model);
  std::set<std::vector<float>> different;
  for (const auto& [number, scores] : versions) different.insert(scores);
  if (different.size() != versions.size()) End("versions that the probes do not tell apart");

  const auto begin_again = [&] {
    fs::remove_all(work);
    fs::create_directories(work);
    for (const std::string& name : numbers.begin()->second) Bring(published, work, name);
    return Open(work);
  };
  const auto end = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds));
  std::atomic<int64_t> calls = 0, updates = 0, rounds = 0;
  std::vector<double> latencies, update_seconds, first_scores;
  std::vector<long> round_kb;
  while (Clock::now() < end) {
    model = begin_again();
    std::atomic<int64_t> newest = numbers.begin()->first;
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    std::vector<std::vector<double>> times(thread_count);
    for (int t = 0; t < thread_count; ++t) {
      threads.emplace_back([&, t] {
        int64_t last = newest;
        for (int64_t call = 0; !stop; ++call) {
          const int64_t least = std::max<int64_t>(last, newest.load());
          double time;
          const std::vector<float> scores = rows.Of(model, 0, probes, &time);
          if (call % 100 == 0) times[t].push_back(time);  // few, so that memory is the model's
          int64_t found = 0;
          for (auto at = versions.lower_bound(least); at != versions.end() && found == 0; ++at) {
            if (SameBits(at->second, scores)) found = at->first;
          }
          if (found == 0) End("a call that mixes versions, or an older one than an earlier call's");
          last = found;
          ++calls;
        }
      });
    }
    for (auto at = std::next(numbers.begin()); at != numbers.end() && Clock::now() < end; ++at) {
      std::this_thread::sleep_until(
          std::min(end, Clock::now() + std::chrono::milliseconds(pause_ms)));
      if (Clock::now() >= end) break;
      for (const std::string& name : at->second) Bring(published, work, name);
      const auto start = Clock::now();
      if (MustUpdate(model, work) != static_cast<uint64_t>(at->first)) End("another version");
      newest = at->first;  // from now on every new call has it
      update_seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      if (!SameBits(rows.Of(model, 0, probes), versions[at->first])) End("an older version");
      first_scores.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      ++updates;
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    for (const auto& of_thread : times) {
      latencies.insert(latencies.end(), of_thread.begin(), of_thread.end());
    }
    round_kb.push_back(ResidentKb());
    elastor_close(model);
    ++rounds;
  }
  std::sort(latencies.begin(), latencies.end());
  std::sort(update_seconds.begin(), update_seconds.end());
  std::sort(first_scores.begin(), first_scores.end());
  const auto at = [](const std::vector<double>& sorted, double share) {
    if (sorted.empty()) return std::nan("");
    return 1e3 * sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  std::printf(
      "%lld calls of %zu rows on %d threads, %lld updates in %lld rounds: one version a call\n",
      static_cast<long long>(calls), probes, thread_count, static_cast<long long>(updates),
      static_cast<long long>(rounds));
  std::printf("ms, p50 and p99: a call %.3f %.3f, an update %.3f %.3f, until its score %.3f %.3f\n",
              at(latencies, 0.5), at(latencies, 0.99), at(update_seconds, 0.5),
              at(update_seconds, 0.99), at(first_scores, 0.5), at(first_scores, 0.99));
  std::printf("memory at the end of each round, kB:");
  for (const long kb : round_kb) std::printf(" %ld", kb);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) End("PUBLISHED WORK ROWS MODE ...");
  const fs::path published = argv[1], work = argv[2];
  fs::remove_all(work);
  fs::create_directories(work);
  const Scored rows(argv[3]);
  const std::string mode = argv[4];
  const auto number = [&](int at) { return at < argc ? std::atof(argv[at]) : 0; };
  if (mode == "scores") {
    FollowScores(published, work, rows);
  } else if (mode == "open") {
    OpenDamaged(published, work);
  } else if (mode == "small") {
    OpenSmall(published, work, rows, argc > 5 ? argv[5] : "");
  } else if (mode == "damage") {
    Damage(published, work, rows, static_cast<uint64_t>(number(5)), static_cast<int>(number(6)),
           argc > 7 ? argv[7] : "");
  } else if (mode == "load") {
    Load(published, work, rows, static_cast<int>(number(5)), static_cast<int>(number(6)), number(7),
         argc > 8 ? static_cast<size_t>(number(8)) : 64);
  } else {
    End("MODE");
  }
}
