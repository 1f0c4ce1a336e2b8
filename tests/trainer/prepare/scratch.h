#ifndef ELASTOR_TESTS_TRAINER_PREPARE_SCRATCH_H_
#define ELASTOR_TESTS_TRAINER_PREPARE_SCRATCH_H_

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/prepare/prepare.h"
#include "trainer/prepare/schema_file.h"

namespace elastor {

// A path of the running test, with nothing there.
inline std::string ScratchPath(const std::string& name) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string path =
      testing::TempDir() + "/" + test->test_suite_name() + "." + test->name() + "." + name;
  std::filesystem::remove_all(path);
  return path;
}

inline std::string WriteScratch(const std::string& name, const std::string& bytes) {
  const std::string path = ScratchPath(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline std::string FileBytes(const std::string& path) {
  std::ostringstream bytes;  // iterators of a stream go from byte to byte
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(bytes).str();
}

// One gzip member holding `text`.
inline std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// One zstd frame holding `text`.
inline std::string Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

inline PrepareOptions OptionsOf(const std::string& schema, std::vector<std::string> inputs,
                                const std::string& output_name) {
  PrepareOptions options;
  auto parsed = ParseSchema(schema, "schema");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  options.schema = *parsed;
  options.inputs = std::move(inputs);
  options.output_dir = ScratchPath(output_name);
  return options;
}

inline std::unique_ptr<Dataset> OpenOrDie(const std::string& path) {
  auto dataset = Dataset::Open(path);
  EXPECT_TRUE(dataset.ok()) << dataset.status().message();
  return std::move(dataset).value();
}

inline Rows ReadAll(const Dataset& dataset, Split split) {
  Rows rows;
  EXPECT_TRUE(dataset.Read(split, {.shuffled = false}, 0, {0, dataset.rows(split)}, &rows).ok());
  return rows;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_TRAINER_PREPARE_SCRATCH_H_
