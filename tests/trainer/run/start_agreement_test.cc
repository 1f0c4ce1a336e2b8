// What the ranks of a job compare before they work together: for every field of the experiment, in
// every model, two ranks that differ in this field alone.
#include "trainer/run/start_agreement.h"

#include <csignal>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/process/stop_signals.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/overrides.h"

namespace elastor {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Runs `agree` on two ranks; whether both have the same status, which is returned.
Status OnTwoRanks(const std::function<Status(Communicator&)>& agree) {
  const auto communicators = MakeThreadCommunicators(2, {});
  Status statuses[2];
  std::thread other([&] { statuses[1] = agree(*communicators[1]); });
  statuses[0] = agree(*communicators[0]);
  other.join();
  EXPECT_EQ(statuses[0].code(), statuses[1].code());
  EXPECT_EQ(statuses[0].message(), statuses[1].message());
  return statuses[0];
}

// Gives a field that is no group another value.
void Change(const FieldDescriptor& field, Message* message) {
  const Reflection& r = *message->GetReflection();
  const bool list = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return list ? r.AddInt32(message, &field, 7)
                  : r.SetInt32(message, &field, r.GetInt32(*message, &field) + 1);
    case FieldDescriptor::CPPTYPE_INT64:
      return list ? r.AddInt64(message, &field, 7)
                  : r.SetInt64(message, &field, r.GetInt64(*message, &field) + 1);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return list ? r.AddDouble(message, &field, 0.5)
                  : r.SetDouble(message, &field, r.GetDouble(*message, &field) + 0.5);
    case FieldDescriptor::CPPTYPE_BOOL:
      return r.SetBool(message, &field, !r.GetBool(*message, &field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return r.SetEnumValue(
          message, &field,
          (r.GetEnumValue(*message, &field) + 1) % field.enum_type()->value_count());
    case FieldDescriptor::CPPTYPE_STRING:
      return list ? r.AddString(message, &field, "other")
                  : r.SetString(message, &field, r.GetString(*message, &field) + "other");
    default:
      FAIL() << field.full_name() << ": a type that this test does not know";
  }
}

// Calls `visit` with the path of every field of the message that is no group, and with the message
// that holds it; of ModelConfig only with the fields of the model that is chosen.
void VisitFields(
    const std::string& path, Message* message,
    const std::function<void(const std::string&, const FieldDescriptor&, Message*)>& visit) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message->GetDescriptor()->field(i);
    const Reflection& reflection = *message->GetReflection();
    if (field.options().deprecated()) continue;
    const std::string name = path.empty() ? field.name() : path + "." + field.name();
    if (field.message_type() == nullptr) {
      visit(name, field, message);
    } else if (field.is_repeated()) {
      if (reflection.FieldSize(*message, &field) == 0) reflection.AddMessage(message, &field);
      VisitFields(name, reflection.MutableRepeatedMessage(message, &field, 0), visit);
    } else if (field.real_containing_oneof() == nullptr || reflection.HasField(*message, &field)) {
      VisitFields(name, reflection.MutableMessage(message, &field), visit);
    }
  }
}

TEST(StartAgreementTest, EveryFieldIsComparedOrEachRanksOwn) {
  std::set<std::string> compared;
  std::set<std::string> own;
  for (const char* model : {"RANK_ELASTOR", "RANK_MIXER", "MLP", "DCN_V2", "X_DEEP_FM", "WUKONG"}) {
    Experiment same;
    const std::vector<std::string> assignments = {std::string("model.kind=") + model};
    ASSERT_TRUE(ApplyOverrides(assignments, &same).ok());
    ResolveDefaults(&same);
    // Makes every group.
    VisitFields("", &same, [](const std::string&, const FieldDescriptor&, Message*) {});
    Experiment other = same;
    VisitFields(
        "", &other, [&](const std::string& path, const FieldDescriptor& field, Message* holder) {
          const std::unique_ptr<Message> before(holder->New());
          before->CopyFrom(*holder);
          Change(field, holder);
          const Status status = OnTwoRanks([&](Communicator& communicator) {
            return AgreeOnExperiment(communicator.rank() == 1 ? other : same, communicator);
          });
          holder->CopyFrom(*before);
          if (status.ok()) {
            EXPECT_TRUE(field.options().GetExtension(per_rank)) << path;
            EXPECT_TRUE(field.options().GetExtension(operational)) << path;
            own.insert(path);
            return;
          }
          EXPECT_FALSE(field.options().GetExtension(per_rank)) << path;
          EXPECT_EQ(status.code(), StatusCode::kUser) << path;
          EXPECT_TRUE(status.message().starts_with("rank 1: " + path + " is ")) << status.message();
          EXPECT_NE(status.message().find(", expected rank 0's "), std::string::npos);
          EXPECT_EQ(status.message().find('\n'), std::string::npos);
          compared.insert(path);
        });
  }
  EXPECT_GE(compared.size(), 90) << "the test met too few fields to be worth something";
  EXPECT_EQ(own, (std::set<std::string>{"data.path", "data.reader_threads", "parallel.machine",
                                        "parallel.threads"}))
      << "a run in which this field differs must give the same digest: add it to "
         "tests/system/ranks_mistakes_test.sh";
}

TEST(StartAgreementTest, NamesTheRankTheFieldAndBothValues) {
  const auto difference = [](const std::string& assignment) {
    Experiment same;
    ResolveDefaults(&same);
    Experiment other = same;
    const std::vector<std::string> assignments = {assignment};
    EXPECT_TRUE(ApplyOverrides(assignments, &other).ok());
    ResolveDefaults(&other);
    return OnTwoRanks([&](Communicator& communicator) {
             return AgreeOnExperiment(communicator.rank() == 1 ? other : same, communicator);
           })
        .message();
  };
  EXPECT_EQ(difference("training.max_steps=3"),
            "rank 1: training.max_steps is 3, expected rank 0's 0");
  EXPECT_EQ(difference("parallel.plan=REPLICATED"),
            "rank 1: parallel.plan is REPLICATED, expected rank 0's AUTO");
  EXPECT_EQ(difference("evaluation.slice_by=C1"),
            "rank 1: evaluation.slice_by is \"C1\", expected rank 0's unset");
  EXPECT_EQ(difference("model.kind=MLP"), "rank 1: model is mlp, expected rank 0's rank_elastor");
  EXPECT_EQ(difference("parallel.threads=3"), "");
}

TEST(StartAgreementTest, TheProgramIsItself) { EXPECT_TRUE(OnTwoRanks(AgreeOnProgram).ok()); }

TEST(StartAgreementTest, ASignalBeforeTheRunEndsItInOrder) {
  RememberStopSignals();
  EXPECT_TRUE(OnTwoRanks(AgreeOnGoingOn).ok());
  std::raise(SIGTERM);
  const Status status = OnTwoRanks(AgreeOnGoingOn);
  EXPECT_EQ(status.code(), StatusCode::kStopped);
  EXPECT_TRUE(status.agreed());
  EXPECT_EQ(status.message(),
            "stopped by SIGTERM before the run began: nothing was done; start the same command "
            "again");
}

}  // namespace
}  // namespace elastor
