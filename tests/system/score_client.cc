// A program that scores a file of rows through the C interface: MODEL ROWS BATCH THREADS. The
// columns of ROWS, between tabs, are the model's fields. Thread t scores the batches t, t +
// THREADS, ...; prints a line a row. Then it makes the mistakes that a caller can make, and prints
// each answer.
#include <fenv.h>

#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "trainer/score/elastor_score.h"

namespace {

[[noreturn]] void End(const char* what, const char* error) {
  std::fprintf(stderr, "%s: %s\n", what, error);
  std::exit(1);
}

void Answer(const char* mistake, int code, const char* error) {
  std::fprintf(stderr, "%s: %d %s\n", mistake, code, error);
}

}  // namespace

int main(int, char** argv) {
  char error[256] = "";
  elastor_model* model = nullptr;
  if (elastor_open(argv[1], &model, error, sizeof(error)) != ELASTOR_OK) End(argv[1], error);
  const size_t fields = elastor_fields(model);
  std::vector<std::string> texts;
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) {
    std::istringstream columns(line);
    for (size_t i = 0; i < fields; ++i) std::getline(columns, texts.emplace_back(), '\t');
  }
  std::vector<const char*> values;
  for (const std::string& text : texts) values.push_back(text.empty() ? nullptr : text.c_str());
  const size_t rows = texts.size() / fields;
  std::vector<float> found(rows * elastor_outputs(model));

  const size_t batch = std::strtoul(argv[3], nullptr, 10);
  const size_t thread_count = std::strtoul(argv[4], nullptr, 10);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      char why[256];
      // As some programs have them; they change nothing.
      constexpr int kRoundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
      const int rounding = kRoundings[t % std::size(kRoundings)];
      std::fesetround(rounding);
      feenableexcept(FE_INEXACT);
      for (size_t row = t * batch; row < rows; row += thread_count * batch) {
        const size_t count = row + batch < rows ? batch : rows - row;
        if (elastor_score_values(model, values.data() + row * fields, count,
                                 found.data() + row * elastor_outputs(model), why,
                                 sizeof(why)) != ELASTOR_OK) {
          End("score", why);
        }
      }
      if (std::fegetround() != rounding) End("score", "another rounding mode than before");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t row = 0; row < rows; ++row) std::printf("%zu,%.9g\n", row, found[row]);

  std::vector<const char*> wrong(values.begin(), values.begin() + 2 * fields);
  for (size_t i = 0; i < fields; ++i) {
    if (std::string(elastor_field_name(model, i)) == "price") wrong[fields + i] = "dear";
  }
  Answer("a wrong number",
         elastor_score_values(model, wrong.data(), 2, found.data(), error, sizeof(error)), error);
  std::vector<float> numbers(elastor_numeric_fields(model), 0.0f);
  std::vector<int64_t> ids(elastor_categorical_fields(model), 0);
  const int code = elastor_score_ids(model, numbers.data(), ids.data(), nullptr, 1, found.data(),
                                     error, sizeof(error));
  Answer("ids", code, code == ELASTOR_OK ? "" : error);
  ids[0] = -1;
  Answer("a wrong id",
         elastor_score_ids(model, numbers.data(), ids.data(), nullptr, 1, found.data(), error,
                           sizeof(error)),
         error);
  std::vector<int64_t> offsets(ids.size() + 1, 0);
  Answer("wrong offsets",
         elastor_score_ids(model, numbers.data(), ids.data(), offsets.data(), 1, found.data(),
                           error, sizeof(error)),
         error);
  ids[0] = 0;
  std::iota(offsets.begin(), offsets.end(), 0);
  numbers[0] = std::numeric_limits<float>::infinity();
  Answer("an infinite number",
         elastor_score_ids(model, numbers.data(), ids.data(), offsets.data(), 1, found.data(),
                           error, sizeof(error)),
         error);
  Answer("no values", elastor_score_values(model, nullptr, 1, found.data(), error, sizeof(error)),
         error);
  Answer("no room", elastor_score_values(model, values.data(), 1, nullptr, error, sizeof(error)),
         error);
  Answer("no numbers",
         elastor_score_ids(model, nullptr, ids.data(), offsets.data(), 1, found.data(), error,
                           sizeof(error)),
         error);
  Answer("no model", elastor_score_values(nullptr, nullptr, 0, nullptr, error, sizeof(error)),
         error);
  if (elastor_field_name(model, fields) != nullptr || elastor_fields(nullptr) != 0) {
    End("a field that is not there", "has a name");
  }
  elastor_close(model);
  Answer("NULL", elastor_open(nullptr, &model, error, sizeof(error)), error);
  Answer("no folder", elastor_open("no_such_folder", &model, error, sizeof(error)), error);
  return 0;
}
