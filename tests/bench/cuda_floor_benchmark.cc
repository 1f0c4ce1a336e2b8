// What a CUDA device reaches at its best, for other figures to be compared with: matrix products of
// 8192 x 8192 x 8192 in each precision, and copies of 2 GiB on the device and 256 MiB from and to
// the host. Prints name=value lines; a rate is the median over rounds. A copy on the device counts
// what it reads and what it writes.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "core/cuda/bfloat16.h"
#include "core/cuda/matmul.h"
#include "core/cuda/runtime.h"

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
Buffer<T> RandomMatrix(Stream& stream) {
  std::vector<T> period(1048573);
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (T& value : period) value = T(uniform(generator));
  Buffer<T> matrix(&stream, kSize * kSize);
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
  return 0;
}

}  // namespace
}  // namespace elastor::cuda

int main() { return elastor::cuda::Main(); }
