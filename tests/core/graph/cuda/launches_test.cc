#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/cuda/emulation/queue.h"
#include "core/cuda/emulation/schedule.h"
#include "tests/core/graph/cuda/device_run.h"
#include "tests/core/models/model_cases.h"

namespace elastor::cuda {
namespace {

// Calls that a stream took for Forward without training, and for Forward and Backward in training
// (kernels, products, copies and fills), when every model was written for the device by hand; of a
// later model, when it was added; since then less what eq. 4's network saves as one kernel, and one
// for every layer norm in training.
struct Launches {
  int64_t evaluation;
  int64_t training;
};
const std::map<std::string, Launches>& MostLaunches() {
  static const auto* const launches = new std::map<std::string, Launches>{
      {"RankElastorPaper", {13, 40}},
      {"RankElastorPublicCode", {33, 104}},
      {"RankMixerPaper", {19, 56}},
      {"RankMixerPublicCode", {33, 99}},
      {"Mlp", {4, 21}},
      {"MlpBatchNorm", {10, 29}},
      {"MeanPool", {14, 42}},
      {"FlattenMlp", {15, 53}},
      {"BlockMixing", {17, 48}},
      {"TwoLayer", {19, 62}},
      {"ReGlu", {13, 40}},
      {"SwiGlu", {13, 40}},
      {"OneBlock", {10, 29}},
      {"NoNumericFields", {10, 34}},
      {"LayerNormBeforeFullTokenizer", {10, 39}},
      {"GroupedMlpTokenizer", {15, 47}},
      {"GroupedTokenizerWithNorm", {14, 43}},
      {"SharedTokenizerWithoutPadding", {9, 36}},
      {"EmptyLastGroup", {13, 40}},
      {"DropoutPaper", {16, 62}},
      {"Dropout", {33, 112}},
      {"GroupedPublicCode", {39, 115}},
      {"TwoLayerRankMixerPublicCode", {29, 89}},
      {"MlpBatchNormDropout", {10, 33}},
      {"DinMlp", {14, 55}},
      {"DinSoftmaxRankMixer", {27, 79}},
      {"HstuMlp", {64, 207}},
      {"AutoIntPlusWideDropout", {22, 68}},
      {"AutoInt", {15, 48}},
      {"AutoIntPlus", {19, 72}},
      {"DcnV2LowRank", {21, 74}},
      {"Wukong", {31, 103}},
      {"XDeepFm", {16, 50}},
      {"OneTrans", {32, 107}},
      {"OneTransHistories", {102, 311}},
      {"HstuRanker", {93, 271}},
  };
  return *launches;
}

class LaunchesTest : public testing::TestWithParam<ModelCase> {};

void ExpectNoMoreThanKnown(const ModelCase& model, bool reproducible) {
  const elastor::Graph graph = model.graph();
  const LeafBatch batch = MakeLeafBatch(graph, {7, 6}, /*leaf_rows=*/7);
  DeviceRun<float> run(graph, MakeWeights(graph.parameters()), batch, 0, 2,
                       {.canonical_rows = 14, .canonical_leaves = 2, .reproducible = reproducible});
  DeviceExecutor<float>& executor = run.executor();
  DevicePass pass = run.pass();
  const auto count = [&](bool training) {
    run.stream().Synchronize();
    pass.training = training;
    executor.Forward(pass);
    run.gradients().Begin(nullptr);
    if (training) executor.Backward(pass, &run.gradients());
    return emulation::Waiting(run.stream());
  };
  run.Enqueue(/*training=*/true);
  const Launches most = MostLaunches().at(model.name);
  EXPECT_LE(count(/*training=*/false), most.evaluation);
  EXPECT_LE(count(/*training=*/true), most.training);
}

TEST_P(LaunchesTest, NoMoreThanKnown) {
  const emulation::Schedule& schedule = emulation::CurrentSchedule();
  if (!schedule.lazy) GTEST_SKIP() << "calls run at once";
  if (schedule.order != emulation::Order::kAscending) {
    GTEST_SKIP() << "the order of threads changes no count";
  }
  ExpectNoMoreThanKnown(GetParam(), /*reproducible=*/true);
  ExpectNoMoreThanKnown(GetParam(), /*reproducible=*/false);
}

std::vector<ModelCase> KnownCases() {
  std::vector<ModelCase> cases = ModelCases();
  std::erase_if(cases, [](const ModelCase& model) { return !MostLaunches().contains(model.name); });
  CHECK_EQ(cases.size(), MostLaunches().size());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, LaunchesTest, testing::ValuesIn(KnownCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace elastor::cuda
