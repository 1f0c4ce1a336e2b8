#include "core/base/instantiate.h"
#include "core/kernels/cuda/activate.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

template <typename A>
struct BiasActivationOp {
  Activation activation;
  Bias bias;
  Activations<A> z;
  Activations<A> y;
  bool store_z;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    return LoadValues<kCount>(At(z, index));
  }
  template <int kCount>
  __device__ void Store(const Index& index, Values<kCount> values) const {
    bias.AddTo(index, &values);
    if (store_z) StoreValues<kCount>(At(z, index), values);
    StoreValues<kCount>(At(y, index), Activate(activation, values).value);
  }
};

template <typename A>
struct ActivationBackwardOp {
  Activation activation;
  Activations<const A> z;
  Activations<const A> dy;
  Activations<A> dz;

  template <int kCount>
  struct Inputs {
    Values<kCount> z;
    Values<kCount> dy;
  };
  template <int kCount>
  __device__ Inputs<kCount> Load(const Index& index) const {
    return {LoadValues<kCount>(At(z, index)), LoadValues<kCount>(At(dy, index))};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Inputs<kCount>& in) const {
    Values<kCount> d = Activate(activation, in.z).slope;
    for (int i = 0; i < kCount; ++i) d.v[i] *= in.dy.v[i];
    StoreValues<kCount>(At(dz, index), d);
  }
};

template <typename A>
struct GatedUnitOp {
  Activation activation;
  Activations<const A> p;
  Activations<const A> q;
  Activations<A> h;

  template <int kCount>
  struct Inputs {
    Values<kCount> p;
    Values<kCount> q;
  };
  template <int kCount>
  __device__ Inputs<kCount> Load(const Index& index) const {
    return {LoadValues<kCount>(At(p, index)), LoadValues<kCount>(At(q, index))};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Inputs<kCount>& in) const {
    Values<kCount> values = Activate(activation, in.p).value;
    for (int i = 0; i < kCount; ++i) values.v[i] *= in.q.v[i];
    StoreValues<kCount>(At(h, index), values);
  }
};

template <typename A>
struct GatedUnitBackwardOp {
  Activation activation;
  Activations<const A> p;
  Activations<const A> q;
  Activations<const A> dh;
  Activations<A> dp;
  Activations<A> dq;

  template <int kCount>
  struct Inputs {
    Values<kCount> p;
    Values<kCount> q;
    Values<kCount> dh;
  };
  template <int kCount>
  __device__ Inputs<kCount> Load(const Index& index) const {
    return {LoadValues<kCount>(At(p, index)), LoadValues<kCount>(At(q, index)),
            LoadValues<kCount>(At(dh, index))};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Inputs<kCount>& in) const {
    const ValuesAndSlopes<kCount> act = Activate(activation, in.p);
    Values<kCount> dp_values;
    Values<kCount> dq_values;
    for (int i = 0; i < kCount; ++i) {
      dp_values.v[i] = in.dh.v[i] * (in.q.v[i] * act.slope.v[i]);
      dq_values.v[i] = in.dh.v[i] * act.value.v[i];
    }
    StoreValues<kCount>(At(dp, index), dp_values);
    StoreValues<kCount>(At(dq, index), dq_values);
  }
};

}  // namespace

template <typename A>
void BiasActivation(Stream& stream, Activation activation, const float* bias, bool shared_bias,
                    Activations<A> z, Activations<A> y) {
  const bool store_z = bias != nullptr && z.data != y.data;
  const Merge merge = bias == nullptr               ? Merge::kAll
                      : shared_bias && z.tokens > 1 ? Merge::kNone
                                                    : Merge::kTokens;
  ForEachElement<kLargestPack<A>>(
      stream, merge, ShapeOf(y).With(z).With(y),
      BiasActivationOp<A>{activation, Bias(bias, shared_bias ? 0 : z.features), z, y, store_z});
}

template <typename A>
void ActivationBackward(Stream& stream, Activation activation, Activations<const A> z,
                        Activations<const A> dy, Activations<A> dz) {
  ForEachElement<kLargestPack<A>>(stream, Merge::kAll, ShapeOf(dz).With(z).With(dy).With(dz),
                                  ActivationBackwardOp<A>{activation, z, dy, dz});
}

template <typename A>
void GatedUnit(Stream& stream, Activation activation, Activations<const A> z, Activations<A> h) {
  CHECK_EQ(z.features, 2 * h.features);
  const Activations<const A> p = z.Slice(0, h.features);
  const Activations<const A> q = z.Slice(h.features, h.features);
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, ShapeOf(h).With(p).With(q).With(h),
                                  GatedUnitOp<A>{activation, p, q, h});
}

template <typename A>
void GatedUnitBackward(Stream& stream, Activation activation, Activations<const A> z,
                       Activations<const A> dh, Activations<A> dz) {
  const int64_t hidden = dh.features;
  CHECK(z.features == 2 * hidden && dz.features == 2 * hidden);
  const GatedUnitBackwardOp<A> op{activation, z.Slice(0, hidden),  z.Slice(hidden, hidden),
                                  dh,         dz.Slice(0, hidden), dz.Slice(hidden, hidden)};
  ForEachElement<kLargestPack<A>>(
      stream, Merge::kNone, ShapeOf(dh).With(op.p).With(op.q).With(dh).With(op.dp).With(op.dq), op);
}

ELASTOR_INSTANTIATE(BiasActivation, float, BFloat16)
ELASTOR_INSTANTIATE(ActivationBackward, float, BFloat16)
ELASTOR_INSTANTIATE(GatedUnit, float, BFloat16)
ELASTOR_INSTANTIATE(GatedUnitBackward, float, BFloat16)

}  // namespace elastor::cuda
