#ifndef ELASTOR_CORE_MODELS_MODEL_SPEC_H_
#define ELASTOR_CORE_MODELS_MODEL_SPEC_H_

#include <cstdint>
#include <vector>

#include "core/layers/tokenizer.h"
#include "core/kernels/matmul.h"

namespace elastor {

// What a model is, fully explicit; the trainer makes it from the Experiment and the data set.
struct ModelSpec {
  enum class Kind { kRankElastor, kRankMixer, kMlp } kind = Kind::kRankElastor;
  enum class Convention { kPaper, kPublicCode } convention = Convention::kPaper;

  int64_t numeric_fields = 0;
  int64_t categorical_fields = 0;
  int64_t embedding_width = 0;     // k
  double embedding_stddev = 1e-4;  // of the numeric fields' vectors

  int64_t tokens = 0;       // T
  int64_t token_width = 0;  // D
  int64_t blocks = 2;
  TokenizerOptions::Kind tokenizer = TokenizerOptions::Kind::kGrouped;
  int64_t tokenizer_hidden = 0;
  enum class InputNorm { kNone, kRms, kLayer } input_norm = InputNorm::kNone;
  int64_t mixing_block_width = 1;  // d*
  enum class FeedForward { kTwoLayer, kGated, kGatedSum } feed_forward = FeedForward::kGated;
  Activation activation = Activation::kGelu;
  int64_t expansion = 3;  // r
  enum class Head { kMeanPool, kFlattenLinear, kFlattenMlp } head = Head::kFlattenLinear;
  std::vector<int64_t> head_hidden;

  std::vector<int64_t> hidden;  // kMlp
  bool batch_norm = false;      // kMlp; of every hidden layer, over the rows of a leaf
  double dropout = 0;

  int64_t fields() const { return numeric_fields + categorical_fields; }
};

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_MODEL_SPEC_H_
