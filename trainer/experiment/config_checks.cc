#include "trainer/experiment/config_checks.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <string>

namespace elastor {
namespace {

// T * D beyond this is a slip of the hand: full mixing has (T * D)^2 weights.
constexpr int64_t kMaxTokenFeatures = 1 << 17;

int64_t TokenFeatures(const ModelConfig& model) {
  return int64_t{model.tokens()} * model.token_width();
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

Status ValidateSchedule(const ScheduleConfig& schedule) {
  ELASTOR_RETURN_IF_ERROR(NotNegative("training.schedule.warmup_steps", schedule.warmup_steps()));
  ELASTOR_RETURN_IF_ERROR(NotNegative("training.schedule.decay_steps", schedule.decay_steps()));
  ELASTOR_RETURN_IF_ERROR(NotNegative("training.schedule.final_share", schedule.final_share()));
  ELASTOR_RETURN_IF_ERROR(BelowOne("training.schedule.plateau_factor", schedule.plateau_factor()));
  ELASTOR_RETURN_IF_ERROR(
      Positive("training.schedule.plateau_patience", schedule.plateau_patience()));
  return NotNegative("training.schedule.min_learning_rate", schedule.min_learning_rate());
}

Status ValidateTraining(const TrainingConfig& training) {
  ELASTOR_RETURN_IF_ERROR(Positive("training.batch_size", training.batch_size()));
  ELASTOR_RETURN_IF_ERROR(Positive("training.epochs", training.epochs()));
  ELASTOR_RETURN_IF_ERROR(NotNegative("training.max_steps", training.max_steps()));
  ELASTOR_RETURN_IF_ERROR(NotNegative("training.eval_every_steps", training.eval_every_steps()));
  ELASTOR_RETURN_IF_ERROR(Positive("training.log_every_steps", training.log_every_steps()));
  ELASTOR_RETURN_IF_ERROR(Positive("training.eval_batch_size", training.eval_batch_size()));
  ELASTOR_RETURN_IF_ERROR(ValidateSchedule(training.schedule()));
  const MonitorConfig& monitor = training.monitor();
  ELASTOR_RETURN_IF_ERROR(
      NotNegative("training.monitor.min_improvement", monitor.min_improvement()));
  ELASTOR_RETURN_IF_ERROR(
      NotNegative("training.monitor.early_stop_patience", monitor.early_stop_patience()));
  return OkStatus();
}

Status ValidateCheckpoint(const CheckpointConfig& checkpoint) {
  ELASTOR_RETURN_IF_ERROR(NotNegative("checkpoint.every_steps", checkpoint.every_steps()));
  ELASTOR_RETURN_IF_ERROR(NotNegative("checkpoint.every_minutes", checkpoint.every_minutes()));
  ELASTOR_RETURN_IF_ERROR(Positive("checkpoint.keep", checkpoint.keep()));
  return Positive("checkpoint.staging_bytes", checkpoint.staging_bytes());
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
  ELASTOR_RETURN_IF_ERROR(
      NotNegative("parallel.device_embedding_bytes", parallel.device_embedding_bytes()));
  ELASTOR_RETURN_IF_ERROR(Positive("parallel.deadline_seconds", parallel.deadline_seconds()));
  return OkStatus();
}

}  // namespace

Status ValidateExperiment(const Experiment& experiment) {
  ELASTOR_RETURN_IF_ERROR(
      Positive("data.window_blocks", int64_t{experiment.data().window_blocks()}));
  ELASTOR_RETURN_IF_ERROR(
      Positive("data.reader_threads", int64_t{experiment.data().reader_threads()}));
  ELASTOR_RETURN_IF_ERROR(ValidateModel(experiment.model()));
  ELASTOR_RETURN_IF_ERROR(Positive("embedding.width", int64_t{experiment.embedding().width()}));
  ELASTOR_RETURN_IF_ERROR(Positive("embedding.init_stddev", experiment.embedding().init_stddev()));
  ELASTOR_RETURN_IF_ERROR(ValidateOptimizer(experiment.optimizer()));
  ELASTOR_RETURN_IF_ERROR(ValidateTraining(experiment.training()));
  ELASTOR_RETURN_IF_ERROR(Positive("spectrum.every_steps", experiment.spectrum().every_steps()));
  ELASTOR_RETURN_IF_ERROR(Positive("spectrum.samples", experiment.spectrum().samples()));
  ELASTOR_RETURN_IF_ERROR(ValidateParallel(experiment.parallel()));
  ELASTOR_RETURN_IF_ERROR(
      Positive("evaluation.slice_values", experiment.evaluation().slice_values()));
  ELASTOR_RETURN_IF_ERROR(ValidateCheckpoint(experiment.checkpoint()));
  const int64_t batch = experiment.training().batch_size();
  const int64_t shards = experiment.parallel().virtual_shards();
  if (batch < shards) {
    return UserError("training.batch_size: " + Show(batch) +
                     " is less than parallel.virtual_shards " + Show(shards) +
                     "; expected at least one row for each");
  }
  return OkStatus();
}

Status ValidateRanks(const Experiment& experiment, int ranks) {
  const int shards = experiment.parallel().virtual_shards();
  if (ranks >= 1 && ranks <= shards) return OkStatus();
  return UserError("parallel.virtual_shards: " + Show(int64_t{shards}) + " cannot be spread over " +
                   Show(int64_t{ranks}) + " ranks; expected 1 to " + Show(int64_t{shards}) +
                   " ranks, or more virtual shards");
}

}  // namespace elastor
