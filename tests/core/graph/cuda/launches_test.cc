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
// later model, when it was added; of those with eq. 4's network, since it is one kernel.
struct Launches {
  int64_t evaluation;
  int64_t training;
};
const std::map<std::string, Launches>& MostLaunches() {
  static const auto* const launches = new std::map<std::string, Launches>{
      {"RankElastorPaper", {13, 43}},
      {"RankElastorPublicCode", {33, 104}},
      {"RankMixerPaper", {19, 59}},
      {"RankMixerPublicCode", {33, 101}},
      {"Mlp", {4, 21}},
      {"MlpBatchNorm", {10, 29}},
      {"MeanPool", {14, 45}},
      {"FlattenMlp", {15, 56}},
      {"BlockMixing", {17, 51}},
      {"TwoLayer", {19, 65}},
      {"ReGlu", {13, 43}},
      {"SwiGlu", {13, 43}},
      {"OneBlock", {10, 31}},
      {"NoNumericFields", {10, 36}},
      {"LayerNormBeforeFullTokenizer", {10, 42}},
      {"GroupedMlpTokenizer", {15, 50}},
      {"GroupedTokenizerWithNorm", {14, 45}},
      {"SharedTokenizerWithoutPadding", {9, 38}},
      {"EmptyLastGroup", {13, 43}},
      {"DropoutPaper", {16, 65}},
      {"Dropout", {33, 112}},
      {"GroupedPublicCode", {39, 115}},
      {"TwoLayerRankMixerPublicCode", {29, 91}},
      {"MlpBatchNormDropout", {10, 33}},
      {"DinMlp", {14, 55}},
      {"DinSoftmaxRankMixer", {27, 81}},
      {"HstuMlp", {64, 215}},
      {"AutoIntPlusWideDropout", {22, 68}},
      {"AutoInt", {15, 48}},
      {"AutoIntPlus", {19, 74}},
      {"DcnV2LowRank", {21, 74}},
      {"Wukong", {31, 107}},
      {"XDeepFm", {16, 50}},
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
  if (!emulation::CurrentSchedule().lazy) GTEST_SKIP() << "calls run at once";
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
