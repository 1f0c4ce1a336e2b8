#include "core/cuda/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/kernels/cpu/vec_math.h"

namespace elastor::cuda {
namespace {

// Every 513th float of either sign, so all exponents, infinities and NaNs, and the neighbourhoods
// of the functions' own bounds. No denormals: arithmetic that flushes them never makes one.
std::vector<float> Arguments() {
  std::vector<float> arguments;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += (1 << 9) + 1) {
    const bool normal = (bits & 0x7f800000) != 0 || (bits & 0x7fffffff) == 0;
    if (normal) arguments.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const float bound : {0.0f, 0.5f, 0.625f, 1.0f, 13.0f, 13.1f, 87.3f, 88.0f, 88.72f, 89.0f}) {
    for (int i = -1000; i <= 1000; ++i) {
      const float near = bound + static_cast<float>(i) * 0x1p-16f;
      arguments.insert(arguments.end(), {near, -near});
    }
  }
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  for (int i = 0; i < 1000000; ++i) arguments.push_back(normal(random));
  while (arguments.size() % kLanes<float> != 0) arguments.push_back(0);
  return arguments;
}

uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }

// NaNs are equal: their payloads are nobody's.
bool SameBits(float a, float b) { return Bits(a) == Bits(b) || (std::isnan(a) && std::isnan(b)); }

class MathTest : public testing::Test {
 protected:
  void SetUp() override { SetCanonicalFloatingPoint(); }

  // scalar(x) and vectors(v) give the same bits at all arguments that `allowed` lets through.
  template <typename Scalar, typename Vectors, typename Allowed>
  void ExpectSameBits(Scalar scalar, Vectors vectors, Allowed allowed) {
    static const std::vector<float> arguments = Arguments();
    int64_t wrong = 0;
    for (size_t i = 0; i < arguments.size(); i += kLanes<float>) {
      const FloatVec expected = vectors(Load(&arguments[i]));
      for (int lane = 0; lane < kLanes<float>; ++lane) {
        const float x = arguments[i + lane];
        if (!allowed(x) || SameBits(scalar(x), expected[lane])) continue;
        if (++wrong <= 3)
          ADD_FAILURE() << std::hex << Bits(x) << ": " << Bits(scalar(x)) << ", "
                        << Bits(expected[lane]);
      }
    }
    EXPECT_EQ(wrong, 0);
  }
  template <typename Scalar, typename Vectors>
  void ExpectSameBits(Scalar scalar, Vectors vectors) {
    ExpectSameBits(scalar, vectors, [](float) { return true; });
  }
};

TEST_F(MathTest, Exp) {
  ExpectSameBits([](float x) { return Exp(x); }, [](FloatVec v) { return elastor::Exp(v); });
}

TEST_F(MathTest, Log1pOfUnit) {
  ExpectSameBits([](float x) { return Log1pOfUnit(x); },
                 [](FloatVec v) { return elastor::Log1pOfUnit(v); },
                 [](float x) { return x >= 0 && x <= 1; });
}

TEST_F(MathTest, Log) {
  ExpectSameBits([](float x) { return Log(x); }, [](FloatVec v) { return elastor::Log(v); },
                 [](float x) { return x > 0 && std::isfinite(x); });
}

TEST_F(MathTest, Sigmoid) {
  ExpectSameBits([](float x) { return Sigmoid(x); },
                 [](FloatVec v) { return elastor::Sigmoid(v); });
}

TEST_F(MathTest, Normal) {
  ExpectSameBits([](float x) { return NormalDistribution(x).density; },
                 [](FloatVec v) { return elastor::NormalDistribution(v).density; },
                 [](float x) { return !std::isnan(x); });  // of NaN: any bits
  ExpectSameBits([](float x) { return NormalDistribution(x).cumulative; },
                 [](FloatVec v) { return elastor::NormalDistribution(v).cumulative; });
}

TEST_F(MathTest, Activations) {
  ExpectSameBits([](float x) { return Gelu(x).value; },
                 [](FloatVec v) { return elastor::Gelu(v).value; });
  ExpectSameBits([](float x) { return Gelu(x).slope; },
                 [](FloatVec v) { return elastor::Gelu(v).slope; });
  ExpectSameBits([](float x) { return Swish(x).value; },
                 [](FloatVec v) { return elastor::Swish(v).value; });
  ExpectSameBits([](float x) { return TanhAndSlope(x).value; },
                 [](FloatVec v) { return elastor::TanhAndSlope(v).value; });
  ExpectSameBits([](float x) { return TanhAndSlope(x).slope; },
                 [](FloatVec v) { return elastor::TanhAndSlope(v).slope; });
  ExpectSameBits([](float x) { return Swish(x).slope; },
                 [](FloatVec v) { return elastor::Swish(v).slope; });
  ExpectSameBits([](float x) { return Relu(x).value; },
                 [](FloatVec v) { return elastor::ReluAndSlope(v).value; });
  ExpectSameBits([](float x) { return Relu(x).slope; },
                 [](FloatVec v) { return elastor::ReluAndSlope(v).slope; });
}

}  // namespace
}  // namespace elastor::cuda
