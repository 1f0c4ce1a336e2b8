#include "core/base/instantiate.h"
#include "core/cuda/launch.h"
#include "core/kernels/cuda/target_token.h"

namespace elastor::cuda {
namespace {

constexpr int kTokenThreads = 256;

// An element of a view of vectors, k features each: of which vector, and which feature of it.
struct TokenElement {
  int64_t row;
  int64_t vector;
  int64_t feature;

  __device__ TokenElement(int64_t features, int64_t width) {
    const int64_t item = static_cast<int64_t>(blockIdx.x) * kTokenThreads + threadIdx.x;
    row = item / features;
    vector = item % features / width;
    feature = item % width;
  }
};

// Feature `feature` of a row's vector `vector`.
template <typename AnyShape, typename A>
__device__ A& At(const AnyShape& shape, const Activations<A>& view, int64_t row, int64_t vector,
                 int64_t feature) {
  return view.data[row * view.row_stride + vector * shape.width + feature];
}

// A thread: an element of y.
template <typename A>
__global__ void __launch_bounds__(kTokenThreads)
    AppendHistoryKernel(const HistoryShape shape, const Activations<const A> x,
                        const Activations<const A> z, const Activations<A> y) {
  const auto [row, t, f] = TokenElement(y.features, shape.width);
  if (row >= y.rows) return;
  const int64_t of_z = t - shape.positions + shape.lengths.Of(row);
  A value = static_cast<A>(0.0f);
  if (of_z >= shape.before) {
    value = At(shape, x, row, (shape.last ? t : of_z) - shape.before, f);
  } else if (of_z >= 0) {
    value = At(shape, z, row, of_z, f);
  }
  At(shape, y, row, t, f) = value;
}

// A thread: an element of dx and, behind these, of dz.
template <typename A>
__global__ void __launch_bounds__(kTokenThreads)
    AppendHistoryBackwardKernel(const HistoryShape shape, const Activations<const A> dy,
                                const Activations<A> dx, const Activations<A> dz) {
  const auto [row, vector, f] = TokenElement(dy.features, shape.width);
  if (row >= dy.rows) return;
  const int64_t length = shape.lengths.Of(row);
  const int64_t moved = shape.positions - length;
  const int64_t of_x = shape.positions + shape.behind;
  if (vector >= of_x) {
    const int64_t t = vector - of_x;
    At(shape, dz, row, t, f) = At(shape, dy, row, t + moved, f);
    return;
  }
  const bool there = shape.last ? vector >= moved : vector < length;
  const int64_t place = shape.before + vector + (shape.last ? 0 : moved);
  At(shape, dx, row, vector, f) = there ? At(shape, dy, row, place, f) : static_cast<A>(0.0f);
}

// A thread: an element of x.
template <typename A>
__global__ void __launch_bounds__(kTokenThreads)
    AppendKernel(const TargetTokenShape shape, const Activations<const A> e,
                 const Activations<A> x) {
  const auto [row, t, f] = TokenElement(x.features, shape.width);
  if (row >= x.rows) return;
  const int64_t length = shape.lengths.Of(row);
  A value = static_cast<A>(0.0f);
  if (t <= length) value = At(shape, e, row, t < length ? shape.fields + t : shape.field, f);
  At(shape, x, row, t, f) = value;
}

// A thread: an element of de.
template <typename A>
__global__ void __launch_bounds__(kTokenThreads)
    AppendBackwardKernel(const TargetTokenShape shape, const Activations<const A> dx,
                         const Activations<A> de) {
  const auto [row, vector, f] = TokenElement(de.features, shape.width);
  if (row >= de.rows) return;
  const int64_t length = shape.lengths.Of(row);
  const int64_t t = vector == shape.field ? length : vector - shape.fields;
  const bool token = vector == shape.field || (t >= 0 && t < length);
  At(shape, de, row, vector, f) = token ? At(shape, dx, row, t, f) : static_cast<A>(0.0f);
}

// A thread: an element of y.
template <typename A>
__global__ void __launch_bounds__(kTokenThreads)
    ReadKernel(const TargetTokenShape shape, const Activations<const A> e,
               const Activations<const A> x, const Activations<A> y) {
  const auto [row, vector, f] = TokenElement(y.features, shape.width);
  if (row >= y.rows) return;
  At(shape, y, row, vector, f) = vector == shape.field ? At(shape, x, row, shape.lengths.Of(row), f)
                                                       : At(shape, e, row, vector, f);
}

// A thread: an element of de and, behind these, of dx.
template <typename A>
__global__ void __launch_bounds__(kTokenThreads)
    ReadBackwardKernel(const TargetTokenShape shape, const Activations<const A> dy,
                       const Activations<A> de, const Activations<A> dx) {
  const auto [row, vector, f] = TokenElement(de.features + dx.features, shape.width);
  if (row >= de.rows) return;
  const int64_t t = vector - shape.fields - shape.positions;
  if (t < 0) {
    const bool passed = vector < shape.fields && vector != shape.field;
    At(shape, de, row, vector, f) = passed ? At(shape, dy, row, vector, f) : static_cast<A>(0.0f);
    return;
  }
  At(shape, dx, row, t, f) =
      t == shape.lengths.Of(row) ? At(shape, dy, row, shape.field, f) : static_cast<A>(0.0f);
}

// Launches a thread for each of `features` elements of every row.
template <typename... Parameters, typename... Arguments>
void LaunchElements(Stream& stream, int64_t rows, int64_t features, void (*kernel)(Parameters...),
                    const Arguments&... arguments) {
  if (rows == 0) return;
  Launch(stream, Blocks(rows * features, kTokenThreads), kTokenThreads, kernel, arguments...);
}

}  // namespace

template <typename A>
void AppendHistory(Stream& stream, const HistoryShape& shape, Activations<const A> x,
                   Activations<const A> z, Activations<A> y) {
  LaunchElements(stream, y.rows, y.features, AppendHistoryKernel<A>, shape, x, z, y);
}

template <typename A>
void AppendHistoryBackward(Stream& stream, const HistoryShape& shape, Activations<const A> dy,
                           Activations<A> dx, Activations<A> dz) {
  LaunchElements(stream, dy.rows, dy.features, AppendHistoryBackwardKernel<A>, shape, dy, dx, dz);
}

template <typename A>
void AppendTarget(Stream& stream, const TargetTokenShape& shape, Activations<const A> e,
                  Activations<A> x) {
  LaunchElements(stream, x.rows, x.features, AppendKernel<A>, shape, e, x);
}

template <typename A>
void AppendTargetBackward(Stream& stream, const TargetTokenShape& shape, Activations<const A> dx,
                          Activations<A> de) {
  LaunchElements(stream, de.rows, de.features, AppendBackwardKernel<A>, shape, dx, de);
}

template <typename A>
void ReadTarget(Stream& stream, const TargetTokenShape& shape, Activations<const A> e,
                Activations<const A> x, Activations<A> y) {
  LaunchElements(stream, y.rows, y.features, ReadKernel<A>, shape, e, x, y);
}

template <typename A>
void ReadTargetBackward(Stream& stream, const TargetTokenShape& shape, Activations<const A> dy,
                        Activations<A> de, Activations<A> dx) {
  LaunchElements(stream, de.rows, de.features + dx.features, ReadBackwardKernel<A>, shape, dy, de,
                 dx);
}

ELASTOR_INSTANTIATE(AppendHistory, float, BFloat16)
ELASTOR_INSTANTIATE(AppendHistoryBackward, float, BFloat16)
ELASTOR_INSTANTIATE(AppendTarget, float, BFloat16)
ELASTOR_INSTANTIATE(AppendTargetBackward, float, BFloat16)
ELASTOR_INSTANTIATE(ReadTarget, float, BFloat16)
ELASTOR_INSTANTIATE(ReadTargetBackward, float, BFloat16)

}  // namespace elastor::cuda
