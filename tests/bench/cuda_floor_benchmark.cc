// What a CUDA device reaches at its best, for other figures to be compared with: matrix products of
// 8192 x 8192 x 8192 in each precision, and copies of 2 GiB on the device and 256 MiB from and to
// the host; then the products of RankElastor's Criteo model, each by itself, and its per-token
// network as one kernel and its gate alone, at 65,536 rows in 64 leaves. Prints name=value lines; a
// rate is the median over rounds. A copy on the device counts what it reads and what it writes.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <type_traits>
#include <vector>

#include "core/cuda/bfloat16.h"
#include "core/cuda/matmul.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/cuda/gated_network.h"

namespace elastor::cuda {
namespace {

constexpr int64_t kSize = 8192;
constexpr int64_t kDeviceCopyBytes = int64_t{2} << 30;
constexpr int64_t kHostCopyBytes = int64_t{256} << 20;
constexpr int kRounds = 11;

// Of the device, in seconds.
double MedianSeconds(Stream& stream, int calls, const std::function<void()>& enqueue) {
  enqueue();
  stream.Synchronize();
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    Event begin;
    Event end;
    begin.Record(stream);
    for (int i = 0; i < calls; ++i) enqueue();
    end.Record(stream);
    end.Synchronize();
    seconds.push_back(end.MillisecondsSince(begin) * 1e-3 / calls);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
  return seconds[kRounds / 2];
}

// Random operands: a device clocks higher on zeros. The values repeat every prime number of
// elements.
template <typename T>
Buffer<T> RandomMatrix(Stream& stream, int64_t elements = kSize * kSize) {
  std::vector<T> period(1048573);
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (T& value : period) value = T(uniform(generator));
  Buffer<T> matrix(&stream, elements);
  const auto step = static_cast<int64_t>(period.size());
  for (int64_t at = 0; at < matrix.size(); at += step) {
    Copy(stream, matrix.data() + at, period.data(), std::min(step, matrix.size() - at));
  }
  return matrix;
}

template <typename T>
double ProductTeraflops(Precision precision) {
  Stream stream;
  Matmul matmul(&stream, precision);
  const Buffer<T> a = RandomMatrix<T>(stream);
  const Buffer<T> b = RandomMatrix<T>(stream);
  const Buffer<T> c(&stream, kSize * kSize);
  Product<T, T> product;
  product.m = product.n = product.k = kSize;
  product.a = {.data = a.data(), .row_stride = kSize};
  product.b = {.data = b.data(), .row_stride = kSize};
  product.c = {.data = c.data(), .row_stride = kSize};
  const double seconds = MedianSeconds(stream, 4, [&] { matmul.Run(product); });
  return 2.0 * kSize * kSize * kSize / seconds * 1e-12;
}

// A linear map of the model: its `tokens` have weights [out, in] of their own.
struct Layer {
  const char* name;
  int64_t tokens;
  int64_t in;
  int64_t out;
};
constexpr Layer kLayers[] = {{"tokenizer", 15, 52, 26},
                             {"mixing", 1, 390, 390},
                             {"up_proj", 15, 26, 156},
                             {"down_proj", 15, 78, 26},
                             {"shortcut", 15, 26, 26}};
constexpr int64_t kRows = 65'536;
constexpr int64_t kLeaves = 64;

// The three products of every layer, tokens one after another as the model has them. The weights'
// gradients are a batch of leaves and tokens.
template <typename T>
void PrintLayers(Precision precision, const char* precision_name) {
  Stream stream;
  Matmul matmul(&stream, precision);
  const auto print = [&](const Layer& layer, const char* pass, const auto& product) {
    const double seconds = MedianSeconds(stream, 4, [&] { matmul.Run(product); });
    const double multiply_adds = static_cast<double>(layer.tokens * layer.in * layer.out) * kRows;
    std::printf("%s_%s.%s_ms=%.4f\n%s_%s.%s_tflops=%.1f\n", layer.name, pass, precision_name,
                seconds * 1e3, layer.name, pass, precision_name,
                2 * multiply_adds / seconds * 1e-12);
  };
  for (const Layer& layer : kLayers) {
    const auto [name, tokens, in, out] = layer;
    const Buffer<T> x = RandomMatrix<T>(stream, tokens * kRows * in);
    const Buffer<T> w = RandomMatrix<T>(stream, tokens * out * in);
    const Buffer<T> y = RandomMatrix<T>(stream, tokens * kRows * out);
    const Buffer<float> dw(&stream, kLeaves * tokens * out * in);
    Product<T, T> forward;
    forward.m = kRows;
    forward.n = out;
    forward.k = in;
    forward.a = {x.data(), in, kRows * in};
    forward.b = {w.data(), in, out * in, 0, /*transposed=*/true};
    forward.c = {y.data(), out, kRows * out};
    forward.batch = tokens;
    print(layer, "forward", forward);
    Product<T, T> backward;
    backward.m = kRows;
    backward.n = in;
    backward.k = out;
    backward.a = {y.data(), out, kRows * out};
    backward.b = {w.data(), in, out * in};
    backward.c = {x.data(), in, kRows * in};
    backward.batch = tokens;
    print(layer, "dx", backward);
    Product<T, float> gradient;
    gradient.m = out;
    gradient.n = in;
    gradient.k = kRows / kLeaves;
    gradient.a = {y.data(), out, gradient.k * out, kRows * out, /*transposed=*/true};
    gradient.b = {x.data(), in, gradient.k * in, kRows * in};
    gradient.c = {dw.data(), in, out * in, kLeaves * out * in};
    gradient.batch = kLeaves;
    gradient.outer = tokens;
    print(layer, "dw", gradient);
  }
}

// A block's per-token network: what up_proj, down_proj and shortcut are together, with the gate
// between them.
template <typename T>
void PrintGatedNetwork(Precision precision, const char* precision_name) {
  Stream stream;
  const GatedNetwork network = {.tokens = 15, .width = 26, .hidden = 78, .precision = precision};
  const int64_t tokens = network.tokens, width = network.width, hidden = network.hidden;
  if (!FitsMultiprocessor(network)) {
    std::printf("gated_network.%s=by_products\n", precision_name);
    return;
  }
  const auto view = [&](auto* data) {
    return Activations<std::remove_pointer_t<decltype(data)>>::TokenMajor(data, kRows, tokens,
                                                                          width);
  };
  const int64_t elements = kRows * tokens * width;
  const Buffer<T> x = RandomMatrix<T>(stream, elements);
  const Buffer<T> dz = RandomMatrix<T>(stream, elements);
  Buffer<T> z(&stream, elements);
  const int64_t up = 2 * hidden * width;
  const int64_t down = width * hidden;
  const int64_t residual = width * width;
  const Buffer<T> weights = RandomMatrix<T>(stream, tokens * (up + down + residual));
  const GatedWeights<T> parts = {weights.data(), weights.data() + tokens * up,
                                 weights.data() + tokens * (up + down)};
  Buffer<float> gradients(&stream, kLeaves * weights.size());
  Buffer<float> scratch(&stream, GatedScratchFloats(network));
  const auto target = [&](int64_t first, int64_t size) -> LeafTarget {
    return {gradients.data() + kLeaves * tokens * first, kLeaves * size, size};
  };
  const auto print = [&](const char* pass, const std::function<void()>& call) {
    std::printf("gated_network_%s.%s_ms=%.4f\n", pass, precision_name,
                MedianSeconds(stream, 4, call) * 1e3);
  };
  print("forward",
        [&] { GatedNetworkForward<T>(stream, network, parts, view(x.data()), view(z.data())); });
  print("backward", [&] {
    GatedNetworkBackward<T>(stream, network, parts, {kLeaves, kRows / kLeaves}, kLeaves,
                            view(x.data()), view(dz.data()), view(z.data()),
                            {target(0, up), target(up, down), target(up + down, residual)},
                            scratch.data());
  });
}

// What lies between its products when they are computed one by one.
template <typename T>
void PrintGate(const char* precision_name) {
  Stream stream;
  constexpr int64_t kTokens = 15;
  constexpr int64_t kHidden = 78;
  const int64_t elements = kRows * kTokens * kHidden;
  const Buffer<T> projected = RandomMatrix<T>(stream, 2 * elements);
  const Buffer<T> dh = RandomMatrix<T>(stream, elements);
  Buffer<T> out(&stream, 2 * elements);
  const auto view = [&](auto* data, int64_t features) {
    return Activations<std::remove_pointer_t<decltype(data)>>::TokenMajor(data, kRows, kTokens,
                                                                          features);
  };
  const auto print = [&](const char* pass, const std::function<void()>& call) {
    std::printf("gate_%s.%s_ms=%.4f\n", pass, precision_name, MedianSeconds(stream, 4, call) * 1e3);
  };
  const auto z = view(projected.data(), 2 * kHidden);
  print("forward", [&] { GatedUnit<T>(stream, Activation::kGelu, z, view(out.data(), kHidden)); });
  print("backward", [&] {
    GatedUnitBackward<T>(stream, Activation::kGelu, z, view(dh.data(), kHidden),
                         view(out.data(), 2 * kHidden));
  });
}

template <typename T>
void PrintModel(Precision precision, const char* precision_name) {
  PrintLayers<T>(precision, precision_name);
  PrintGatedNetwork<T>(precision, precision_name);
  PrintGate<T>(precision_name);
}

double CopyGigabytesPerSecond(Stream& stream, char* to, const char* from, int64_t bytes) {
  return bytes / MedianSeconds(stream, 4, [&] { Copy(stream, to, from, bytes); }) * 1e-9;
}

void PrintCopies() {
  Stream stream;
  const Buffer<char> from(&stream, kDeviceCopyBytes);
  const Buffer<char> to(&stream, kDeviceCopyBytes);
  const PinnedBuffer<char> host(kHostCopyBytes);
  FillZero(stream, from.data(), from.size());
  std::fill(host.data(), host.data() + host.size(), 0);
  std::printf("device_copy_gb_per_s=%.1f\n",
              2 * CopyGigabytesPerSecond(stream, to.data(), from.data(), kDeviceCopyBytes));
  std::printf("host_to_device_gb_per_s=%.1f\n",
              CopyGigabytesPerSecond(stream, to.data(), host.data(), kHostCopyBytes));
  std::printf("device_to_host_gb_per_s=%.1f\n",
              CopyGigabytesPerSecond(stream, host.data(), from.data(), kHostCopyBytes));
}

int Main() {
  const StatusOr<DeviceInfo> device = OpenDevice(0);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().message().c_str());
    return 2;
  }
  if (device.value().emulated) {
    std::fprintf(stderr, "an emulated device has no speed: build with --config=cuda\n");
    return 2;
  }
  std::printf("device=%s\nlibraries=%s\n", device.value().name.c_str(),
              device.value().libraries.c_str());
  std::printf("float32_tflops=%.1f\n", ProductTeraflops<float>(Precision::kFloat32));
  std::printf("tf32_tflops=%.1f\n", ProductTeraflops<float>(Precision::kTf32));
  std::printf("bfloat16_tflops=%.1f\n", ProductTeraflops<BFloat16>(Precision::kBFloat16));
  PrintCopies();
  PrintModel<float>(Precision::kFloat32, "FLOAT32");
  PrintModel<float>(Precision::kTf32, "TF32");
  PrintModel<BFloat16>(Precision::kBFloat16, "BFLOAT16");
  return 0;
}

}  // namespace
}  // namespace elastor::cuda

int main() { return elastor::cuda::Main(); }
