#include "trainer/checkpoint/safetensors.h"

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xxhash.h"

namespace elastor {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  SafetensorsTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "/safetensors_" + test->name();
  }

  // A file with this header and `data_bytes` zeros; then the error of opening it.
  std::string ErrorOf(std::string_view header, size_t data_bytes) {
    const uint64_t length = header.size();
    std::string bytes(sizeof(length), '\0');
    std::memcpy(bytes.data(), &length, sizeof(length));
    return ErrorOfBytes(bytes.append(header).append(data_bytes, '\0'));
  }
  std::string ErrorOfBytes(std::string_view bytes) {
    EXPECT_TRUE(WriteFileAtomically(path_, bytes).ok());
    const auto file = SafetensorsFile::Open(path_, std::nullopt);
    EXPECT_EQ(file.status().code(), file.ok() ? StatusCode::kOk : StatusCode::kUser);
    EXPECT_TRUE(file.ok() || file.status().message().starts_with(path_ + ": "));
    return file.status().message();
  }

  // Two tensors, and one without elements.
  SafetensorsFacts WriteSmallFile() {
    const std::vector<TensorSpec> tensors = {{"keys", TensorType::kI64, {2}},
                                             {"none", TensorType::kF32, {0, 7}},
                                             {"rows", TensorType::kF32, {1, 3}}};
    auto writer = SafetensorsWriter::Open(path_, tensors);
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    EXPECT_TRUE(writer->Append(std::span<const int64_t>(keys_)).ok());
    EXPECT_TRUE(writer->Append(std::span<const float>(rows_).first(1)).ok());
    EXPECT_TRUE(writer->Append(std::span<const float>(rows_).subspan(1)).ok());
    EXPECT_FALSE(ReadFile(path_).ok()) << "there before Commit";
    const auto checksum = writer->Commit();
    EXPECT_TRUE(checksum.ok()) << checksum.status().message();
    return *checksum;
  }

  std::string path_;
  const std::vector<int64_t> keys_ = {-1, int64_t{1} << 40};
  const std::vector<float> rows_ = {-0.0f, std::numeric_limits<float>::denorm_min(), 3};
};

// The header is as Python's `safetensors` writes it, the data begins at a multiple of 8.
TEST_F(SafetensorsTest, TheBytesAreThoseOfTheFormat) {
  const SafetensorsFacts checksum = WriteSmallFile();
  const std::string header = R"({"keys":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                             R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[16,16]},)"
                             R"("rows":{"dtype":"F32","shape":[1,3],"data_offsets":[16,28]}})";
  const uint64_t padded = (header.size() + 7) / 8 * 8;
  std::string expected(reinterpret_cast<const char*>(&padded), 8);
  expected += header + std::string(padded - header.size(), ' ');
  expected.append(reinterpret_cast<const char*>(keys_.data()), 16);
  expected.append(reinterpret_cast<const char*>(rows_.data()), 12);
  const auto found = ReadFile(path_);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, expected);
  EXPECT_EQ(checksum.bytes, static_cast<int64_t>(expected.size()));
  EXPECT_EQ(checksum.header_xxh3, XXH3_64bits(expected.data(), 8 + padded));
}

TEST_F(SafetensorsTest, ReadsBackWhatWasWritten) {
  const auto file = SafetensorsFile::Open(path_, WriteSmallFile());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors().size(), 3u);
  const auto keys = file->Find<int64_t>({"keys", TensorType::kI64, {kAnyLength}});
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_THAT(*keys, ElementsAre(keys_[0], keys_[1]));
  const auto rows = file->Find<float>({"rows", TensorType::kF32, {kAnyLength, 3}});
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ(std::memcmp(rows->data(), rows_.data(), 12), 0);
  const auto none = file->Find<float>({"none", TensorType::kF32, {0, 7}});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
}

TEST_F(SafetensorsTest, LargerThanTheBuffer) {
  const int64_t count = (1 << 20) + 3;
  std::vector<float> rest;
  auto writer =
      SafetensorsWriter::Open(path_, std::vector<TensorSpec>{{"a", TensorType::kF32, {count}}});
  ASSERT_TRUE(writer.ok());
  // Single elements, then all that is left at once.
  for (int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(i);
    if (i >= 1000) {
      rest.push_back(value);
    } else {
      ASSERT_TRUE(writer->Append(std::span(&value, 1)).ok());
    }
  }
  ASSERT_TRUE(writer->Append(std::span<const float>(rest)).ok());
  const auto checksum = writer->Commit();
  ASSERT_TRUE(checksum.ok());
  const auto file = SafetensorsFile::Open(path_, *checksum);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto values = file->Find<float>({"a", TensorType::kF32, {count}});
  ASSERT_TRUE(values.ok());
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ((*values)[i], static_cast<float>(i));
}

TEST_F(SafetensorsTest, SaysWhatWasExpectedOfATensor) {
  const auto file = SafetensorsFile::Open(path_, WriteSmallFile());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->Find<float>({"rows", TensorType::kF32, {kAnyLength, 4}}).status().message(),
            path_ + ": tensor 'rows' is F32 [1, 3]; expected F32 [any, 4]");
  EXPECT_EQ(file->Find<float>({"rows", TensorType::kF32, {3}}).status().message(),
            path_ + ": tensor 'rows' is F32 [1, 3]; expected F32 [3]");
  EXPECT_EQ(file->Find<float>({"keys", TensorType::kF32, {2}}).status().message(),
            path_ + ": tensor 'keys' is I64 [2]; expected F32 [2]");
  EXPECT_EQ(file->Find<float>({"row", TensorType::kF32, {}}).status().message(),
            path_ + ": has no tensor 'row'; expected F32 []");
}

TEST_F(SafetensorsTest, TellsDamage) {
  const SafetensorsFacts checksum = WriteSmallFile();
  std::string bytes = *ReadFile(path_);
  bytes[20] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
  EXPECT_EQ(SafetensorsFile::Open(path_, checksum).status().message(),
            path_ + ": the header does not match its hash; the file is damaged or was replaced");
  bytes.pop_back();
  ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
  EXPECT_EQ(SafetensorsFile::Open(path_, checksum).status().message(),
            path_ + ": has " + std::to_string(bytes.size()) + " bytes; expected " +
                std::to_string(checksum.bytes));
  EXPECT_EQ(SafetensorsFile::Open(path_ + "x", checksum).status().message(),
            path_ + "x: open: No such file or directory");
  std::filesystem::remove(path_ + "link");
  std::filesystem::create_symlink(path_, path_ + "link");
  EXPECT_EQ(SafetensorsFile::Open(path_ + "link", checksum).status().message(),
            path_ + "link: a symbolic link; expected the file itself");
}

TEST_F(SafetensorsTest, RefusesWhatIsNotTheFormat) {
  EXPECT_THAT(ErrorOfBytes(""), EndsWith("not a file with contents"));
  EXPECT_THAT(ErrorOfBytes("short"), EndsWith("not a safetensors file"));
  EXPECT_THAT(ErrorOfBytes(std::string(64, '\xff')), EndsWith("not a safetensors file"));
  EXPECT_THAT(ErrorOf("[1]     ", 0), HasSubstr("not a safetensors header"));
  EXPECT_THAT(ErrorOf("{broken ", 0), HasSubstr("not a safetensors header"));
  EXPECT_THAT(ErrorOf(R"({"a":{}})", 0), HasSubstr("not a safetensors header"));
  EXPECT_EQ(ErrorOf(R"({"__metadata__":{"format":"pt"}} )", 0), "");
}

TEST_F(SafetensorsTest, RefusesTensorsThatDoNotFitTheData) {
  const auto tensor = [](const char* dtype, const char* shape, const char* offsets) {
    std::string text = std::string(R"({"a":{"dtype":")") + dtype + R"(","shape":)" + shape +
                       R"(,"data_offsets":)" + offsets + "}}";
    return text.append((8 - text.size() % 8) % 8, ' ');
  };
  EXPECT_EQ(ErrorOf(tensor("F32", "[2]", "[0,8]"), 8), "");
  EXPECT_THAT(ErrorOf(tensor("F16", "[2]", "[0,4]"), 4), HasSubstr("'a' has dtype F16; expected"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[0,12]"), 12), HasSubstr("'a' has data_offsets that"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[0]"), 8), HasSubstr("two offsets"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[0,8,8]"), 8), HasSubstr("two offsets"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[-2]", "[0,8]"), 8), HasSubstr("'a' has data_offsets that"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[4611686018427387904,4]", "[0,0]"), 0),
              HasSubstr("'a' has data_offsets that"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[8,0]"), 8), HasSubstr("'a' has data_offsets that"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[4,12]"), 12), HasSubstr("'a' does not begin where"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[0,8]"), 7),
              HasSubstr("has 7 bytes of data; expected 8"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[0,8]") + " ", 8), HasSubstr("'a' is not aligned"));
}

}  // namespace
}  // namespace elastor
