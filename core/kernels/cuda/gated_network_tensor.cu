#include <algorithm>
#include <type_traits>

#include "core/base/instantiate.h"
#include "core/cuda/fragments.h"
#include "core/kernels/cuda/activate.h"
#include "core/kernels/cuda/gated_network_parts.h"

// The gated per-token network by tensor cores. A warp has 16 rows; p, q and dh of some hidden units
// at a time are sums in its registers, and h, dp and dq, rounded there, the left operands of what
// follows. Weights' gradients are sums over rows, so for them h, dp and dq go through shared
// memory.

namespace elastor::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kWarpRows = 16;
constexpr int kPlaces = kWarps * kWarpRows;  // rows at once
constexpr int kForwardTiles = 4;             // of so many rows, by a block; fewer of few rows
// Hidden units are so many that they are rows of a left operand and depths of any.
constexpr int kHiddenUnit = 16;

// In shared memory neighbouring runs lie 16 bytes more apart than a multiple of 32: the eight runs
// and four neighbouring words of each that an operand has from memory meet in no bank. (Those of a
// right operand of sums meet in pairs in TF32 forward, and so do rows that lie feature by feature.)
template <typename A>
__host__ __device__ constexpr int Run(int elements) {
  return RoundUp(elements, kHiddenUnit) + 16 / static_cast<int>(sizeof(A));
}

template <typename A>
struct Arguments {
  int hidden;
  int padded_hidden;
  Activation activation;
  GatedWeights<A> weights;
  FastDivisor by_width;
  FastDivisor by_hidden;

  __device__ int width() const { return static_cast<int>(by_width.divisor()); }
};

// to[row * row_step + column * column_step] = from [rows, columns], as factors. By the whole block.
template <typename A>
__device__ inline void LoadMatrix(const A* from, int rows, const FastDivisor& by_columns,
                                  int row_step, int column_step, A* to) {
  const int columns = static_cast<int>(by_columns.divisor());
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += kThreads) {
    const int row = static_cast<int>(by_columns.Divide(i));
    to[row * row_step + (i - row * columns) * column_step] = Fragments<A>::Factor(from[i]);
  }
}
template <typename A>
__device__ inline void FillZero(A* to, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) to[i] = A{};
  __syncthreads();
}

// W1 and W2 [2 H'][D'], each with its own H' = padded_hidden rows, W3 and Wr. kWidth: D'.
template <typename A, int kWidth>
struct SharedWeights {
  static constexpr int kRun = Run<A>(kWidth);

  A* up;
  A* residual;  // [D'][D'], backward transposed
  A* down;      // forward [D'][H'], backward transposed, [H'][D']

  static __host__ __device__ int down_run(int padded_hidden, bool backward) {
    return backward ? kRun : Run<A>(padded_hidden);
  }
  static __host__ __device__ int elements(int padded_hidden, bool backward) {
    return (2 * padded_hidden + kWidth) * kRun +
           (backward ? padded_hidden : kWidth) * down_run(padded_hidden, backward);
  }
  // By the whole block.
  __device__ SharedWeights(const Arguments<A>& a, int64_t token, bool backward, A* memory)
      : up(memory), residual(up + 2 * a.padded_hidden * kRun), down(residual + kWidth * kRun) {
    const int d = a.width();
    const int h = a.hidden;
    FillZero(memory, elements(a.padded_hidden, backward));
    const A* const w12 = a.weights.up + token * 2 * h * d;
    LoadMatrix(w12, h, a.by_width, kRun, 1, up);
    LoadMatrix(w12 + h * d, h, a.by_width, kRun, 1, up + a.padded_hidden * kRun);
    const int run = down_run(a.padded_hidden, backward);
    LoadMatrix(a.weights.down + token * d * h, d, a.by_hidden, backward ? 1 : run,
               backward ? run : 1, down);
    LoadMatrix(a.weights.residual + token * d * d, d, a.by_width, backward ? 1 : kRun,
               backward ? kRun : 1, residual);
    __syncthreads();
  }
};

// sums += left right over kWidth: eight columns' right operands lie from `at` on, depth by depth.
template <typename A, int kWidth>
__device__ inline void AddOverWidth(const LeftFragment (&left)[kWidth / Fragments<A>::kDepth],
                                    const A* at, SumFragment* sums) {
  constexpr int kDepth = Fragments<A>::kDepth;
#pragma unroll
  for (int s = 0; s < kWidth / kDepth; ++s) {
    Fragments<A>::MultiplyAdd(left[s], Fragments<A>::Right(at + s * kDepth, Run<A>(kWidth), 1),
                              sums);
  }
}

template <typename A>
__device__ inline void SetLeft(LeftFragment* left, int eight, const Values<4>& values,
                               A (&factors)[4]) {
  for (int i = 0; i < 4; ++i) factors[i] = Fragments<A>::Factor(values.v[i]);
  Fragments<A>::SetLeft(left, eight, factors);
}

__device__ inline Values<4> AsValues(const SumFragment& sums) {
  return {{sums.v[0], sums.v[1], sums.v[2], sums.v[3]}};
}

// The first `columns` of the sums' columns, from `to` on.
template <typename A>
__device__ inline void StoreSums(const SumFragment& sums, int columns, int row_step,
                                 int column_step, A* to) {
  to += FragmentRow() * row_step + FragmentColumn() * column_step;
  for (int i = 0; i < 4; ++i) {
    if (FragmentColumn() + SumFragment::Column(i) < columns) {
      to[SumFragment::Row(i) * row_step + SumFragment::Column(i) * column_step] =
          static_cast<A>(sums.v[i]);
    }
  }
}

// At once, of the rows that are left: as many as whole warps have.
__device__ inline int Places(int64_t rows) {
  return rows < kPlaces ? RoundUp(static_cast<int>(rows), kWarpRows) : kPlaces;
}

// ---- Forward

template <typename A, int kWidth>
int ForwardBytes(int padded_hidden) {
  return (SharedWeights<A, kWidth>::elements(padded_hidden, false) + kPlaces * Run<A>(kWidth)) *
         static_cast<int>(sizeof(A));
}

// A block: some tiles of rows (blockIdx.x) of a token (blockIdx.y).
template <typename A, int kWidth>
__global__ void __launch_bounds__(kThreads)
    TensorForwardKernel(const Arguments<A> a, int tiles, const Activations<const A> x,
                        const Activations<A> z) {
  constexpr int kDepth = Fragments<A>::kDepth;
  constexpr int kRun = Run<A>(kWidth);
  constexpr int kEights = kWidth / 8;
  A* const memory = SharedMemory<A>();
  const int64_t token = blockIdx.y;
  A* const rows = memory + SharedWeights<A, kWidth>::elements(a.padded_hidden, false);
  FillZero(rows, kPlaces * kRun);
  const SharedWeights<A, kWidth> weights(a, token, /*backward=*/false, memory);
  const int down_run = SharedWeights<A, kWidth>::down_run(a.padded_hidden, false);
  const int first_place = static_cast<int>(threadIdx.x) / kWarp * kWarpRows;  // the warp's
  A* const own = rows + first_place * kRun;
  for (int tile = 0; tile < tiles; ++tile) {
    const int64_t first = (static_cast<int64_t>(blockIdx.x) * tiles + tile) * kPlaces;
    if (first >= x.rows) return;
    const auto row_of = [&](int place) { return first + place < x.rows ? first + place : -1; };
    const int places = Places(x.rows - first);
    LoadRows(
        a.by_width, x, token, places, row_of, 1, kRun,
        [](A value) { return Fragments<A>::Factor(value); }, rows);
    __syncthreads();
    if (first_place < places) {
      LeftFragment in[kWidth / kDepth];
#pragma unroll
      for (int s = 0; s < kWidth / kDepth; ++s) {
        in[s] = Fragments<A>::Left(own + s * kDepth, kRun, 1);
      }
      SumFragment out[kEights];
      for (int unit = 0; unit < a.padded_hidden; unit += kDepth) {
        LeftFragment h;
#pragma unroll
        for (int eight = 0; eight < kDepth / 8; ++eight) {
          const A* const w1 = weights.up + (unit + 8 * eight) * kRun;
          SumFragment p;
          SumFragment q;
          AddOverWidth<A, kWidth>(in, w1, &p);
          AddOverWidth<A, kWidth>(in, w1 + a.padded_hidden * kRun, &q);
          Values<4> product = Activate(a.activation, AsValues(p)).value;
          for (int i = 0; i < 4; ++i) product.v[i] *= q.v[i];
          A factors[4];
          SetLeft(&h, eight, product, factors);
        }
#pragma unroll
        for (int n = 0; n < kEights; ++n) {
          Fragments<A>::MultiplyAdd(
              h, Fragments<A>::RightOfSums(weights.down + 8 * n * down_run + unit, down_run, 1),
              &out[n]);
        }
      }
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
        AddOverWidth<A, kWidth>(in, weights.residual + 8 * n * kRun, &out[n]);
      }
      __syncwarp();
#pragma unroll
      for (int n = 0; n < kEights; ++n) StoreSums(out[n], a.width() - 8 * n, kRun, 1, own + 8 * n);
    }
    __syncthreads();
    StoreRows(a.by_width, rows, 1, kRun, token, places, row_of, z);
    __syncthreads();
  }
}

// ---- Backward

// On a multiprocessor at once, as far as shared memory allows it.
template <typename A>
constexpr int kBlocks = sizeof(A) == 2 ? 2 : 1;

// A run of rows of one feature.
template <typename A>
constexpr int kRowRun = Run<A>(kPlaces);

// Shared memory of a block: the weights, then features of the rows: dp and dq, h, x (later dx), dz.
template <int kWidth>
struct BackwardRows {
  int h;
  int x;
  int dz;
  int end;
  __host__ __device__ explicit BackwardRows(int padded_hidden)
      : h(2 * padded_hidden), x(h + padded_hidden), dz(x + kWidth), end(dz + kWidth) {}
};

template <typename A, int kWidth>
int BackwardBytes(int padded_hidden) {
  return (SharedWeights<A, kWidth>::elements(padded_hidden, true) +
          BackwardRows<kWidth>(padded_hidden).end * kRowRun<A>)*static_cast<int>(sizeof(A));
}

// Weights' gradients are cut into strips of 16 left features and up to 32 right ones, which warps
// have in turn.
constexpr int kStripEights = 4;
constexpr int kMostStrips = 3;  // of a warp

struct Strip {
  int left = 0;  // feature of the rows in shared memory
  int right = 0;
  int eights = 0;    // of right features; 0: no strip
  int gradient = 0;  // 0: of W1 and W2, 1: of W3, 2: of Wr
};

template <int kWidth>
__host__ __device__ inline Strip StripOf(int number, int padded_hidden) {
  const BackwardRows<kWidth> at(padded_hidden);
  const int ups = 2 * padded_hidden / 16;
  if (number < ups) return {16 * number, at.x, kWidth / 8, 0};
  number -= ups;
  const int across = DivideUp(padded_hidden, 8 * kStripEights);
  const int downs = kWidth / 16 * across;
  if (number < downs) {
    const int first = number % across * 8 * kStripEights;
    const int rest = (padded_hidden - first) / 8;
    return {at.dz + 16 * (number / across), at.h + first, rest < kStripEights ? rest : kStripEights,
            1};
  }
  number -= downs;
  if (number < kWidth / 16) return {at.dz + 16 * number, at.x, kWidth / 8, 2};
  return {};
}

// A block: a part (blockIdx.z) of a leaf (blockIdx.x) of a token (blockIdx.y), part_rows rows,
// kPlaces at a time. Gradients go where a leaf's would, by the number of the part among those of
// all leaves.
template <typename A, int kWidth>
__global__ void __launch_bounds__(kThreads, kBlocks<A>)
    TensorBackwardKernel(const Arguments<A> a, int leaf_rows, int part_rows,
                         const Activations<const A> x, const Activations<const A> dz,
                         const Activations<A> dx, const GatedGradients gradients) {
  constexpr int kDepth = Fragments<A>::kDepth;
  constexpr int kRun = Run<A>(kWidth);
  constexpr int kEights = kWidth / 8;
  constexpr int kSteps = kWidth / kDepth;
  A* const memory = SharedMemory<A>();
  const int64_t token = blockIdx.y;
  const int padded_hidden = a.padded_hidden;
  const BackwardRows<kWidth> at(padded_hidden);
  A* const rows = memory + SharedWeights<A, kWidth>::elements(padded_hidden, true);
  FillZero(rows + at.x * kRowRun<A>, (at.end - at.x) * kRowRun<A>);  // features without numbers
  const SharedWeights<A, kWidth> weights(a, token, /*backward=*/true, memory);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first_place = warp * kWarpRows;  // the warp's
  A* const own = rows + first_place;         // of feature 0
  SumFragment sums[kMostStrips][kStripEights];

  const int part_begin = static_cast<int>(blockIdx.z) * part_rows;
  const int part_end = min(leaf_rows, part_begin + part_rows);
  for (int begin = part_begin; begin < part_end; begin += kPlaces) {
    const auto row_of = [&](int place) -> int64_t {
      return begin + place < part_end ? static_cast<int64_t>(blockIdx.x) * leaf_rows + begin + place
                                      : -1;
    };
    const int places = Places(part_end - begin);
    const auto factor = [](A value) { return Fragments<A>::Factor(value); };
    LoadRows(a.by_width, x, token, places, row_of, kRowRun<A>, 1, factor, rows + at.x * kRowRun<A>);
    LoadRows(a.by_width, dz, token, places, row_of, kRowRun<A>, 1, factor,
             rows + at.dz * kRowRun<A>);
    __syncthreads();
    SumFragment din[kEights];
    if (first_place < places) {
      LeftFragment in[kSteps];
      LeftFragment dout[kSteps];
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        in[s] = Fragments<A>::Left(own + (at.x + s * kDepth) * kRowRun<A>, 1, kRowRun<A>);
        dout[s] = Fragments<A>::Left(own + (at.dz + s * kDepth) * kRowRun<A>, 1, kRowRun<A>);
      }

      for (int unit = 0; unit < padded_hidden; unit += kDepth) {
        LeftFragment dp;
        LeftFragment dq;
#pragma unroll
        for (int eight = 0; eight < kDepth / 8; ++eight) {
          const int first = unit + 8 * eight;
          SumFragment p;
          SumFragment q;
          SumFragment dh;
          AddOverWidth<A, kWidth>(in, weights.up + first * kRun, &p);
          AddOverWidth<A, kWidth>(in, weights.up + (padded_hidden + first) * kRun, &q);
          AddOverWidth<A, kWidth>(dout, weights.down + first * kRun, &dh);
          const ValuesAndSlopes<4> gate = Activate(a.activation, AsValues(p));
          Values<4> h;
          Values<4> p_gradient;
          Values<4> q_gradient;
          for (int i = 0; i < 4; ++i) {
            h.v[i] = gate.value.v[i] * q.v[i];
            p_gradient.v[i] = dh.v[i] * (q.v[i] * gate.slope.v[i]);
            q_gradient.v[i] = dh.v[i] * gate.value.v[i];
          }
          A factors[4];
          const auto store = [&](int feature) {
            A* const to = own + (feature + first + FragmentColumn()) * kRowRun<A> + FragmentRow();
            for (int i = 0; i < 4; ++i) {
              to[SumFragment::Column(i) * kRowRun<A> + SumFragment::Row(i)] = factors[i];
            }
          };
          SetLeft(&dp, eight, p_gradient, factors);
          store(0);
          SetLeft(&dq, eight, q_gradient, factors);
          store(padded_hidden);
          for (int i = 0; i < 4; ++i) factors[i] = Fragments<A>::Factor(h.v[i]);
          store(at.h);
        }
#pragma unroll
        for (int n = 0; n < kEights; ++n) {
          const A* const w1 = weights.up + unit * kRun + 8 * n;
          Fragments<A>::MultiplyAdd(dp, Fragments<A>::RightOfSums(w1, 1, kRun), &din[n]);
          Fragments<A>::MultiplyAdd(
              dq, Fragments<A>::RightOfSums(w1 + padded_hidden * kRun, 1, kRun), &din[n]);
        }
      }
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
        AddOverWidth<A, kWidth>(dout, weights.residual + 8 * n * kRun, &din[n]);
      }
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < kMostStrips; ++i) {
      const Strip strip = StripOf<kWidth>(warp + i * kWarps, padded_hidden);
      if (strip.eights == 0) continue;
      for (int place = 0; place < places; place += kDepth) {
        const LeftFragment left =
            Fragments<A>::Left(rows + strip.left * kRowRun<A> + place, kRowRun<A>, 1);
#pragma unroll
        for (int n = 0; n < kStripEights; ++n) {
          if (n < strip.eights) {
            const A* const right = rows + (strip.right + 8 * n) * kRowRun<A> + place;
            Fragments<A>::MultiplyAdd(left, Fragments<A>::Right(right, kRowRun<A>, 1), &sums[i][n]);
          }
        }
      }
    }
    __syncthreads();
    if (first_place < places) {
      A* const own_dx = own + at.x * kRowRun<A>;
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
        StoreSums(din[n], a.width() - 8 * n, 1, kRowRun<A>, own_dx + 8 * n * kRowRun<A>);
      }
    }
    __syncthreads();
    StoreRows(a.by_width, rows + at.x * kRowRun<A>, kRowRun<A>, 1, token, places, row_of, dx);
    __syncthreads();
  }

  const int d = a.width();
  const int h = a.hidden;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * gridDim.z + blockIdx.z;
#pragma unroll
  for (int i = 0; i < kMostStrips; ++i) {
    const Strip strip = StripOf<kWidth>(warp + i * kWarps, padded_hidden);
    const LeafTarget& target = strip.gradient == 0   ? gradients.up
                               : strip.gradient == 1 ? gradients.down
                                                     : gradients.residual;
    float* const to = target.data + token * target.map_stride + number * target.leaf_stride;
    const int columns = strip.gradient == 1 ? h : d;
#pragma unroll
    for (int n = 0; n < kStripEights; ++n) {
      for (int e = 0; e < 4; ++e) {
        int row = strip.left + FragmentRow() + SumFragment::Row(e);
        bool there = n < strip.eights;
        if (strip.gradient == 0) {
          const int second = row >= padded_hidden ? 1 : 0;
          row -= second * padded_hidden;
          there = there && row < h;
          row += second * h;
        } else {
          row -= at.dz;
          there = there && row < d;
        }
        const int column = strip.right - (strip.gradient == 1 ? at.h : at.x) + 8 * n +
                           FragmentColumn() + SumFragment::Column(e);
        if (there && column < columns) to[row * columns + column] = sums[i][n].v[e];
      }
    }
  }
}

template <typename A>
Arguments<A> MakeArguments(const GatedNetwork& network, const GatedWeights<A>& weights) {
  const int hidden = static_cast<int>(network.hidden);
  return {hidden,  RoundUp(hidden, kHiddenUnit), network.activation,
          weights, FastDivisor(network.width),   FastDivisor(network.hidden)};
}

constexpr int64_t kMostWidth = 32;
constexpr int64_t kMostHidden = 96;

// Calls call with the least compiled width that holds D, as a std::integral_constant.
template <typename Call>
auto WithWidth(const GatedNetwork& network, const Call& call) {
  if (network.width <= 16) return call(std::integral_constant<int, 16>{});
  return call(std::integral_constant<int, kMostWidth>{});
}

template <typename A>
void LaunchForward(Stream& stream, const GatedNetwork& network, const Arguments<A>& arguments,
                   Activations<const A> x, Activations<A> z) {
  int tiles = kForwardTiles;
  while (tiles > 1 && Blocks(x.rows, tiles * kPlaces) * network.tokens < kEnoughBlocks) tiles /= 2;
  const dim3 grid(Blocks(x.rows, tiles * kPlaces), static_cast<unsigned>(network.tokens));
  WithWidth(network, [&](auto width) {
    LaunchWithSharedMemory(stream, grid, kThreads, ForwardBytes<A, width>(arguments.padded_hidden),
                           TensorForwardKernel<A, width>, arguments, tiles, x, z);
  });
}

// Returns the number of parts of a leaf. It depends on the whole job's leaves, so that the leaf's
// sums have the same order on any number of ranks.
int Parts(const GatedNetwork& network, const LeafShape& leaves, int64_t canonical_leaves) {
  CHECK_LE(leaves.leaves, canonical_leaves);
  int parts = 1;
  while (2 * parts <= kMostParts &&
         2 * parts * canonical_leaves * network.tokens <= kEnoughBlocks &&
         leaves.leaf_rows >= 2 * parts * kPlaces) {
    parts *= 2;
  }
  return parts;
}

template <typename A>
void LaunchBackward(Stream& stream, const GatedNetwork& network, const Arguments<A>& arguments,
                    const LeafShape& leaves, int parts, Activations<const A> x,
                    Activations<const A> dz, Activations<A> dx, const GatedGradients& gradients) {
  CHECK_LT(leaves.leaf_rows, int64_t{1} << 30);
  const int leaf_rows = static_cast<int>(leaves.leaf_rows);
  const dim3 grid(static_cast<unsigned>(leaves.leaves), static_cast<unsigned>(network.tokens),
                  static_cast<unsigned>(parts));
  WithWidth(network, [&](auto width) {
    LaunchWithSharedMemory(stream, grid, kThreads, BackwardBytes<A, width>(arguments.padded_hidden),
                           TensorBackwardKernel<A, width>, arguments, leaf_rows,
                           RoundUp(DivideUp(leaf_rows, parts), kPlaces), x, dz, dx, gradients);
  });
}

}  // namespace

template <typename A>
int TensorGatedBytes(const GatedNetwork& network) {
  if (network.width > kMostWidth || network.hidden > kMostHidden) return 0;
  const int padded_hidden = RoundUp(static_cast<int>(network.hidden), kHiddenUnit);
  return WithWidth(network, [&](auto width) {
    CHECK_EQ(StripOf<width>(kMostStrips * kWarps, padded_hidden).eights, 0);
    return std::max(ForwardBytes<A, width>(padded_hidden), BackwardBytes<A, width>(padded_hidden));
  });
}

template <typename A>
void TensorGatedForward(Stream& stream, const GatedNetwork& network, const GatedWeights<A>& weights,
                        Activations<const A> x, Activations<A> z) {
  LaunchForward(stream, network, MakeArguments(network, weights), x, z);
}

template <typename A>
void TensorGatedBackward(Stream& stream, const GatedNetwork& network,
                         const GatedWeights<A>& weights, const LeafShape& leaves,
                         int64_t canonical_leaves, Activations<const A> x, Activations<const A> dz,
                         Activations<A> dx, const GatedGradients& gradients, float* scratch) {
  const int parts = Parts(network, leaves, canonical_leaves);
  LaunchBackward(stream, network, MakeArguments(network, weights), leaves, parts, x, dz, dx,
                 parts == 1 ? gradients : GatedPartTargets(network, leaves.leaves, parts, scratch));
  if (parts > 1) AddGatedParts(stream, network, leaves.leaves, parts, scratch, gradients);
}

ELASTOR_INSTANTIATE(TensorGatedBytes, float, BFloat16)
ELASTOR_INSTANTIATE(TensorGatedForward, float, BFloat16)
ELASTOR_INSTANTIATE(TensorGatedBackward, float, BFloat16)

}  // namespace elastor::cuda
