// Every op's device kernel against the CPU's, in small graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/models/layers.h"
#include "tests/core/graph/cuda/device_run.h"

namespace elastor::cuda {
namespace {

// Largest difference beside the largest value: a few dozen roundings of 6e-8.
constexpr double kBound = 2e-5;
constexpr uint64_t kSeed = 11;
constexpr int64_t kTokens = 4;
constexpr int64_t kWidth = 8;

// 1 numeric and 3 categorical fields: E is [4, 8].
constexpr FeatureShape kFeatures = {1, 3, kWidth, 0.5};

// Names parameters as it goes.
class Builder : public GraphBuilder {
 public:
  Builder() : GraphBuilder(kFeatures) {}

  std::string Name() { return IndexedName("layer", layers_++); }
  int Declare(std::vector<int64_t> shape) {
    return Parameter(Name(), std::move(shape), Init{.stddev = 0.3}, Decay::kDense);
  }
  Value Linear(Value x, int64_t tokens, int64_t out, LinearOp::Weights weights,
               Activation activation = Activation::kIdentity, bool bias = true) {
    LinearOp op;
    op.tokens = tokens;
    op.in = shape(x).features() / tokens;
    op.out = out;
    op.weights = weights;
    op.bias = bias;
    op.activation = activation;
    return elastor::Linear(this, Name(), op)(x);
  }
  Value Norm(Value x, const NormShape& norm) { return elastor::Norm(this, Name(), norm)(x); }
  // E, each token by a map of its own: a value that is wanted token-major.
  Value Tokens() { return Linear(Embeddings(), kTokens, kWidth, LinearOp::Weights::kOwn); }

 private:
  int64_t layers_ = 0;
};

struct Case {
  std::string name;
  std::function<Value(Builder*)> make;  // what the head reads
};
void PrintTo(const Case& test_case, std::ostream* out) { *out << test_case.name; }

std::vector<Case> Cases() {
  using Weights = LinearOp::Weights;
  std::vector<Case> cases;
  for (const auto& [name, activation] :
       {std::pair("", Activation::kIdentity), std::pair("Relu", Activation::kRelu),
        std::pair("Gelu", Activation::kGelu), std::pair("Swish", Activation::kSwish),
        std::pair("Tanh", Activation::kTanh), std::pair("Sigmoid", Activation::kSigmoid),
        std::pair("LeakyRelu", Activation::kLeakyRelu)}) {
    const auto add = [&, act = activation](const std::string& kind, int64_t tokens, Weights weights,
                                           bool bias) {
      cases.push_back({kind + name, [=](Builder* g) {
                         const Value x = g->Tokens();
                         return g->Linear(g->Linear(x, tokens, 6, weights, act, bias), tokens, 5,
                                          weights);
                       }});
    };
    add("OwnLinear", kTokens, Weights::kOwn, true);
    add("OwnLinearNoBias", kTokens, Weights::kOwn, false);
    add("SharedLinear", kTokens, Weights::kShared, true);
    add("PlainLinear", 1, Weights::kOwn, true);
    add("PlainLinearNoBias", 1, Weights::kOwn, false);
  }
  const auto add = [&](const std::string& name, std::function<Value(Builder*)> make) {
    cases.push_back({name, std::move(make)});
  };
  add("EmbeddingInput", [](Builder* g) { return g->Embeddings(); });
  add("InterleavedLinear",
      [](Builder* g) { return g->Linear(g->Tokens(), 2, 6, Weights::kInterleaved); });
  // Rows of a value are read as other tokens than those that it has.
  add("LinearOfOtherTokens", [](Builder* g) {
    return g->Linear(g->Linear(g->Tokens(), 2, 10, Weights::kOwn), 5, 3, Weights::kOwn);
  });
  add("Add", [](Builder* g) {
    const Value x = g->Tokens();
    return g->Linear(g->Add(x, g->Linear(x, kTokens, kWidth, Weights::kOwn)), kTokens, 3,
                     Weights::kOwn);
  });
  add("AddOfOtherTokens", [](Builder* g) {
    const Value x = g->Tokens();
    return g->Linear(g->Add(x, g->Linear(x, 1, kTokens * kWidth, Weights::kOwn)), kTokens, 3,
                     Weights::kOwn);
  });
  add("Multiply", [](Builder* g) {
    const Value x = g->Tokens();
    const Value both[] = {x, g->Linear(x, kTokens, kWidth, Weights::kOwn)};
    return g->Linear(g->Apply(MultiplyOp{}, both), kTokens, 3, Weights::kOwn);
  });
  add("MultiplyOfOtherTokens", [](Builder* g) {
    const Value x = g->Tokens();
    const Value both[] = {x, g->Linear(x, 1, kTokens * kWidth, Weights::kOwn)};
    return g->Linear(g->Apply(MultiplyOp{}, both), kTokens, 3, Weights::kOwn);
  });
  for (const int64_t tokens : {kTokens, int64_t{1}}) {
    add(tokens == 1 ? "SigmoidGateOfOtherTokens" : "SigmoidGate", [tokens](Builder* g) {
      const Value x = g->Tokens();
      const Value both[] = {x, g->Linear(x, tokens, kTokens * kWidth / tokens, Weights::kOwn)};
      return g->Linear(g->Apply(SigmoidGateOp{}, both), kTokens, 3, Weights::kOwn);
    });
  }
  for (const bool tokens : {false, true}) {
    add(tokens ? "MixtureOfTokens" : "Mixture", [tokens](Builder* g) {
      MixtureOp mixture;
      mixture.mixture = {.experts = kTokens, .width = kWidth, .mixtures = 2};
      const Value x = g->Tokens();
      const Value experts =
          g->Linear(x, tokens ? kTokens : 1, tokens ? kWidth : kTokens * kWidth, Weights::kOwn);
      const Value both[] = {experts, g->Linear(x, 1, 2 * kTokens, Weights::kOwn)};
      return g->Linear(g->Apply(mixture, both), 2, 3, Weights::kOwn);
    });
  }
  add("Concat", [](Builder* g) {
    const Value x = g->Tokens();
    const Value both[] = {x, g->Linear(x, kTokens, 3, Weights::kOwn)};
    ConcatOp concat;
    concat.first_features = kTokens * kWidth;
    return g->Apply(concat, both);
  });
  // Four uses, in either layout: their gradients are added in order.
  add("ValueUsedAgain", [](Builder* g) {
    const Value x = g->Tokens();
    const Value a = g->Linear(x, kTokens, kWidth, Weights::kOwn);
    const Value b = g->Linear(x, 1, kTokens * kWidth, Weights::kOwn);
    return g->Add(g->Add(x, a), g->Add(b, x));
  });
  add("ParametersUsedAgain", [](Builder* g) {
    LinearOp op;
    op.tokens = kTokens;
    op.in = op.out = kWidth;
    op.activation = Activation::kGelu;
    const Layer layer = Linear(g, g->Name(), op);
    return layer(layer(layer(g->Tokens())));
  });
  add("Pad", [](Builder* g) {
    PadOp pad;
    pad.tokens = 3;
    pad.width = 14;  // 32 = 14 + 14 + 4
    return g->Linear(g->Apply(pad, g->Tokens()), 3, 5, Weights::kOwn);
  });
  add("PadWithEmptyToken", [](Builder* g) {
    PadOp pad;
    pad.tokens = 5;
    pad.width = 8;
    return g->Linear(g->Apply(pad, g->Embeddings()), 5, 5, Weights::kShared);
  });
  add("PadNothing", [](Builder* g) {
    PadOp pad;
    pad.tokens = 2;
    pad.width = 16;
    const Value x = g->Apply(pad, g->Embeddings());
    return g->Add(g->Linear(x, 2, 5, Weights::kOwn), g->Linear(x, 2, 5, Weights::kShared));
  });
  const auto slice = [](Builder* g, Value x, Shape of, int64_t first_token, int64_t first_column,
                        Shape shape) {
    SliceOp op;
    op.tokens = of.tokens;
    op.width = of.width;
    op.first_token = first_token;
    op.first_column = first_column;
    op.slice = shape;
    return g->Apply(op, x);
  };
  constexpr Shape kAll = {kTokens, kWidth};
  add("SlicesOfTokensAndColumns", [=](Builder* g) {
    const Value x = g->Tokens();
    const Value tokens = slice(g, x, kAll, 1, 0, {2, kWidth});
    const Value columns = slice(g, x, kAll, 0, 3, {kTokens, 4});
    return g->Add(g->Linear(tokens, 2, 4, Weights::kOwn),
                  g->Linear(columns, kTokens, 2, Weights::kOwn));
  });
  add("SliceOfOtherTokens", [=](Builder* g) {
    return slice(g, g->Tokens(), {2, 2 * kWidth}, 1, 5, {1, 7});
  });
  add("SlicesOfAProbe", [=](Builder* g) {
    const Value x = g->Measure("x", g->Linear(g->Embeddings(), 1, 6, Weights::kOwn));
    const Value y = g->Measure("y", slice(g, x, {3, 2}, 1, 0, {2, 2}));
    return g->Apply(ReluOp{}, g->Add(slice(g, x, {3, 2}, 0, 0, {2, 2}), y));
  });
  add("SumPool", [](Builder* g) {
    SumPoolOp op;
    op.tokens = kTokens;
    op.width = kWidth;
    return g->Apply(op, g->Tokens());
  });
  for (const bool regroups : {false, true}) {
    const std::string of = regroups ? "OfOtherTokens" : "";
    add("FactorizationPool" + of, [=](Builder* g) {
      FactorizationPoolOp op;
      op.tokens = regroups ? 2 * kTokens : kTokens;
      op.width = regroups ? kWidth / 2 : kWidth;
      return g->Apply(op, g->Tokens());
    });
    add("UpperTriangle" + of, [=](Builder* g) {
      UpperTriangleOp op;
      op.size = kTokens;
      return g->Apply(op, regroups ? g->Linear(g->Embeddings(), 1, kTokens * kTokens, Weights::kOwn)
                                   : g->Linear(g->Embeddings(), kTokens, kTokens, Weights::kOwn));
    });
  }
  add("JointLogit", [](Builder* g) {
    return g->Apply(JointLogitOp{}, g->Linear(g->Embeddings(), 2, 1, Weights::kOwn));
  });
  add("MeanLogit", [](Builder* g) {
    return g->Apply(MeanLogitOp{}, g->Linear(g->Embeddings(), kTokens, 1, Weights::kShared));
  });
  add("LogitSum", [](Builder* g) {
    const int bias = g->Declare({1});
    return g->Apply(LogitSumOp{}, g->Tokens(), {bias});
  });
  const auto interaction = [](Builder* g, Value a, Value b, int64_t maps) {
    CompressedInteractionOp op;
    op.maps = maps;
    op.first = g->shape(a).tokens;
    if (a.node != b.node) op.second = g->shape(b).tokens;
    op.width = g->shape(a).width;
    const std::vector<int> parameters = {g->Declare({maps, op.first, op.b_tokens()}),
                                         g->Declare({maps})};
    if (op.one_input()) return g->Apply(op, a, parameters);
    const Value both[] = {a, b};
    return g->Apply(op, both, parameters);
  };
  add("CompressedInteraction", [=](Builder* g) {
    const Value x0 = g->Tokens();
    return g->Add(x0, interaction(g, interaction(g, x0, x0, 3), x0, kTokens));
  });
  add("CompressedInteractionOfOtherTokens", [=](Builder* g) {
    const Value x0 = g->Linear(g->Embeddings(), 1, 6, Weights::kOwn);
    CompressedInteractionOp op;
    op.maps = 5;
    op.first = 2;
    op.width = 3;
    return g->Apply(op, x0, {g->Declare({5, 2, 2}), g->Declare({5})});
  });
  const auto pool = [](Builder* g, Value x, int64_t groups, int64_t tokens) {
    WeightedPoolOp op;
    op.groups = groups;
    op.tokens = tokens;
    op.width = g->shape(x).features() / (groups * tokens);
    return g->Apply(op, x, {g->Declare({op.width, tokens})});
  };
  add("WeightedPool", [=](Builder* g) { return pool(g, g->Tokens(), 2, kTokens / 2); });
  add("WeightedPoolOfOneGroup", [=](Builder* g) { return pool(g, g->Tokens(), 1, kTokens); });
  add("WeightedPoolOfOtherTokens",
      [=](Builder* g) { return g->Linear(pool(g, g->Tokens(), 2, 8), 2, 3, Weights::kOwn); });
  // Two matrices [4, 4] of E's 32 features, and of a map's.
  using Shared = MatrixProductOp::Shared;
  const auto product = [](Builder* g, Shared shared, bool transposed, Activation activation) {
    MatrixProductOp op;
    op.product = {.count = 2, .rows = 4, .columns = 4, .terms = 4};
    op.first_transposed = transposed;
    op.shared = shared;
    op.activation = activation;
    const Value x = g->Tokens();
    std::vector<Value> factors = {x};
    std::vector<int> parameters;
    if (shared == Shared::kNone) {
      factors.push_back(g->Linear(x, 1, kTokens * kWidth, Weights::kOwn));
    } else {
      parameters = {g->Declare({4, 4})};
    }
    return g->Linear(g->Apply(op, factors, parameters), 2, 3, Weights::kOwn);
  };
  add("MatrixProduct", [=](Builder* g) { return product(g, Shared::kNone, true, {}); });
  add("MatrixProductSharedFirst",
      [=](Builder* g) { return product(g, Shared::kFirst, true, Activation::kSwish); });
  add("MatrixProductSharedSecond",
      [=](Builder* g) { return product(g, Shared::kSecond, false, Activation::kSigmoid); });
  for (const double scale : {1.0, 1.7}) {
    add(scale == 1 ? "Position" : "PositionOfScaledTokens", [scale](Builder* g) {
      PositionOp op;
      op.tokens = kTokens;
      op.width = kWidth;
      op.positions = 3;
      op.scale = 0.3;
      op.input_scale = scale;
      const Value x = g->Apply(op, g->Tokens(), {g->Declare({3, kWidth})});
      return g->Linear(x, kTokens, 3, Weights::kOwn);
    });
  }
  add("TransposedMatrices", [](Builder* g) {
    BlockTransposeOp op;
    op.count = 2;
    op.tokens = op.width = 4;
    return g->Linear(g->Apply(op, g->Tokens()), 2, 3, Weights::kOwn);
  });
  for (const auto& [name, mixes] : {std::pair("Within", SinkhornMixOp::Mixes::kWithin),
                                    std::pair("Between", SinkhornMixOp::Mixes::kBetween)}) {
    const auto mix = [=, mixes = mixes](Builder* g, int64_t blocks, int64_t rank) {
      SinkhornMixOp op;
      op.mixes = mixes;
      op.blocks = blocks;
      op.width = kTokens * kWidth / blocks;
      op.rank = rank;
      op.tau = 0.4;
      op.iterations = 3;
      std::vector<int> parameters;
      for (const std::vector<int64_t>& shape : op.parameter_shapes()) {
        parameters.push_back(g->Declare(shape));
      }
      return g->Linear(g->Apply(op, g->Tokens(), parameters), kTokens, 3, Weights::kOwn);
    };
    add(std::string("SinkhornMix") + name, [=](Builder* g) { return mix(g, kTokens, 0); });
    add(std::string("SinkhornMixLowRank") + name, [=](Builder* g) { return mix(g, kTokens, 2); });
    add(std::string("SinkhornMixOfOtherTokens") + name, [=](Builder* g) { return mix(g, 2, 0); });
  }
  add("PairwiseDot", [](Builder* g) {
    const Value x = g->Tokens();
    const Value both[] = {x, g->Linear(x, 1, 3 * kWidth, Weights::kOwn)};
    PairwiseDotOp op;
    op.first = kTokens;
    op.second = 3;
    op.width = kWidth;
    return g->Linear(g->Apply(op, both), kTokens, 2, Weights::kOwn);
  });
  add("PairwiseDotOfOneValue", [](Builder* g) {
    const Value x = g->Tokens();
    const Value both[] = {x, x};
    PairwiseDotOp op;
    op.first = op.second = kTokens;
    op.width = kWidth;
    return g->Apply(op, both);
  });
  add("SoftmaxGate", [](Builder* g) {
    const Value x = g->Tokens();
    const Value both[] = {x, g->Linear(x, 1, kTokens, Weights::kOwn)};
    SoftmaxGateOp op;
    op.tokens = kTokens;
    op.width = kWidth;
    return g->Linear(g->Apply(op, both), kTokens, 2, Weights::kOwn);
  });
  add("LayerNorm", [](Builder* g) { return g->Norm(g->Tokens(), LayerNorm(kWidth)); });
  add("RmsNorm", [](Builder* g) {
    return g->Linear(g->Norm(g->Tokens(), RmsNorm(kWidth)), kTokens, 3, Weights::kOwn);
  });
  add("NormOfAllFeatures",
      [](Builder* g) { return g->Norm(g->Tokens(), RmsNorm(kTokens * kWidth)); });
  add("NormOfTheSum", [](Builder* g) {
    const Value x = g->Tokens();
    const Value y = g->Linear(x, 1, kTokens * kWidth, Weights::kOwn);
    return g->Linear(g->Norm(g->Add(x, y), LayerNorm(kWidth)), kTokens, 3, Weights::kOwn);
  });
  add("PreNormOfTheSum", [](Builder* g) {
    const Value x = g->Tokens();
    const Value y =
        g->Linear(g->Norm(x, RmsNorm(kTokens * kWidth)), 1, kTokens * kWidth, Weights::kOwn);
    return g->Norm(g->Add(x, y), RmsNorm(kWidth));
  });
  add("BatchNorm", [](Builder* g) {
    // A bias before the norm would have a gradient of 0.
    const Value x = g->Linear(g->Embeddings(), 1, 12, Weights::kOwn, Activation::kIdentity,
                              /*bias=*/false);
    return g->Apply(ReluOp{}, BatchNorm(g, g->Name(), 12)(x));
  });
  for (const AttentionKind kind : {AttentionKind::kSoftmax, AttentionKind::kSilu}) {
    const std::string name = kind == AttentionKind::kSilu ? "SiluAttention" : "SoftmaxAttention";
    const auto attention = [=](int64_t queries, int64_t keys, bool causal, bool bias,
                               double dropout) {
      AttentionOp op;
      op.attention = {.kind = kind,
                      .queries = queries,
                      .keys = keys,
                      .heads = 2,
                      .width = 3,
                      .value_width = 5,
                      .scale = 0.75,
                      .causal = causal};
      op.position_bias = bias;
      op.dropout = dropout;
      op.dropout_layer = 2;
      return [=](Builder* g) {
        const Value x = g->Tokens();
        // The tokens of the last one are not those that attention reads.
        const Value values[] = {g->Linear(x, queries, 6, Weights::kOwn),
                                g->Linear(x, keys, 6, Weights::kOwn),
                                g->Linear(x, 1, keys * 10, Weights::kOwn)};
        std::vector<int> parameters;
        if (bias) parameters.push_back(g->Declare({op.attention.differences()}));
        return g->Apply(op, values, parameters);
      };
    };
    add(name, attention(4, 4, false, false, 0));
    add(name + "OfOneQuery", attention(1, 8, false, true, 0));
    add(name + "Causal", attention(4, 4, true, true, 0));
    add(name + "OfLastQueries", attention(2, 8, true, true, 0));
    add(name + "Dropout", attention(4, 4, false, false, 0.25));
    add(name + "CausalDropout", attention(4, 4, true, true, 0.5));
  }
  add("BlockTranspose", [](Builder* g) {
    BlockTransposeOp op;
    op.tokens = kTokens;
    op.width = kWidth;
    return g->Linear(g->Apply(op, g->Tokens()), kTokens, 3, Weights::kOwn);
  });
  add("MeanPool", [](Builder* g) {
    MeanPoolOp op;
    op.tokens = kTokens;
    op.width = kWidth;
    return g->Apply(op, g->Tokens());
  });
  add("ReluAndDropout", [](Builder* g) {
    const Value x = g->Norm(g->Tokens(), RmsNorm(kWidth));
    return g->Linear(g->Dropout(g->Apply(ReluOp{}, x), 0.25), kTokens, 3, Weights::kOwn);
  });
  // Neither may take the place of its input.
  add("ReluAndDropoutOfAProbe", [](Builder* g) {
    Value x = g->Measure("x", g->Tokens());
    x = g->Measure("relu", g->Apply(ReluOp{}, x));
    return g->Add(x, g->Dropout(x, 0.25));
  });
  const auto add_gated = [&](const std::string& name, auto op, int64_t hidden,
                             int64_t up_projections, bool biases) {
    op.tokens = kTokens;
    op.width = kWidth;
    op.hidden = hidden;
    for (const auto& [suffix, activation] :
         {std::pair("Gelu", Activation::kGelu), std::pair("Relu", Activation::kRelu),
          std::pair("Swish", Activation::kSwish)}) {
      op.activation = activation;
      add(name + suffix, [=](Builder* g) {
        std::vector<int> parameters;
        const auto declare = [&](std::vector<int64_t> weight, std::vector<int64_t> bias) {
          parameters.push_back(g->Declare(std::move(weight)));
          if (biases) parameters.push_back(g->Declare(std::move(bias)));
        };
        declare({kTokens, up_projections, op.hidden, kWidth}, {kTokens, up_projections, op.hidden});
        declare({kTokens, kWidth, op.hidden}, {kTokens, kWidth});
        declare({kTokens, kWidth, kWidth}, {kTokens, kWidth});
        return g->Apply(op, g->Tokens(), parameters);
      });
    }
  };
  add_gated("Gated", GatedFeedForwardOp{}, 5, 2, /*biases=*/false);
  // More than one kernel holds: by products.
  add_gated("LargeGated", GatedFeedForwardOp{}, 97, 2, /*biases=*/false);
  add_gated("GatedSum", GatedSumFeedForwardOp{}, 5, 3, /*biases=*/true);
  return cases;
}

class KernelsTest : public testing::TestWithParam<Case> {};

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected,
                const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 1e-3;
  for (const double value : expected) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_LE(std::fabs(found[i] - expected[i]), kBound * largest) << what << ", " << i;
  }
}

void ExpectEqualsTheCpus(const elastor::Graph& graph) {
  const std::vector<float> weights = MakeWeights(graph.parameters());
  for (const std::vector<int32_t>& counts :
       {std::vector<int32_t>{9}, std::vector<int32_t>{9, 8}, std::vector<int32_t>{9, 8, 9, 3}}) {
    const int64_t leaves = static_cast<int64_t>(counts.size());
    const LeafBatch batch = MakeLeafBatch(graph, counts, /*leaf_rows=*/9);
    for (const bool training : {false, true}) {
      SCOPED_TRACE(testing::Message() << leaves << " leaves, training " << training);
      const PassResult host = RunOnHost(graph, weights, batch, kSeed, training);
      DeviceRun<float> run(
          graph, weights, batch, 0, leaves,
          {.seed = kSeed, .canonical_rows = leaves * 9, .canonical_leaves = leaves});
      run.Enqueue(training);
      const PassResult device = run.Result(training);
      ASSERT_FALSE(host.logits.empty());
      ASSERT_EQ(device.probes.size(), host.probes.size());
      ASSERT_EQ(device.gradients.size(), host.gradients.size());
      ExpectNear(device.logits, host.logits, "logits");
      for (size_t p = 0; p < host.probes.size(); ++p) {
        ExpectNear(device.probes[p], host.probes[p], graph.probes()[p].name);
      }
      if (!training) continue;
      ExpectNear(device.embedding_gradients, host.embedding_gradients, "dE");
      for (int64_t leaf = 0; leaf < leaves; ++leaf) {
        for (const ParameterInfo& p : graph.parameters().parameters()) {
          const auto part = [&](const std::vector<double>& gradients) {
            return std::vector<double>(gradients.begin() + p.offset,
                                       gradients.begin() + p.offset + p.size);
          };
          ExpectNear(part(device.gradients[leaf]), part(host.gradients[leaf]), p.name);
        }
      }
    }
  }
}

TEST_P(KernelsTest, EqualsTheCpus) {
  Builder builder;
  const Value x = GetParam().make(&builder);
  builder.Measure("last", x);
  const Value logit = builder.Linear(x, 1, 1, LinearOp::Weights::kOwn);
  ExpectEqualsTheCpus(std::move(builder).Finish(logit));
}

// What is added to the last map's output is not rounded to the activations' type and back.
TEST(LogitsTest, SumOfMaps) {
  Builder builder;
  const Value x = builder.Tokens();
  const Value a = builder.Linear(x, 1, 1, LinearOp::Weights::kOwn);
  const Value sum = builder.Add(a, builder.Linear(x, 1, 1, LinearOp::Weights::kOwn));
  ExpectEqualsTheCpus(std::move(builder).Finish(sum));
}

// Histories of 0 to 5 items and their targets, of which there are two sequences, as tokens that
// look at each other.
TEST(SequenceTest, AttentionOverTargets) {
  for (const AttentionKind kind : {AttentionKind::kSoftmax, AttentionKind::kSilu}) {
    SCOPED_TRACE(static_cast<int>(kind));
    FeatureShape features = {.numeric_fields = 1, .categorical_fields = 3, .embedding_width = 6};
    features.embedding_stddev = 0.5;
    features.sequences = {{"first", 1, 0, 5}, {"second", 2, 0, 3}};
    GraphBuilder builder(features);
    Value e = builder.Rows();
    for (const int64_t sequence : {1, 0}) {
      AppendTargetOp append;
      append.fields = sequence == 1 ? 4 + 5 : 4;
      append.positions = sequence == 1 ? 3 : 5;
      append.width = 6;
      append.sequence = sequence;
      append.sequences = 2;
      append.target = 1;
      AttentionOp attention;
      attention.attention = {.kind = kind,
                             .queries = append.positions + 1,
                             .keys = append.positions + 1,
                             .heads = 2,
                             .width = 3,
                             .value_width = 3,
                             .causal = sequence == 0};
      attention.position_bias = true;
      attention.sequence = sequence;
      attention.sequences = 2;
      const Value x = builder.Apply(append, e);
      const Value values[] = {x, x, x};
      const int bias =
          builder.Parameter(IndexedName("bias", sequence), {attention.attention.differences()},
                            Init{.stddev = 0.3}, Decay::kNone);
      ReadTargetOp read;
      static_cast<TargetTokenOp&>(read) = append;
      read.field = 2 + sequence;
      const Value both[] = {e, builder.Apply(attention, values, {bias})};
      e = builder.Apply(read, both);
    }
    builder.SetRows(e);
    LinearOp head;
    head.in = features.inputs();
    head.out = 1;
    const Value logit = Linear(&builder, "head", head)(e);
    ExpectEqualsTheCpus(std::move(builder).Finish(logit));
  }
}

INSTANTIATE_TEST_SUITE_P(All, KernelsTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace elastor::cuda
