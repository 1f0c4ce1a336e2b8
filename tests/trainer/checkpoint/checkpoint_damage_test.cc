#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "xxhash.h"

namespace elastor {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Places of a file at which a byte is flipped.
constexpr size_t kFlips = 120;

class CheckpointDamageTest : public testing::Test {
 protected:
  CheckpointDamageTest() {
    EXPECT_EQ(Save(model_, {2}, path_, Contents::kState, 1, &digest_).message(), "");
  }

  std::string VerifyError(int ranks) {
    const Status status = OnRanks(model_, {ranks}, [&](StateRank& rank) {
      return VerifyCheckpoint(path_, *rank.communicator).status();
    });
    return CheckLine(status);
  }
  std::string LoadError(int ranks) {
    const Status status = OnRanks(model_, {ranks}, [&](StateRank& rank) {
      return LoadCheckpoint(path_, Contents::kState, SomeModel(), rank.View(), *rank.communicator)
          .status();
    });
    return CheckLine(status);
  }
  std::string BothErrors() {
    const std::string error = VerifyError(2);
    EXPECT_EQ(LoadError(3), error);
    return error;
  }
  static std::string CheckLine(const Status& status) {
    EXPECT_EQ(status.code(), status.ok() ? StatusCode::kOk : StatusCode::kUser);
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    return status.message();
  }

  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::string Manifest() const { return File(kManifestFile); }
  std::vector<std::string> FileNames() const { return FileNames(path_); }
  static std::vector<std::string> FileNames(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // Flips bytes of every file in a folder that path_ is read from: the error names the file. A load
  // need not look at those of `unused`.
  void ExpectFlipsAreFound(const std::string& folder, const std::string& unused) {
    const auto self = MakeSelfCommunicator();
    EXPECT_EQ(VerifyError(1), "");
    ASSERT_EQ(FileNames(folder).size(), 4u);
    for (const std::string& name : FileNames(folder)) {
      const std::string path = folder + "/" + name;
      const std::string whole = *ReadFile(path);
      const size_t stride = std::max<size_t>(1, whole.size() / kFlips);
      for (size_t at = 0; at < whole.size(); at += stride) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
        std::ofstream(path, std::ios::binary) << damaged;
        const std::string error = CheckLine(VerifyCheckpoint(path_, *self).status());
        ASSERT_THAT(error, HasSubstr(path + ": ")) << name << " byte " << at;
        if (at % (8 * stride) == 0 && name != unused) {
          EXPECT_THAT(LoadError(2), HasSubstr(path + ": ")) << name << " byte " << at;
        }
      }
      ASSERT_TRUE(WriteFileAtomically(path, whole).ok());
    }
    EXPECT_EQ(BothErrors(), "");
  }
  // A manifest that was edited by somebody who knows its hash.
  void ReplaceInManifest(const std::string& from, const std::string& to) {
    std::string text = *ReadFile(Manifest());
    const size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
    text.resize(text.rfind("\": \"") + 4);
    text += HashText(XXH3_64bits(text.data(), text.size())) + "\"\n}\n";
    ASSERT_TRUE(WriteFileAtomically(Manifest(), text).ok());
  }

  SmallModel model_;
  const std::string directory_ = ScratchDirectory();
  const std::string path_ = directory_ + "/step-0000000007";
  std::string digest_;
};

TEST_F(CheckpointDamageTest, EveryFlippedByteIsFound) { ExpectFlipsAreFound(path_, ""); }

TEST_F(CheckpointDamageTest, TellsTheTensor) {
  const std::string path = File("embedding-00001-of-00002.safetensors");
  std::string bytes = *ReadFile(path);
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  EXPECT_EQ(BothErrors(), path +
                              ": tensor 'short/v' does not match its hash; the file is damaged "
                              "or was replaced");
}

TEST_F(CheckpointDamageTest, TruncatedAndMissingFiles) {
  for (const std::string& name : FileNames()) {
    const std::string whole = *ReadFile(File(name));
    for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{4}, size_t{0}}) {
      ASSERT_TRUE(WriteFileAtomically(File(name), whole.substr(0, size)).ok());
      EXPECT_TRUE(BothErrors().starts_with(File(name) + ": ")) << name << " " << size;
    }
    ASSERT_TRUE(WriteFileAtomically(File(name), whole + "x").ok());
    EXPECT_TRUE(BothErrors().starts_with(File(name) + ": ")) << name;
    std::filesystem::remove(File(name));
    EXPECT_THAT(BothErrors(), HasSubstr(File(name) + ": open: No such file or directory"));
    ASSERT_TRUE(WriteFileAtomically(File(name), whole).ok());
  }
}

TEST_F(CheckpointDamageTest, RefusesFilesElsewhere) {
  const std::string manifest = *ReadFile(Manifest());
  const std::string first = "embedding-00000-of-00002.safetensors";
  for (const std::string& name : {"../" + first, path_ + "/" + first, std::string(".."),
                                  std::string("."), std::string(), "a/" + first}) {
    ReplaceInManifest("\"" + first + "\"", "\"" + name + "\"");
    EXPECT_EQ(BothErrors(),
              Manifest() + ": name '" + name + "'; expected a file in the same directory");
    ASSERT_TRUE(WriteFileAtomically(Manifest(), manifest).ok());
  }
  ReplaceInManifest("embedding-00000", "embedding-00001");
  EXPECT_THAT(BothErrors(), EndsWith("names embedding-00001-of-00002.safetensors twice"));
  ASSERT_TRUE(WriteFileAtomically(Manifest(), manifest).ok());

  for (const std::string& name : FileNames()) {
    std::filesystem::rename(File(name), directory_ + "/" + name);
    std::filesystem::create_symlink(directory_ + "/" + name, File(name));
    EXPECT_EQ(BothErrors(), File(name) + ": a symbolic link; expected the file itself");
    std::filesystem::rename(directory_ + "/" + name, File(name));
  }
  EXPECT_EQ(BothErrors(), "");
}

TEST_F(CheckpointDamageTest, ManifestsThatAreNone) {
  const std::string manifest = *ReadFile(Manifest());
  const auto error_of = [&](const std::string& from, const std::string& to) {
    ReplaceInManifest(from, to);
    const std::string error = BothErrors();
    EXPECT_TRUE(WriteFileAtomically(Manifest(), manifest).ok());
    EXPECT_TRUE(error.starts_with(Manifest() + ": ")) << error;
    return error.substr(Manifest().size() + 2);
  };
  EXPECT_EQ(error_of("\"version\": 2", "\"version\": 7"), "version 7; expected 1 to 6");
  EXPECT_EQ(error_of("\"version\": 2", "\"version\": 3"), "base: missing");
  EXPECT_EQ(error_of("elastor-checkpoint", "something"),
            "not the manifest of a checkpoint or a model");
  EXPECT_EQ(error_of("\"contents\": \"state\"", "\"contents\": \"half\""),
            "contents 'half'; expected 'state' or 'weights'");
  EXPECT_THAT(error_of("\"step\":", "\"stop\":"),
              AllOf(HasSubstr("control: found {"), EndsWith("the fields of a control record")));
  EXPECT_EQ(error_of("\"tables\"", "\"tablets\""), "tables: missing");
  EXPECT_EQ(error_of("\"keys\":10000", "\"keys\":\"10000\""),
            "tables[0].keys: found \"10000\"; expected an integer from 1 to 9223372036854775807");
  EXPECT_THAT(error_of("\"header_xxh3\":\"", "\"header_xxh3\":\"z"), HasSubstr("16 hex digits"));
  EXPECT_THAT(error_of("\"rows\":3", "\"raws\":3"),
              AllOf(HasSubstr("tables[0].columns: "), EndsWith("as the first column")));
  EXPECT_THAT(error_of("[[0,", "[[-1,"), HasSubstr("table 'long': piece [-1,"));
  EXPECT_THAT(error_of("\"long\":[", "\"long\":[[0,1],"), HasSubstr("table 'long': piece [0,1]"));
  EXPECT_THAT(error_of("\"long\":[[", "\"wrong\":[["), HasSubstr("is not in 'tables'"));
  // Pieces that together have more rows than the table has keys.
  const std::string hash = ",\"0123456789abcdef\"";
  EXPECT_THAT(error_of("\"long\":[", "\"long\":[[0,1,10000" + hash + hash + hash + hash + "],"),
              HasSubstr("table 'long': piece [0,"));
  EXPECT_EQ(error_of("\"tensors\":{\"", "\"tensors\":{\"x"), "has no hash of tensor 'bias'");
  // Another version tells so even if it keeps its hash elsewhere.
  std::string other = manifest;
  other.replace(other.find("\"version\": 2"), 12, "\"version\": 7");
  ASSERT_TRUE(WriteFileAtomically(Manifest(), other).ok());
  EXPECT_EQ(BothErrors(), Manifest() + ": version 7; expected 1 to 6");
}

// Folders of version 1 know nothing of the data's encoding; what they hold is read as ever.
TEST_F(CheckpointDamageTest, ManifestsOfVersion1) {
  ReplaceInManifest("\"version\": 2", "\"version\": 1");
  const std::string text = *ReadFile(Manifest());
  const size_t encoding = text.find("  \"encoding\": ");
  ReplaceInManifest(text.substr(encoding, text.find('\n', encoding) + 1 - encoding), "");
  EXPECT_EQ(BothErrors(), "");
  const auto metadata = ReadCheckpointMetadata(path_);
  ASSERT_TRUE(metadata.ok());
  EXPECT_FALSE(metadata->encoding.has_value());
}

// A page that cannot be read any more is the machine's fault, and no row of zeros.
TEST_F(CheckpointDamageTest, AFileThatIsCutOffWhileItIsRead) {
  const std::string path = File("embedding-00000-of-00002.safetensors");
  const auto manifest = ParseManifest(path_, *ReadFile(Manifest()));
  ASSERT_TRUE(manifest.ok());
  const auto file = SafetensorsFile::Open(path, manifest->embedding[0].facts);
  ASSERT_TRUE(file.ok());
  const int64_t rows = manifest->embedding[0].pieces[0].back().rows.end;
  const auto keys = file->Find<int64_t>(KeysTensor("long", rows));
  ASSERT_TRUE(keys.ok());
  EXPECT_NE(keys->back(), 0);
  std::filesystem::resize_file(path, 4096);
  EXPECT_EQ(keys->back(), 0);
  EXPECT_EQ(file->CheckReadable().code(), StatusCode::kMachine);
  EXPECT_EQ(file->CheckReadable().message(),
            path + ": cut off at byte 4096 while it was read; expected " +
                std::to_string(manifest->embedding[0].facts.bytes) + " bytes");
}

// A state that fits its hashes, but not its digest.
TEST_F(CheckpointDamageTest, TheDigestIsComputedAgain) {
  ReplaceInManifest("\"step\":\"7\"", "\"step\":\"8\"");
  EXPECT_THAT(VerifyError(2), AllOf(HasSubstr(Manifest() + ": state_digest " + digest_),
                                    HasSubstr("; the files hold a state with ")));
  EXPECT_THAT(LoadError(2), AllOf(HasSubstr(Manifest() + ": state_digest " + digest_),
                                  HasSubstr("; the state that was loaded has ")));
}

// Keys that the table does not have, with hashes to match.
TEST_F(CheckpointDamageTest, KeysOutsideTheTable) {
  const std::string path = File("embedding-00000-of-00002.safetensors");
  std::string bytes = *ReadFile(path);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const auto manifest = ParseManifest(path_, *ReadFile(Manifest()));
  ASSERT_TRUE(manifest.ok());
  const RowPiece& piece = manifest->embedding[0].pieces[0][0];
  char* const keys = bytes.data() + sizeof(header) + header;
  const std::string text = *ReadFile(Manifest());
  for (const int64_t key : {int64_t{4096 * 3}, int64_t{-1}, int64_t{8194}}) {
    std::memcpy(keys, &key, sizeof(key));
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
    ReplaceInManifest(HashText(piece.hashes[0]),
                      HashText(XXH3_64bits(keys, piece.rows.size() * sizeof(int64_t))));
    const std::string place = key == 8194 ? " in the wrong place; expected the order of partitions"
                                          : "; expected less than 10000";
    EXPECT_EQ(BothErrors(), path + ": tensor 'long/keys' holds key " + std::to_string(key) + place);
    ASSERT_TRUE(WriteFileAtomically(Manifest(), text).ok());
  }
}

// path_ is a delta.
class DeltaDamageTest : public CheckpointDamageTest {
 protected:
  DeltaDamageTest() {
    model_.track_touched = true;
    const Status status = OnRanks(model_, {2}, [&](StateRank& rank) -> Status {
      rank.Fill(1);
      CheckpointWriter writer(rank.View(), int64_t{1} << 30, rank.communicator);
      CheckpointMetadata metadata = SomeMetadata(Contents::kState);
      metadata.control.set_step(5);
      ELASTOR_RETURN_IF_ERROR(writer.Start(base_, metadata));
      ELASTOR_RETURN_IF_ERROR(writer.Finish().status());
      std::vector<int64_t> keys;
      for (int64_t key = 0; key < 1000; ++key) keys.push_back(key);
      rank.Train(keys, 1);
      ELASTOR_RETURN_IF_ERROR(writer.StartDelta(path_, SomeMetadata(Contents::kState)));
      ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata delta, writer.Finish());
      EXPECT_TRUE(delta.base.has_value());
      return OkStatus();
    });
    EXPECT_EQ(status.message(), "");
  }

  const std::string base_ =
      std::filesystem::path(directory_ + "/step-0000000005").lexically_normal();
  const std::string error_ = Manifest() + ": a delta of step-0000000005";
};

TEST_F(DeltaDamageTest, EveryFlippedByteIsFound) {
  ExpectFlipsAreFound(path_, "");
  ExpectFlipsAreFound(base_, "dense.safetensors");
}

TEST_F(DeltaDamageTest, ABaseThatIsNotThere) {
  std::filesystem::rename(base_, directory_ + "/elsewhere");
  EXPECT_EQ(BothErrors(), error_ + ": " + base_ +
                              "/manifest.json: open: No such file or directory; expected the "
                              "folder of a checkpoint or a model");
}

TEST_F(DeltaDamageTest, ABaseThatIsAnother) {
  std::string digest;
  ASSERT_TRUE(Save(model_, {2}, base_, Contents::kState, 2, &digest).ok());
  const std::string found = SealOf(*ReadFile(base_ + "/manifest.json"));
  EXPECT_THAT(BothErrors(), AllOf(HasSubstr(error_ + " with the manifest_xxh3 "),
                                  EndsWith("; " + base_ + "/manifest.json has " + found +
                                           "; the base was replaced")));
}

// Edited by somebody who knows the hashes.
TEST_F(DeltaDamageTest, ABaseThatIsNone) {
  const std::string manifest = *ReadFile(Manifest());
  const std::string expected = SealOf(*ReadFile(base_ + "/manifest.json"));
  // Of weights; with other tables; a delta itself.
  std::string digest;
  SmallModel other;
  other.tables[1].rows = 21;
  ASSERT_TRUE(Save(model_, {2}, directory_ + "/weights", Contents::kWeights, 1, &digest).ok());
  ASSERT_TRUE(Save(other, {2}, directory_ + "/other", Contents::kState, 1, &digest).ok());
  std::filesystem::copy(path_, directory_ + "/delta");
  for (const char* name : {"weights", "other", "delta"}) {
    ReplaceInManifest("step-0000000005", name);
    ReplaceInManifest(expected, SealOf(*ReadFile(directory_ + "/" + name + "/manifest.json")));
    EXPECT_EQ(BothErrors(), Manifest() + ": a delta of " + name +
                                ", which is not a full training state with the same tables");
    ASSERT_TRUE(WriteFileAtomically(Manifest(), manifest).ok());
  }
  ReplaceInManifest("step-0000000005", "../step-0000000005");
  EXPECT_EQ(BothErrors(),
            Manifest() + ": name '../step-0000000005'; expected a folder beside this one");
  ASSERT_TRUE(WriteFileAtomically(Manifest(), manifest).ok());
  ReplaceInManifest("\"contents\": \"state\"", "\"contents\": \"weights\"");
  EXPECT_EQ(BothErrors(), Manifest() + ": a delta of weights");
}

// RLIMIT_FSIZE stands in for a full disk: a write fails half way.
class CheckpointDiskTest : public CheckpointDamageTest {
 protected:
  // REQUIRES: no test runs beside this one in the process.
  std::string ErrorWithLimit(rlim_t bytes, const Layout& layout) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit;
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlimit lower = {bytes, limit.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &lower), 0);
    std::string digest;
    const Status status = Save(model_, layout, path_, Contents::kState, 2, &digest);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(status.code(), StatusCode::kMachine);
    return status.message();
  }
};

TEST_F(CheckpointDiskTest, AFailedWriteLeavesTheOlderOne) {
  const std::string partial = path_ + ".partial/";
  const std::string reason = ": write: File too large";
  // Too little for rows, for the dense parameters, for the manifest.
  EXPECT_EQ(ErrorWithLimit(60000, {1}),
            partial + "embedding-00000-of-00001.safetensors.tmp" + reason);
  model_.tables[0].rows = 30;
  EXPECT_EQ(ErrorWithLimit(8000, {3}), partial + "dense.safetensors.tmp" + reason);
  model_.weight_shape = {1};
  EXPECT_EQ(ErrorWithLimit(2000, {3}), partial + "manifest.json.tmp" + reason);
  EXPECT_EQ(FileNames().size(), 4u);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
  model_ = {};
  EXPECT_EQ(BothErrors(), "");
}

}  // namespace
}  // namespace elastor
