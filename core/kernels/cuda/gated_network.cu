#include <algorithm>
#include <type_traits>

#include "core/base/instantiate.h"
#include "core/kernels/cuda/activate.h"
#include "core/kernels/cuda/gated_network.h"
#include "core/kernels/cuda/gated_network_parts.h"

namespace elastor::cuda {
namespace {

// kWidth below is D rounded up. In shared memory and registers a missing weight is +0 and a missing
// activation -0: their product is -0, which leaves every sum as it is, -0 too.

__device__ inline float2& At2(float* p) { return *reinterpret_cast<float2*>(p); }
__device__ inline float4 At4(const float* p) { return *reinterpret_cast<const float4*>(p); }

// s += w * x, element by element.
__device__ inline void AddProducts(float w, const float4& x, float* s) {
  s[0] = fmaf(w, x.x, s[0]);
  s[1] = fmaf(w, x.y, s[1]);
  s[2] = fmaf(w, x.z, s[2]);
  s[3] = fmaf(w, x.w, s[3]);
}
// The chain s goes on over four elements.
__device__ inline float Chain(const float4& w, const float* x, float s) {
  s = fmaf(w.x, x[0], s);
  s = fmaf(w.y, x[1], s);
  s = fmaf(w.z, x[2], s);
  return fmaf(w.w, x[3], s);
}
// Over the first two of them, and the others where the chain has them.
__device__ inline float Chain(const float4& w, const float4& x, bool whole, float s) {
  s = fmaf(w.x, x.x, s);
  s = fmaf(w.y, x.y, s);
  if (whole) {
    s = fmaf(w.z, x.z, s);
    s = fmaf(w.w, x.w, s);
  }
  return s;
}

struct Arguments {
  int width;
  int hidden;
  Activation activation;
  GatedWeights<float> weights;
  FastDivisor by_width;
  FastDivisor by_hidden;
};

// A token's weights in shared memory, in runs of kWidth: all threads of a warp read a run at once.
template <int kWidth>
struct SharedWeights {
  float* up;        // [2 H][D]
  float* down;      // [H][D]: W3 transposed
  float* residual;  // [D][D]

  static __host__ __device__ int floats(int width, int hidden) {
    return (3 * hidden + width) * kWidth;
  }
  __device__ SharedWeights(const Arguments& a, float* memory)
      : up(memory), down(up + 2 * a.hidden * kWidth), residual(down + a.hidden * kWidth) {}

  // By the whole block. `transposed`: of Wr.
  __device__ void Load(const Arguments& a, int64_t token, bool transposed) const {
    const int d = a.width;
    const int h = a.hidden;
    const int threads = static_cast<int>(blockDim.x);
    const int first = static_cast<int>(threadIdx.x);
    for (int i = first; i < floats(d, h); i += threads) up[i] = 0;
    __syncthreads();
    const float* const w12 = a.weights.up + token * 2 * h * d;
    for (int i = first; i < 2 * h * d; i += threads) {
      const int row = static_cast<int>(a.by_width.Divide(i));
      up[row * kWidth + (i - row * d)] = w12[i];
    }
    const float* const w3 = a.weights.down + token * d * h;
    for (int i = first; i < d * h; i += threads) {
      const int row = static_cast<int>(a.by_hidden.Divide(i));
      down[(i - row * h) * kWidth + row] = w3[i];
    }
    const float* const wr = a.weights.residual + token * d * d;
    for (int i = first; i < d * d; i += threads) {
      const int row = static_cast<int>(a.by_width.Divide(i));
      const int column = i - row * d;
      residual[transposed ? column * kWidth + row : row * kWidth + column] = wr[i];
    }
    __syncthreads();
  }
};

// Rows in shared memory lie feature by feature: element f of the row at place i is at f * run + i.
template <typename RowOf>
__device__ inline void LoadRows(const Arguments& a, const Activations<const float>& from,
                                int64_t token, int places, const RowOf& row_of, int run,
                                float* to) {
  LoadRows(
      a.by_width, from, token, places, row_of, run, 1, [](float x) { return x; }, to);
}
template <typename RowOf>
__device__ inline void StoreRows(const Arguments& a, const float* from, int run, int64_t token,
                                 int places, const RowOf& row_of, const Activations<float>& to) {
  StoreRows(a.by_width, from, run, 1, token, places, row_of, to);
}

// ---- Forward

constexpr int kForwardThreads = 128;
constexpr int kForwardRows = 2 * kForwardThreads;  // at once
constexpr int kForwardTiles = 2;                   // of so many rows, by a block
constexpr int kForwardRun = kForwardRows + 1;      // odd: neither rows nor features meet in a bank

template <int kWidth>
int ForwardBytes(const GatedNetwork& network) {
  const int d = static_cast<int>(network.width);
  const int h = static_cast<int>(network.hidden);
  return (SharedWeights<kWidth>::floats(d, h) + d * kForwardRun) * static_cast<int>(sizeof(float));
}

// A block: kForwardTiles tiles of rows (blockIdx.x) of a token (blockIdx.y); a thread: two rows of
// a tile, x and z in registers.
template <int kWidth>
__global__ void __launch_bounds__(kForwardThreads)
    ForwardKernel(const Arguments a, const Activations<const float> x, const Activations<float> z) {
  float* const memory = SharedMemory<float>();
  const SharedWeights<kWidth> weights(a, memory);
  float* const rows = memory + SharedWeights<kWidth>::floats(a.width, a.hidden);
  float* const own = rows + threadIdx.x;  // the second one kForwardThreads behind it
  const int64_t token = blockIdx.y;
  weights.Load(a, token, /*transposed=*/true);
  for (int tile = 0; tile < kForwardTiles; ++tile) {
    const int64_t first = (static_cast<int64_t>(blockIdx.x) * kForwardTiles + tile) * kForwardRows;
    if (first >= x.rows) return;
    const auto row_of = [&](int place) { return first + place < x.rows ? first + place : -1; };
    LoadRows(a, x, token, kForwardRows, row_of, kForwardRun, rows);
    __syncthreads();
    float in[2][kWidth];
    float out[2][kWidth];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int f = 0; f < kWidth; ++f) {
        in[r][f] = f < a.width ? own[f * kForwardRun + r * kForwardThreads] : -0.0f;
        out[r][f] = 0;
      }
    }
    for (int j = 0; j < a.hidden; ++j) {
      Values<2> p = {};
      Values<2> q = {};
      const float* const w1 = weights.up + j * kWidth;
      const float* const w2 = w1 + a.hidden * kWidth;
#pragma unroll
      for (int f = 0; f < kWidth; f += 4) {
        const float4 p_weights = At4(w1 + f);
        const float4 q_weights = At4(w2 + f);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          p.v[r] = Chain(p_weights, in[r] + f, p.v[r]);
          q.v[r] = Chain(q_weights, in[r] + f, q.v[r]);
        }
      }
      Values<2> h = Activate(a.activation, p).value;
      const float* const w3 = weights.down + j * kWidth;
#pragma unroll
      for (int r = 0; r < 2; ++r) h.v[r] *= q.v[r];
#pragma unroll
      for (int f = 0; f < kWidth; f += 4) {
        const float4 w = At4(w3 + f);
#pragma unroll
        for (int r = 0; r < 2; ++r) AddProducts(h.v[r], w, out[r] + f);
      }
    }
    for (int k = 0; k < a.width; ++k) {
#pragma unroll
      for (int f = 0; f < kWidth; f += 4) {
        const float4 w = At4(weights.residual + k * kWidth + f);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          AddProducts(own[k * kForwardRun + r * kForwardThreads], w, out[r] + f);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int f = 0; f < kWidth; ++f) {
        if (f < a.width) own[f * kForwardRun + r * kForwardThreads] = out[r][f];
      }
    }
    __syncthreads();
    StoreRows(a, rows, kForwardRun, token, kForwardRows, row_of, z);
    __syncthreads();
  }
}

// ---- Backward

constexpr int kBackwardThreads = 256;
constexpr int kWarps = kBackwardThreads / kWarp;
constexpr int kPlaces = 2 * kWarp;  // rows at once: a lane has two
// Runs of 4 rows are aligned, and those of eight neighbouring features meet in no bank.
constexpr int kRun = kPlaces + 4;
// A thread's tile of a weight gradient: so many left factors, so many right ones.
constexpr int kLefts = 8;
constexpr int kRights = 4;

// On a multiprocessor at once, as far as 128 registers a thread allow it.
template <int kWidth>
constexpr int kBlocks = kWidth <= 28 ? 2 : 1;

__host__ __device__ constexpr int Tiles(int lefts, int rights) {
  return DivideUp(lefts, kLefts) * DivideUp(rights, kRights);
}

// WeightGradient's eight chains of a leaf's rows one after another, in the order in which they are
// added up as the leaves of a tree: each with the rows of the CPU's panels, at a multiple of 4
// positions. Neighbouring chains in equal numbers are the parts of a leaf that blocks of their own
// compute, subtrees of that tree.
struct ChainOrder {
  static constexpr int kChains = 8;
  static_assert(kChains <= kMostParts);
  static constexpr int kLevels = 3;
  int leaf_rows;
  int length;     // of a chain, absent rows at its end too
  int positions;  // of a chain
  int parts = 1;  // of a leaf
  int part_chains = kChains;
  int part_positions;
  FastDivisor by_positions;

  ChainOrder(const LeafShape& leaves, int64_t tokens)
      : leaf_rows(static_cast<int>(leaves.leaf_rows)),
        length(DivideUp(leaf_rows, static_cast<int>(kPanelRows)) *
               static_cast<int>(kPanelRows / kChains)),
        positions(DivideUp(length, 4) * 4),
        by_positions(positions) {
    CHECK_LT(leaves.leaf_rows, int64_t{1} << 30);
    // A part has at least the rows that are computed at once.
    while (2 * parts <= kChains && 2 * parts * leaves.leaves * tokens <= kEnoughBlocks &&
           kChains / (2 * parts) * positions >= kPlaces) {
      parts *= 2;
    }
    part_chains = kChains / parts;
    part_positions = part_chains * positions;
  }
  // The leaf's row at a position, -1: none. Numbers with their bits reversed make neighbours of the
  // chains that are added to each other: 0 and 4, 2 and 6, ...
  __device__ int Row(int position) const {
    const int turn = static_cast<int>(by_positions.Divide(position));
    const int chain = (turn & 1) << 2 | (turn & 2) | turn >> 2;
    const int row = (position - turn * positions) * kChains + chain;
    return row < leaf_rows ? row : -1;
  }
};

// Shared memory of a block: the weights, then rows of so many features: dp and dq, h, x (later dx)
// and dz. Tiles are read whole, so some more lie behind them.
struct BackwardRows {
  int h;
  int x;
  int dz;
  int end;
  __host__ __device__ BackwardRows(int width, int hidden)
      : h(2 * hidden), x(h + hidden), dz(x + width), end(dz + width + kLefts - 1) {}
};

template <int kWidth>
int BackwardBytes(const GatedNetwork& network) {
  const int d = static_cast<int>(network.width);
  const int h = static_cast<int>(network.hidden);
  return (SharedWeights<kWidth>::floats(d, h) + BackwardRows(d, h).end * kRun) *
         static_cast<int>(sizeof(float));
}

// Where the factors of a thread's tile lie among the rows in shared memory.
struct TileFactors {
  int left;  // the first one; -1: no tile
  int right;
  int left_step;  // floats
  int right_step;
};
// Some elements of a weight gradient [lefts, rights], the sums over rows of left[i] right[j]:
// every left_step-th left factor from first_left on, every right_step-th right one.
struct Tile {
  int left_at = 0;  // of left factor 0 among the features in shared memory
  int lefts = 0;    // 0: no tile
  int first_left = 0;
  int left_step = 0;
  int right_at = 0;
  int rights = 0;
  int first_right = 0;
  int right_step = 0;
  LeafTarget to;

  __device__ TileFactors Factors() const {
    return {lefts > 0 ? (left_at + first_left) * kRun : -1, (right_at + first_right) * kRun,
            left_step * kRun, right_step * kRun};
  }
};
// That of the running thread.
__device__ inline Tile OwnTile(const Arguments& a, const BackwardRows& at,
                               const GatedGradients& gradients) {
  int number = static_cast<int>(threadIdx.x);
  Tile tile;
  const auto divide = [&](int left_at, int lefts, int right_at, int rights, const LeafTarget& to) {
    const int left_step = DivideUp(lefts, kLefts);
    const int right_step = DivideUp(rights, kRights);
    if (number >= 0 && number < left_step * right_step) {
      tile = {left_at,  lefts,  number / right_step, left_step,
              right_at, rights, number % right_step, right_step,
              to};
    }
    number -= left_step * right_step;
  };
  divide(0, 2 * a.hidden, at.x, a.width, gradients.up);
  divide(at.dz, a.width, at.h, a.hidden, gradients.down);
  divide(at.dz, a.width, at.x, a.width, gradients.residual);
  return tile;
}

// A block: a part (blockIdx.z) of a leaf (blockIdx.x) of a token (blockIdx.y), kPlaces rows at a
// time. Gradients go where a leaf's would, by the number of the part among those of all leaves. A
// thread has in turn two rows and an eighth of the hidden units for p, q, h, dp and dq; two rows
// and four features for dx; and all along a tile of a weight gradient, in registers.
template <int kWidth>
__global__ void __launch_bounds__(kBackwardThreads, kBlocks<kWidth>)
    BackwardKernel(const Arguments a, const ChainOrder order, const Activations<const float> x,
                   const Activations<const float> dz, const Activations<float> dx,
                   const GatedGradients gradients) {
  float* const memory = SharedMemory<float>();
  const SharedWeights<kWidth> weights(a, memory);
  const BackwardRows at(a.width, a.hidden);
  float* const rows = memory + SharedWeights<kWidth>::floats(a.width, a.hidden);
  const int leaf = static_cast<int>(blockIdx.x);
  const int64_t token = blockIdx.y;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  float* const own = rows + 2 * (threadIdx.x % kWarp);  // the thread's two rows, of feature 0
  const TileFactors factors = OwnTile(a, at, gradients).Factors();
  float sums[kLefts][kRights] = {};
  float partial[ChainOrder::kLevels][kLefts][kRights];  // sums of 1, 2 and 4 chains
  int turn = 0;                                         // of the part's chains

  weights.Load(a, token, /*transposed=*/false);
  for (int begin = 0; begin < order.part_positions; begin += kPlaces) {
    const auto row_of = [&](int place) -> int64_t {
      const int position = begin + place;
      if (position >= order.part_positions) return -1;
      const int row = order.Row(static_cast<int>(blockIdx.z) * order.part_positions + position);
      return row < 0 ? -1 : static_cast<int64_t>(leaf) * order.leaf_rows + row;
    };
    LoadRows(a, x, token, kPlaces, row_of, kRun, rows + at.x * kRun);
    LoadRows(a, dz, token, kPlaces, row_of, kRun, rows + at.dz * kRun);
    __syncthreads();

    // dh in h's place, then p and q, and from them h, dp and dq.
    const int first_hidden = a.hidden * warp / kWarps;
    const int end_hidden = a.hidden * (warp + 1) / kWarps;
    float in[2][kWidth];
    const auto load = [&](int feature) {
#pragma unroll
      for (int f = 0; f < kWidth; ++f) {
        const float2 both =
            f < a.width ? At2(own + (feature + f) * kRun) : make_float2(-0.0f, -0.0f);
        in[0][f] = both.x;
        in[1][f] = both.y;
      }
    };
    load(at.dz);
    for (int j = first_hidden; j < end_hidden; ++j) {
      float2 dh = {};
#pragma unroll
      for (int f = 0; f < kWidth; f += 4) {
        const float4 w = At4(weights.down + j * kWidth + f);
        dh.x = Chain(w, in[0] + f, dh.x);
        dh.y = Chain(w, in[1] + f, dh.y);
      }
      At2(own + (at.h + j) * kRun) = dh;
    }
    load(at.x);
    for (int j = first_hidden; j < end_hidden; ++j) {
      Values<2> p = {};
      Values<2> q = {};
#pragma unroll
      for (int f = 0; f < kWidth; f += 4) {
        const float4 p_weights = At4(weights.up + j * kWidth + f);
        const float4 q_weights = At4(weights.up + (a.hidden + j) * kWidth + f);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          p.v[r] = Chain(p_weights, in[r] + f, p.v[r]);
          q.v[r] = Chain(q_weights, in[r] + f, q.v[r]);
        }
      }
      const ValuesAndSlopes<2> gate = Activate(a.activation, p);
      const float2 dh = At2(own + (at.h + j) * kRun);
      At2(own + (at.h + j) * kRun) =
          make_float2(gate.value.v[0] * q.v[0], gate.value.v[1] * q.v[1]);
      At2(own + j * kRun) =
          make_float2(dh.x * (q.v[0] * gate.slope.v[0]), dh.y * (q.v[1] * gate.slope.v[1]));
      At2(own + (a.hidden + j) * kRun) =
          make_float2(dh.x * gate.value.v[0], dh.y * gate.value.v[1]);
    }
    __syncthreads();

    // dx.
    const int feature = warp * 4;
    float d[2][4] = {};
    if (feature < a.width) {
      const auto add = [&](int factor, const float* weight_rows, int terms) {
#pragma unroll 4
        for (int j = 0; j < terms; ++j) {
          const float4 w = At4(weight_rows + j * kWidth + feature);
          const float2 both = At2(own + (factor + j) * kRun);
          AddProducts(both.x, w, d[0]);
          AddProducts(both.y, w, d[1]);
        }
      };
      add(0, weights.up, 2 * a.hidden);
      add(at.dz, weights.residual, a.width);
    }

    // Weight gradients. A finished chain is added to the sums before it as a carry to digits.
    if (factors.left >= 0) {
      for (int place = 0; place < kPlaces && begin + place < order.part_positions; place += 4) {
        const int in_chain = begin + place - turn * order.positions;
        const bool whole = in_chain + 4 <= order.length;
        float4 right[kRights];
#pragma unroll
        for (int j = 0; j < kRights; ++j) {
          right[j] = At4(rows + factors.right + j * factors.right_step + place);
        }
#pragma unroll
        for (int i = 0; i < kLefts; ++i) {
          const float4 left = At4(rows + factors.left + i * factors.left_step + place);
#pragma unroll
          for (int j = 0; j < kRights; ++j) sums[i][j] = Chain(left, right[j], whole, sums[i][j]);
        }
        if (in_chain + 4 < order.positions) continue;
        int level = 0;
        for (; turn >> level & 1; ++level) {
#pragma unroll
          for (int i = 0; i < kLefts; ++i) {
#pragma unroll
            for (int j = 0; j < kRights; ++j) sums[i][j] = partial[level][i][j] + sums[i][j];
          }
        }
        if (turn == order.part_chains - 1) break;  // sums are the part's gradient
#pragma unroll
        for (int i = 0; i < kLefts; ++i) {
#pragma unroll
          for (int j = 0; j < kRights; ++j) {
            partial[level][i][j] = sums[i][j];
            sums[i][j] = 0;
          }
        }
        ++turn;
      }
    }
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
      if (feature + i < a.width) {
        At2(own + (at.x + feature + i) * kRun) = make_float2(d[0][i], d[1][i]);
      }
    }
    __syncthreads();
    StoreRows(a, rows + at.x * kRun, kRun, token, kPlaces, row_of, dx);
    __syncthreads();
  }

  const Tile tile = OwnTile(a, at, gradients);
  if (tile.lefts == 0) return;
  const int64_t number = static_cast<int64_t>(leaf) * order.parts + blockIdx.z;
  float* const to = tile.to.data + token * tile.to.map_stride + number * tile.to.leaf_stride;
#pragma unroll
  for (int i = 0; i < kLefts; ++i) {
    const int left = tile.first_left + i * tile.left_step;
#pragma unroll
    for (int j = 0; j < kRights; ++j) {
      const int right = tile.first_right + j * tile.right_step;
      if (left < tile.lefts && right < tile.rights) to[left * tile.rights + right] = sums[i][j];
    }
  }
}

constexpr int kAddThreads = 256;

// The gradients of leaves (blockIdx.y) of a token (blockIdx.z) from those of their parts, [T,
// leaves, parts, GatedWeightCount()].
__global__ void __launch_bounds__(kAddThreads)
    AddPartsKernel(int width, int hidden, int parts, const float* from, GatedGradients to) {
  const int weights = GatedWeightCount(width, hidden);
  const int weight = static_cast<int>(blockIdx.x) * kAddThreads + static_cast<int>(threadIdx.x);
  if (weight >= weights) return;
  const int64_t leaf = blockIdx.y;
  const int64_t token = blockIdx.z;
  from += (token * gridDim.y + leaf) * parts * weights + weight;
  float sums[kMostParts];
#pragma unroll
  for (int part = 0; part < kMostParts; ++part) {
    sums[part] = part < parts ? from[part * weights] : 0;
  }
#pragma unroll
  for (int step = 1; step < kMostParts; step *= 2) {
#pragma unroll
    for (int part = 0; part < kMostParts; part += 2 * step) {
      if (step < parts) sums[part] += sums[part + step];
    }
  }
  const auto store = [&](const LeafTarget& target, int place) {
    target.data[token * target.map_stride + leaf * target.leaf_stride + place] = sums[0];
  };
  const int up = 2 * hidden * width;
  const int down = hidden * width;
  if (weight < up) {
    store(to.up, weight);
  } else if (weight < up + down) {
    store(to.down, weight - up);
  } else {
    store(to.residual, weight - up - down);
  }
}

Arguments MakeArguments(const GatedNetwork& network, const GatedWeights<float>& weights) {
  return {static_cast<int>(network.width),
          static_cast<int>(network.hidden),
          network.activation,
          weights,
          FastDivisor(network.width),
          FastDivisor(network.hidden)};
}

constexpr int64_t kMostWidth = 32;
// The longest chain, 2 H + D, is within one of the CPU's blocks (kReductionBlock).
constexpr int64_t kMostHidden = 96;
static_assert(2 * kMostHidden + kMostWidth <= kReductionBlock);
static_assert(kMostWidth <= 4 * kWarps);

// Calls call with the least compiled width that holds D, as a std::integral_constant.
template <typename Call>
auto WithWidth(const GatedNetwork& network, const Call& call) {
  if (network.width <= 16) return call(std::integral_constant<int, 16>{});
  if (network.width <= 28) return call(std::integral_constant<int, 28>{});
  return call(std::integral_constant<int, kMostWidth>{});
}

template <typename A>
void CheckViews(const GatedNetwork& network, const Activations<const A>& a,
                const Activations<const A>& b) {
  CHECK(a.tokens == network.tokens && a.features == network.width && b.tokens == network.tokens &&
        b.features == network.width && a.rows == b.rows);
}

void ForwardInChains(Stream& stream, const GatedNetwork& network,
                     const GatedWeights<float>& weights, Activations<const float> x,
                     Activations<float> z) {
  const dim3 grid(Blocks(x.rows, kForwardTiles * kForwardRows),
                  static_cast<unsigned>(network.tokens));
  WithWidth(network, [&](auto width) {
    LaunchWithSharedMemory(stream, grid, kForwardThreads, ForwardBytes<width>(network),
                           ForwardKernel<width>, MakeArguments(network, weights), x, z);
  });
}

void BackwardInChains(Stream& stream, const GatedNetwork& network,
                      const GatedWeights<float>& weights, const LeafShape& leaves,
                      Activations<const float> x, Activations<const float> dz,
                      Activations<float> dx, const GatedGradients& gradients, float* scratch) {
  const ChainOrder order(leaves, network.tokens);
  const GatedGradients to =
      order.parts == 1 ? gradients : GatedPartTargets(network, leaves.leaves, order.parts, scratch);
  const dim3 grid(static_cast<unsigned>(leaves.leaves), static_cast<unsigned>(network.tokens),
                  static_cast<unsigned>(order.parts));
  WithWidth(network, [&](auto width) {
    LaunchWithSharedMemory(stream, grid, kBackwardThreads, BackwardBytes<width>(network),
                           BackwardKernel<width>, MakeArguments(network, weights), order, x, dz, dx,
                           to);
  });
  if (order.parts > 1) {
    AddGatedParts(stream, network, leaves.leaves, order.parts, scratch, gradients);
  }
}

}  // namespace

bool FitsMultiprocessor(const GatedNetwork& network, int shared_bytes) {
  if (network.precision != Precision::kFloat32) {
    const int bytes = network.precision == Precision::kTf32 ? TensorGatedBytes<float>(network)
                                                            : TensorGatedBytes<BFloat16>(network);
    return bytes > 0 && bytes <= shared_bytes;
  }
  if (network.width > kMostWidth || network.hidden > kMostHidden) return false;
  const int d = static_cast<int>(network.width);
  const int h = static_cast<int>(network.hidden);
  const int tiles = Tiles(2 * h, d) + Tiles(d, h) + Tiles(d, d);
  const int bytes = WithWidth(network, [&](auto width) {
    return std::max(ForwardBytes<width>(network), BackwardBytes<width>(network));
  });
  return tiles <= kBackwardThreads && bytes <= shared_bytes;
}
bool FitsMultiprocessor(const GatedNetwork& network) {
  return FitsMultiprocessor(network, MostSharedBytes());
}

int64_t GatedScratchFloats(const GatedNetwork& network) {
  return kEnoughBlocks *
         GatedWeightCount(static_cast<int>(network.width), static_cast<int>(network.hidden));
}

GatedGradients GatedPartTargets(const GatedNetwork& network, int64_t leaves, int parts,
                                float* scratch) {
  const int64_t down = network.hidden * network.width;
  const int64_t of_part = 3 * down + network.width * network.width;
  const auto target = [&](int64_t first) -> LeafTarget {
    return {scratch + first, leaves * parts * of_part, of_part};
  };
  return {target(0), target(2 * down), target(3 * down)};
}

void AddGatedParts(Stream& stream, const GatedNetwork& network, int64_t leaves, int parts,
                   const float* scratch, const GatedGradients& to) {
  const int width = static_cast<int>(network.width);
  const int hidden = static_cast<int>(network.hidden);
  const dim3 grid(Blocks(GatedWeightCount(width, hidden), kAddThreads),
                  static_cast<unsigned>(leaves), static_cast<unsigned>(network.tokens));
  Launch(stream, grid, kAddThreads, AddPartsKernel, width, hidden, parts, scratch, to);
}

template <typename A>
void GatedNetworkForward(Stream& stream, const GatedNetwork& network,
                         const GatedWeights<A>& weights, Activations<const A> x, Activations<A> z) {
  CheckViews<A>(network, x, z);
  CHECK_EQ((std::is_same_v<A, BFloat16>), network.precision == Precision::kBFloat16);
  if (x.rows == 0) return;
  if constexpr (std::is_same_v<A, float>) {
    if (network.precision == Precision::kFloat32) {
      return ForwardInChains(stream, network, weights, x, z);
    }
  }
  TensorGatedForward(stream, network, weights, x, z);
}

template <typename A>
void GatedNetworkBackward(Stream& stream, const GatedNetwork& network,
                          const GatedWeights<A>& weights, const LeafShape& leaves,
                          int64_t canonical_leaves, Activations<const A> x, Activations<const A> dz,
                          Activations<A> dx, const GatedGradients& gradients, float* scratch) {
  CheckViews<A>(network, x, dz);
  CheckViews<A>(network, x, dx);
  CHECK_EQ(x.rows, leaves.rows());
  if (leaves.leaves == 0) return;
  if constexpr (std::is_same_v<A, float>) {
    if (network.precision == Precision::kFloat32) {
      return BackwardInChains(stream, network, weights, leaves, x, dz, dx, gradients, scratch);
    }
  }
  TensorGatedBackward(stream, network, weights, leaves, canonical_leaves, x, dz, dx, gradients,
                      scratch);
}

ELASTOR_INSTANTIATE(GatedNetworkForward, float, BFloat16)
ELASTOR_INSTANTIATE(GatedNetworkBackward, float, BFloat16)

}  // namespace elastor::cuda
