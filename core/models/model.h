#ifndef ELASTOR_CORE_MODELS_MODEL_H_
#define ELASTOR_CORE_MODELS_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/layers/module.h"
#include "core/models/model_spec.h"

namespace elastor {

// A representation [tokens, width] per row whose spectrum is measured.
struct Stage {
  std::string name;
  int64_t tokens;
  int64_t width;
};

// Embeddings E [rows, n k] to one logit a row. The first numeric_fields * k features of E are the
// numeric fields' learned vectors, filled in here; the rest is the embedding tables' part.
// Built once; several threads may run passes at once, each with its own workspace.
template <typename T>
class Model {
 public:
  virtual ~Model() = default;

  const ParameterLayout& parameters() const { return parameters_; }
  const WorkspacePlan& workspace_plan() const { return workspace_plan_; }
  int64_t inputs() const { return inputs_; }  // n k
  int64_t numeric_fields() const { return numeric_fields_; }
  int64_t numeric_features() const { return numeric_fields_ * embedding_width_; }

  // Whether a training pass must hold all rows of a leaf (batch norm).
  bool whole_leaf() const { return builder_.whole_leaf; }

  // Multiply-adds of matrix products per row, forward.
  virtual int64_t multiply_adds() const = 0;

  // Takes new parameter values; see Module::Prepare.
  void Prepare(const T* parameters);

  // numeric: [rows][numeric fields], NaN = missing. e: the tables' features are in place, the
  // numeric ones are written. logits: [rows, 1].
  void Forward(const Pass<T>& pass, const float* numeric, Panels<T> e, Panels<T> logits) const;
  // After Forward with the same pass: gradients of all parameters to pass.sink, de = dloss/dE.
  void Backward(const Pass<T>& pass, const float* numeric, Panels<const T> e,
                Panels<const T> dlogits, Panels<T> de) const;

  // The measured representations, in order; stage 0 is E itself as [n, k].
  const std::vector<Stage>& stages() const { return stages_; }
  // Stage `stage` of the last Forward of this pass (e as given there).
  Panels<const T> StageOutput(const Pass<T>& pass, Panels<const T> e, int stage) const {
    return stage == 0 ? e : Panels<const T>(pass.Slot(stage_slots_[stage]));
  }

 protected:
  explicit Model(const ModelSpec& spec);

  ModelBuilder* builder() { return &builder_; }
  // A slot whose contents after Forward are a stage.
  void AddStage(std::string name, int64_t tokens, int64_t width, int slot);
  // Called at the end of the subclass's constructor.
  void FinishLayout() { parameters_.Finish(); }

 private:
  virtual void PrepareLayers(const T* parameters) = 0;
  virtual void ForwardLayers(const Pass<T>& pass, Panels<const T> e, Panels<T> logits) const = 0;
  virtual void BackwardLayers(const Pass<T>& pass, Panels<const T> e, Panels<const T> dlogits,
                              Panels<T> de) const = 0;

  ParameterLayout parameters_;
  WorkspacePlan workspace_plan_;
  ModelBuilder builder_;
  int64_t numeric_fields_;
  int64_t embedding_width_;
  int64_t inputs_;
  int vectors_ = -1;  // parameters [numeric fields, k]
  int missing_ = -1;
  const T* vector_values_ = nullptr;
  const T* missing_values_ = nullptr;
  std::vector<Stage> stages_;
  std::vector<int> stage_slots_;
};

// REQUIRES: a spec that ValidateModelSpec accepts.
template <typename T>
std::unique_ptr<Model<T>> MakeModel(const ModelSpec& spec);

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_MODEL_H_
