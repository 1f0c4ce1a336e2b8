#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "configs/proto/control.pb.h"
#include "core/base/digest.h"
#include "gtest/gtest.h"
#include "tests/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/digest_records.h"

namespace elastor {
namespace {

std::string ControlDigest(const ControlRecord& control) {
  Digest digest;
  AddControl(control, &digest);
  return digest.Hex();
}

// The bytes themselves: a test that fails when an old checkpoint's digest would change.
TEST(StateDigestTest, TheControlRecordsBytes) {
  ControlRecord control;
  control.set_step(7);
  control.set_learning_rate(0.5);
  control.set_has_best(true);
  control.set_seed(-3);
  control.set_warm_start_digest("ab");
  const std::string record =
      "has_best=true\nlearning_rate=3fe0000000000000\nseed=-3\nstep=7\nwarm_start_digest=ab\n";
  Digest expected;
  expected.Add("control", 0, record.data(), record.size());
  EXPECT_EQ(ControlDigest(control), expected.Hex());
}

TEST(StateDigestTest, EveryControlFieldCounts) {
  const google::protobuf::Descriptor& descriptor = *ControlRecord::descriptor();
  std::set<std::string> digests = {ControlDigest({})};
  for (int i = 0; i < descriptor.field_count(); ++i) {
    using Field = google::protobuf::FieldDescriptor;
    const Field* const field = descriptor.field(i);
    ControlRecord control;
    const google::protobuf::Reflection& set = *control.GetReflection();
    if (field->cpp_type() == Field::CPPTYPE_INT64) set.SetInt64(&control, field, 1);
    if (field->cpp_type() == Field::CPPTYPE_DOUBLE) set.SetDouble(&control, field, 1);
    if (field->cpp_type() == Field::CPPTYPE_BOOL) set.SetBool(&control, field, true);
    if (field->cpp_type() == Field::CPPTYPE_STRING) set.SetString(&control, field, "1");
    EXPECT_TRUE(digests.insert(ControlDigest(control)).second) << field->name();
  }
}

// The digest of a state that holds one value of everything, from the definition.
TEST(StateDigestTest, RecordsAreRowsTensorsAndControl) {
  SmallModel model;
  model.dense = OptimizerKind::kAdagrad;
  ControlRecord control;
  control.set_step(1);
  for (const int ranks : {1, 2, 5}) {
    const Status status = OnRanks(model, {ranks}, [&](StateRank& rank) {
      const std::vector<float> row = {1, 2, 3, 4, 5, 6, 7, 8, 9};
      rank.embedding->SetRow(0, 4097, row.data(), row.data() + 3);
      rank.weights[rank.parameters[1].offset] = 3;
      Digest expected;
      for (const ParameterInfo& p : rank.parameters.parameters()) {
        std::vector<float> values(p.size, 0);
        if (p.name == "bias") values[0] = 3;
        expected.Add("dense/" + p.name, 0, values.data(), p.size * 4);
        std::fill(values.begin(), values.end(), 0.125f);
        expected.Add("dense/" + p.name + "/a", 0, values.data(), p.size * 4);
      }
      expected.Add("embedding/long", 4097, row.data(), row.size() * 4);
      expected.Add("control", 0, "step=1\n", 7);
      EXPECT_EQ(rank.Digest(control), expected.Hex()) << ranks;
      return OkStatus();
    });
    EXPECT_TRUE(status.ok());
  }
}

TEST(StateDigestTest, SeesWeightsAndSlots) {
  const std::vector<std::function<void(StateRank&)>> changes = {
      [](StateRank&) {},
      [](StateRank& rank) { rank.weights[1] = 9; },
      [](StateRank& rank) {
        std::vector<float> slot(rank.parameters.buckets()[0].size());
        rank.optimizer->CopySlot(1, 0, slot.data());
        slot[2] = 9;
        rank.optimizer->SetSlot(1, 0, slot.data());
      },
      [](StateRank& rank) {
        const float row[9] = {};
        rank.embedding->SetRow(2, 1, row, row + 3);
      },
  };
  std::set<std::string> digests;
  for (const auto& change : changes) {
    EXPECT_TRUE(OnRanks({}, {1}, [&](StateRank& rank) {
                  rank.Fill(1);
                  change(rank);
                  EXPECT_TRUE(digests.insert(rank.Digest({})).second);
                  return OkStatus();
                }).ok());
  }
  EXPECT_EQ(digests.size(), changes.size());
}

}  // namespace
}  // namespace elastor
