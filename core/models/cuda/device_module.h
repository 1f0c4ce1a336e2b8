#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_MODULE_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_MODULE_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "core/cuda/matmul.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/models/cuda/device_workspace.h"
#include "core/ops/cuda/device_pass.h"
#include "core/ops/cuda/leaf_gradients.h"
#include "core/parameters/parameter_layout.h"

namespace elastor::cuda {

// How activations [rows, tokens, features] lie (activations.h). Products read and write both;
// what enters a weight gradient of maps of a token's own should be token-major, and what enters a
// product over all features or all tokens must be row-major.
enum class TokenLayout { kRowMajor, kTokenMajor };

// Activations of the workspace, or of part of a slot that is large enough.
struct ActivationSlot {
  int slot = -1;
  TokenLayout layout = TokenLayout::kRowMajor;
  int64_t tokens = 1;
  int64_t features = 0;  // of a token
};

// What the modules of one model share. Built up while they are constructed, in the order of the CPU
// model's; then constant but for `weights`.
template <typename A>
class DeviceContext {
 public:
  // layout and stream outlive the object.
  DeviceContext(const ParameterLayout* layout, const DeviceModelOptions& options, Stream* stream)
      : layout_(layout),
        options_(options),
        stream_(stream),
        matmul_(stream, options.precision),
        workspace_(stream),
        rounded_(stream, kRounded ? layout->flat_size() : 0) {}

  const ParameterLayout& layout() const { return *layout_; }
  const DeviceModelOptions& options() const { return options_; }
  Stream& stream() const { return *stream_; }
  Matmul& matmul() { return matmul_; }
  DeviceWorkspace& workspace() { return workspace_; }
  uint32_t NextDropoutLayer() { return dropout_layers_++; }

  ActivationSlot Keep(TokenLayout layout, int64_t tokens, int64_t features) {
    return {workspace_.Keep(Row(tokens * features)), layout, tokens, features};
  }
  ActivationSlot Temporary(TokenLayout layout, int64_t tokens, int64_t features) {
    return {workspace_.Temporary(Row(tokens * features)), layout, tokens, features};
  }
  Activations<A> View(const LeafShape& shape, const ActivationSlot& slot) const {
    A* const data = workspace_.template Slot<A>(slot.slot);
    return slot.layout == TokenLayout::kRowMajor
               ? Activations<A>::RowMajor(data, shape.rows(), slot.tokens, slot.features)
               : Activations<A>::TokenMajor(data, shape.rows(), slot.tokens, slot.features);
  }
  // Scratch for column sums (ColumnSumScratch) of `columns` columns; a place is `place_rows` rows.
  void ReserveColumnSums(int64_t columns, int64_t place_rows);

  void SetWeights(const float* weights);
  const float* values(int parameter) const { return weights_ + (*layout_)[parameter].offset; }
  // As products read them: rounded to A.
  const A* factors(int parameter) const {
    const int64_t offset = (*layout_)[parameter].offset;
    if constexpr (kRounded) {
      return rounded_.data() + offset;
    } else {
      return weights_ + offset;
    }
  }

 private:
  static constexpr bool kRounded = !std::is_same_v<A, float>;
  static SlotBytes Row(int64_t elements) {
    return {.row = elements * static_cast<int64_t>(sizeof(A))};
  }

  const ParameterLayout* layout_;
  DeviceModelOptions options_;
  Stream* stream_;
  Matmul matmul_;
  DeviceWorkspace workspace_;
  uint32_t dropout_layers_ = 0;
  const float* weights_ = nullptr;
  Buffer<BFloat16> rounded_;  // the flat array
};

struct ModulePass : DevicePass {
  LeafGradients* gradients = nullptr;  // Backward only
};

// A differentiable map of core/layers on the device, of the same name and parameters, over all
// leaves at once: [rows, T, in] to [rows, T, out]. Calls enqueue work on the context's stream.
template <typename A>
class DeviceModule {
 public:
  virtual ~DeviceModule() = default;

  // y is written completely; x and y are different memory.
  virtual void Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) = 0;
  // After Forward with the same pass and x. Delivers the parameters' gradients and writes dx, which
  // is other memory than dy; where padding's dy is 0, so is its dx.
  virtual void Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dy,
                        Activations<A> dx) = 0;
};

// Dropout in place while training, nothing otherwise: y in Forward, dy in Backward.
template <typename A>
void ApplyDropout(const DeviceContext<A>& context, const DevicePass& pass, double rate,
                  uint32_t layer, Activations<A> values);

// Delivers the gradient of a bias [maps, features]: sums of dy, [rows, maps, features], whose rows
// are places or a multiple of them (ReserveColumnSums).
template <typename A>
void DeliverBias(DeviceContext<A>* context, const ModulePass& pass, int parameter,
                 Activations<const A> dy);

// The pass's leaves in rows of `rows`, a multiple of the places.
LeafShape LeavesOf(const DevicePass& pass, int64_t rows);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_MODULE_H_
