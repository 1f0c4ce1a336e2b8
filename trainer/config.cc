#include "trainer/config.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <type_traits>
#include <vector>

#include "core/base/file.h"
#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "trainer/overrides.h"
#include "xxhash.h"

namespace elastor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

// Keeps the first error of a text file as "line:column: what".
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& what) override {
    if (!text_.empty()) return;
    text_ = std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + what +
            ValidFields(what);
  }
  const std::string& text() const { return text_; }

 private:
  // For `Message type "elastor.ModelConfig" has no field named "x"`: the fields it has.
  static std::string ValidFields(const std::string& what) {
    const std::string prefix = "Message type \"";
    if (what.find("has no field named") == what.npos || !what.starts_with(prefix)) return "";
    const std::string name =
        what.substr(prefix.size(), what.find('"', prefix.size()) - prefix.size());
    const Descriptor* type =
        google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
    return type == nullptr ? "" : " It has: " + FieldNames(*type);
  }

  std::string text_;
};

// A field for which 0 is no value of its own.
template <typename T>
T Or(T value, std::type_identity_t<T> fallback) {
  return value == 0 ? fallback : value;
}

// T * D beyond this is a slip of the hand: full mixing has (T * D)^2 weights.
constexpr int64_t kMaxTokenFeatures = 1 << 17;

int64_t TokenFeatures(const ModelConfig& model) {
  return int64_t{model.tokens()} * model.token_width();
}

void ResolveTokenModel(ModelConfig* model) {
  const bool public_code = model->convention() == ModelConfig::PUBLIC_CODE;
  const bool mixer = model->kind() == ModelConfig::RANK_MIXER;
  model->clear_hidden();
  model->set_blocks(Or(model->blocks(), 2));

  TokenizerConfig* tokenizer = model->mutable_tokenizer();
  if (tokenizer->kind() == TokenizerConfig::CONVENTION) {
    tokenizer->set_kind(public_code ? TokenizerConfig::SHARED : TokenizerConfig::GROUPED);
    if (public_code) tokenizer->set_hidden(Or(tokenizer->hidden(), 500));
  }
  tokenizer->set_norm(
      Or(tokenizer->norm(), public_code ? TokenizerConfig::NORM_RMS : TokenizerConfig::NORM_NONE));

  if (mixer) {
    model->clear_mixing();
  } else {
    model->mutable_mixing()->set_block_width(Or(model->mixing().block_width(), 1));
  }

  FeedForwardConfig* feed_forward = model->mutable_feed_forward();
  const auto gated = public_code ? FeedForwardConfig::GATED_SUM : FeedForwardConfig::GATED;
  feed_forward->set_kind(Or(feed_forward->kind(), mixer ? FeedForwardConfig::TWO_LAYER : gated));
  feed_forward->set_activation(Or(feed_forward->activation(), FeedForwardConfig::GELU));
  feed_forward->set_expansion(
      Or(feed_forward->expansion(), feed_forward->kind() == FeedForwardConfig::TWO_LAYER ? 1 : 3));

  HeadConfig* head = model->mutable_head();
  head->set_kind(
      Or(head->kind(), public_code ? HeadConfig::FLATTEN_MLP : HeadConfig::FLATTEN_LINEAR));
  if (head->kind() != HeadConfig::FLATTEN_MLP) {
    head->clear_hidden();
  } else if (head->hidden().empty()) {
    head->add_hidden(static_cast<int32_t>(2 * TokenFeatures(*model)));
  }
}

void ResolveMlp(ModelConfig* model) {
  ModelConfig mlp;
  mlp.set_kind(ModelConfig::MLP);
  mlp.set_dropout(model->dropout());
  *mlp.mutable_hidden() = model->hidden();
  if (mlp.hidden().empty()) {
    for (int i = 0; i < 3; ++i) mlp.add_hidden(400);
  }
  *model = mlp;
}

// Sets every optional field that is unset to its value, 0, so that it is written out.
void MakeExplicit(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    const bool present = field->has_presence() && reflection.HasField(*message, field);
    if (field->message_type() != nullptr) {
      if (present) MakeExplicit(reflection.MutableMessage(message, field));
      continue;
    }
    if (present || !field->has_presence()) continue;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        reflection.SetInt64(message, field, 0);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        reflection.SetDouble(message, field, 0);
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection.SetBool(message, field, false);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        reflection.SetEnum(message, field, field->default_value_enum());
        break;
      default:
        LOG(FATAL) << field->full_name() << ": no optional field has this type yet";
    }
  }
}

// "model.tokens: 0; expected what".
Status Mistake(const std::string& field, const std::string& found, const std::string& expected) {
  return UserError(field + ": " + found + "; expected " + expected);
}

std::string Show(int64_t value) { return std::to_string(value); }
std::string Show(double value) {
  char text[32];
  snprintf(text, sizeof(text), "%g", value);
  return text;
}

Status Positive(const std::string& field, int64_t value) {
  return value > 0 ? OkStatus() : Mistake(field, Show(value), "a positive number");
}

Status NotNegative(const std::string& field, int64_t value) {
  return value >= 0 ? OkStatus() : Mistake(field, Show(value), "0 or more");
}

// All positive doubles of the experiment are finite too.
Status Positive(const std::string& field, double value) {
  return value > 0 && std::isfinite(value) ? OkStatus()
                                           : Mistake(field, Show(value), "a positive number");
}

Status NotNegative(const std::string& field, double value) {
  return value >= 0 && std::isfinite(value) ? OkStatus() : Mistake(field, Show(value), "0 or more");
}

Status BelowOne(const std::string& field, double value) {
  return value >= 0 && value < 1 ? OkStatus() : Mistake(field, Show(value), "a number in [0, 1)");
}

Status ValidateTokenModel(const ModelConfig& model) {
  const int64_t tokens = model.tokens();
  const int64_t width = model.token_width();
  ELASTOR_RETURN_IF_ERROR(Positive("model.tokens", tokens));
  ELASTOR_RETURN_IF_ERROR(Positive("model.token_width", width));
  if (TokenFeatures(model) > kMaxTokenFeatures) {
    return Mistake("model.tokens * model.token_width", Show(TokenFeatures(model)),
                   "at most " + Show(kMaxTokenFeatures));
  }
  ELASTOR_RETURN_IF_ERROR(Positive("model.blocks", int64_t{model.blocks()}));
  ELASTOR_RETURN_IF_ERROR(
      NotNegative("model.tokenizer.hidden", int64_t{model.tokenizer().hidden()}));
  ELASTOR_RETURN_IF_ERROR(
      Positive("model.feed_forward.expansion", int64_t{model.feed_forward().expansion()}));
  for (const int64_t hidden : model.head().hidden()) {
    ELASTOR_RETURN_IF_ERROR(Positive("model.head.hidden", hidden));
  }
  if (model.kind() == ModelConfig::RANK_MIXER && width % tokens != 0) {
    return UserError("model.token_width: " + Show(width) + " is not a multiple of model.tokens " +
                     Show(tokens) + "; RANK_MIXER swaps " + Show(tokens) + " x " + Show(tokens) +
                     " blocks of D / T columns (the public code uses T = D = 26)");
  }
  if (model.kind() == ModelConfig::RANK_ELASTOR) {
    const int64_t block = model.mixing().block_width();
    ELASTOR_RETURN_IF_ERROR(Positive("model.mixing.block_width", block));
    if (TokenFeatures(model) % block != 0) {
      return Mistake("model.mixing.block_width", Show(block),
                     "a divisor of tokens * token_width = " + Show(TokenFeatures(model)));
    }
  }
  return OkStatus();
}

Status ValidateModel(const ModelConfig& model) {
  ELASTOR_RETURN_IF_ERROR(BelowOne("model.dropout", model.dropout()));
  if (model.kind() != ModelConfig::MLP) return ValidateTokenModel(model);
  for (const int64_t hidden : model.hidden()) {
    ELASTOR_RETURN_IF_ERROR(Positive("model.hidden", hidden));
  }
  return OkStatus();
}

Status ValidateOptimizer(const OptimizerConfig& optimizer) {
  ELASTOR_RETURN_IF_ERROR(Positive("optimizer.learning_rate", optimizer.learning_rate()));
  ELASTOR_RETURN_IF_ERROR(BelowOne("optimizer.beta1", optimizer.beta1()));
  ELASTOR_RETURN_IF_ERROR(BelowOne("optimizer.beta2", optimizer.beta2()));
  ELASTOR_RETURN_IF_ERROR(Positive("optimizer.epsilon", optimizer.epsilon()));
  ELASTOR_RETURN_IF_ERROR(
      NotNegative("optimizer.initial_accumulator", optimizer.initial_accumulator()));
  ELASTOR_RETURN_IF_ERROR(NotNegative("optimizer.dense_l2", optimizer.dense_l2()));
  ELASTOR_RETURN_IF_ERROR(NotNegative("optimizer.embedding_l2", optimizer.embedding_l2()));
  return NotNegative("optimizer.clip_norm", optimizer.clip_norm());
}

Status ValidateTraining(const TrainingConfig& training) {
  ELASTOR_RETURN_IF_ERROR(Positive("training.batch_size", training.batch_size()));
  ELASTOR_RETURN_IF_ERROR(Positive("training.epochs", training.epochs()));
  ELASTOR_RETURN_IF_ERROR(NotNegative("training.max_steps", training.max_steps()));
  ELASTOR_RETURN_IF_ERROR(NotNegative("training.eval_every_steps", training.eval_every_steps()));
  ELASTOR_RETURN_IF_ERROR(Positive("training.log_every_steps", training.log_every_steps()));
  return Positive("training.eval_batch_size", training.eval_batch_size());
}

Status ValidateParallel(const ParallelConfig& parallel) {
  const int64_t shards = parallel.virtual_shards();
  ELASTOR_RETURN_IF_ERROR(Positive("parallel.virtual_shards", shards));
  if (!std::has_single_bit(static_cast<uint64_t>(shards))) {
    return UserError("parallel.virtual_shards: " + Show(shards) + " is not a power of two");
  }
  ELASTOR_RETURN_IF_ERROR(Positive("parallel.threads", int64_t{parallel.threads()}));
  ELASTOR_RETURN_IF_ERROR(
      NotNegative("parallel.memory_budget_bytes", parallel.memory_budget_bytes()));
  ELASTOR_RETURN_IF_ERROR(Positive("parallel.deadline_seconds", parallel.deadline_seconds()));
  if (!parallel.reproducible()) {
    return UserError("parallel.reproducible: false is not built in this version; expected true");
  }
  return OkStatus();
}

// Clears, at every level, the fields that do not change a number.
void ClearOperational(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->options().GetExtension(operational)) {
      reflection.ClearField(message, field);
    } else if (field->message_type() != nullptr) {
      ClearOperational(reflection.MutableMessage(message, field));
    }
  }
}

}  // namespace

StatusOr<Experiment> ReadExperiment(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  FirstError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  Experiment experiment;
  if (!parser.ParseFromString(text, &experiment)) return UserError(path + ":" + error.text());
  return experiment;
}

void ResolveDefaults(Experiment* experiment) {
  DataConfig* data = experiment->mutable_data();
  data->set_window_blocks(Or(data->window_blocks(), 64));

  ModelConfig* model = experiment->mutable_model();
  if (model->kind() == ModelConfig::MLP) {
    ResolveMlp(model);
  } else {
    ResolveTokenModel(model);
  }
  if (experiment->name().empty()) experiment->set_name(ModelConfig::Kind_Name(model->kind()));

  EmbeddingConfig* embedding = experiment->mutable_embedding();
  embedding->set_init_stddev(Or(embedding->init_stddev(), 1e-4));

  OptimizerConfig* optimizer = experiment->mutable_optimizer();
  optimizer->set_learning_rate(Or(optimizer->learning_rate(), 1e-3));
  optimizer->set_beta1(Or(optimizer->beta1(), 0.9));
  optimizer->set_beta2(Or(optimizer->beta2(), 0.999));
  optimizer->set_epsilon(Or(optimizer->epsilon(), 1e-8));

  TrainingConfig* training = experiment->mutable_training();
  training->set_epochs(Or(training->epochs(), 1));
  training->set_log_every_steps(Or(training->log_every_steps(), 50));
  training->set_eval_batch_size(Or(training->eval_batch_size(), training->batch_size()));

  SpectrumConfig* spectrum = experiment->mutable_spectrum();
  spectrum->set_every_steps(Or(spectrum->every_steps(), 200));
  spectrum->set_samples(Or(spectrum->samples(), 1024));

  ParallelConfig* parallel = experiment->mutable_parallel();
  parallel->set_virtual_shards(Or(parallel->virtual_shards(), 16));
  parallel->set_threads(Or(parallel->threads(), 1));
  parallel->set_deadline_seconds(Or(parallel->deadline_seconds(), 300));
  if (!parallel->has_reproducible()) parallel->set_reproducible(true);
  MakeExplicit(experiment);
}

Status ValidateExperiment(const Experiment& experiment) {
  ELASTOR_RETURN_IF_ERROR(
      Positive("data.window_blocks", int64_t{experiment.data().window_blocks()}));
  ELASTOR_RETURN_IF_ERROR(ValidateModel(experiment.model()));
  ELASTOR_RETURN_IF_ERROR(Positive("embedding.width", int64_t{experiment.embedding().width()}));
  ELASTOR_RETURN_IF_ERROR(Positive("embedding.init_stddev", experiment.embedding().init_stddev()));
  ELASTOR_RETURN_IF_ERROR(ValidateOptimizer(experiment.optimizer()));
  ELASTOR_RETURN_IF_ERROR(ValidateTraining(experiment.training()));
  ELASTOR_RETURN_IF_ERROR(Positive("spectrum.every_steps", experiment.spectrum().every_steps()));
  ELASTOR_RETURN_IF_ERROR(Positive("spectrum.samples", experiment.spectrum().samples()));
  ELASTOR_RETURN_IF_ERROR(ValidateParallel(experiment.parallel()));
  const int64_t batch = experiment.training().batch_size();
  const int64_t shards = experiment.parallel().virtual_shards();
  if (batch < shards) {
    return UserError("training.batch_size: " + Show(batch) +
                     " is less than parallel.virtual_shards " + Show(shards) +
                     "; expected at least one row for each");
  }
  return OkStatus();
}

StatusOr<Experiment> LoadExperiment(const std::string& path,
                                    std::span<const std::string> overrides) {
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ReadExperiment(path));
  for (const std::string& assignment : overrides) {
    ELASTOR_RETURN_IF_ERROR(ApplyOverride(assignment, &experiment));
  }
  ResolveDefaults(&experiment);
  ELASTOR_RETURN_IF_ERROR(ValidateExperiment(experiment));
  return experiment;
}

Status ValidateRanks(const Experiment& experiment, int ranks) {
  const int shards = experiment.parallel().virtual_shards();
  if (ranks >= 1 && ranks <= shards) return OkStatus();
  return UserError("parallel.virtual_shards: " + Show(int64_t{shards}) + " cannot be spread over " +
                   Show(int64_t{ranks}) + " ranks; expected 1 to " + Show(int64_t{shards}) +
                   " ranks, or more virtual shards");
}

std::string NumericHash(const Experiment& experiment) {
  Experiment numeric = experiment;
  ClearOperational(&numeric);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    CHECK(numeric.SerializeToCodedStream(&coded));
  }
  char hex[17];
  snprintf(hex, sizeof(hex), "%016llx",
           static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
  return hex;
}

std::string ExperimentText(const Experiment& experiment) {
  std::string text;
  TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  CHECK(printer.PrintToString(experiment, &text));
  return text;
}

}  // namespace elastor
