#ifndef ELASTOR_CORE_LAYERS_MODULE_H_
#define ELASTOR_CORE_LAYERS_MODULE_H_

#include <cstdint>
#include <string>

#include "core/base/thread_pool.h"
#include "core/parameters/gradient_sink.h"
#include "core/parameters/parameter_layout.h"
#include "core/tensor/panels.h"
#include "core/tensor/workspace.h"
#include "glog/logging.h"

namespace elastor {

// Where modules declare what they need while a model is built.
struct ModelBuilder {
  ParameterLayout* parameters;
  WorkspacePlan* workspace;
  uint32_t dropout_layers = 0;  // numbers the dropout layers in order of declaration
  bool whole_leaf = false;      // a module needs all rows of a leaf in one pass
};

// One pass over rows of one leaf. `workspace` belongs to the calling thread and carries the saved
// activations from Forward to Backward.
template <typename T>
struct Pass {
  Workspace<T>* workspace = nullptr;
  GradientSink<T>* sink = nullptr;  // Backward only
  int64_t rows = 0;
  bool training = false;  // false: no dropout, nothing saved for Backward
  uint64_t seed = 0;
  uint32_t step = 0;
  int64_t first_row = 0;  // epoch index of row 0
  double leaf_share = 1;  // of the batch's rows, in a pass over a whole leaf

  ThreadPool* pool = nullptr;  // shares the work of this pass; null: the calling thread alone

  Panels<T> Slot(int slot) const { return workspace->Activations(slot, rows); }

  // Calls work(begin, end) for parts of [0, total), multiples of kPanelRows long but for the last,
  // one on each thread of the pass. Each element of a result is computed by one thread alone, so no
  // bit depends on the parts.
  template <typename Work>
  void Share(int64_t total, const Work& work) const {
    if (pool == nullptr) return work(0, total);
    pool->ParallelFor(total, kPanelRows, [&](int, int64_t begin, int64_t end) {
      if (begin < end) work(begin, end);
    });
  }
};

// A differentiable map from [rows, inputs] to [rows, outputs]. Shapes, parameters and workspace are
// declared by the constructor; constant afterwards but for Prepare. Several threads may run passes
// at once, each with its own workspace.
template <typename T>
class Module {
 public:
  Module(int64_t inputs, int64_t outputs) : inputs_(inputs), outputs_(outputs) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  // Multiply-adds of matrix products per row, forward.
  virtual int64_t multiply_adds() const { return 0; }

  // Takes new parameter values (repacks weights). Call after every change of `parameters`, the flat
  // array of the layout, which stays in place until the next call.
  virtual void Prepare(const T* parameters) { (void)parameters; }

  // y is written completely; x is read. x and y are different memory.
  void Forward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
    CheckShapes(pass, x, y.rows, y.features);
    DoForward(pass, x, y);
  }
  // After Forward with the same pass and x. Delivers the parameters' gradients to pass.sink and
  // writes dx, which may be dy's memory, or empty, only where a subclass says so.
  void Backward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy, Panels<T> dx) const {
    CheckShapes(pass, x, dy.rows, dy.features);
    if (dx.data != nullptr) CHECK_EQ(dx.features, inputs_);
    DoBackward(pass, x, dy, dx);
  }

 private:
  void CheckShapes(const Pass<T>& pass, Panels<const T> x, int64_t y_rows,
                   int64_t y_features) const {
    CHECK_EQ(x.rows, pass.rows);
    CHECK_EQ(x.features, inputs_);
    CHECK_EQ(y_rows, pass.rows);
    CHECK_EQ(y_features, outputs_);
  }
  virtual void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const = 0;
  virtual void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                          Panels<T> dx) const = 0;

  int64_t inputs_;
  int64_t outputs_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_MODULE_H_
