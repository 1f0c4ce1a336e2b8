#include "core/cuda/math.h"
#include "core/ops/cuda/element_loop.h"
#include "core/ops/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

template <int kCount>
struct ValuesAndSlopes {
  Values<kCount> value;
  Values<kCount> slope;
};

template <int kCount, typename Function>
__device__ inline ValuesAndSlopes<kCount> Map(const Values<kCount>& x, Function function) {
  ValuesAndSlopes<kCount> results;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const ValueAndSlope result = function(x.v[i]);
    results.value.v[i] = result.value;
    results.slope.v[i] = result.slope;
  }
  return results;
}

// One branch for the whole pack, alike in all threads.
template <int kCount>
__device__ inline ValuesAndSlopes<kCount> Activate(Activation activation, const Values<kCount>& x) {
  switch (activation) {
    case Activation::kGelu:
      return Map(x, [](float v) { return Gelu(v); });
    case Activation::kSwish:
      return Map(x, [](float v) { return Swish(v); });
    case Activation::kRelu:
      return Map(x, [](float v) { return Relu(v); });
    case Activation::kIdentity:
      break;
  }
  return Map(x, [](float v) { return ValueAndSlope{v, 1.0f}; });
}

// A bias per feature, or none.
struct Bias {
  const float* data = nullptr;
  int64_t token_stride = 0;
  bool aligned = false;  // packs may be read at once

  // Elements that packs of views start at start aligned packs of the bias too.
  Bias(const float* data, int64_t token_stride)
      : data(data),
        token_stride(token_stride),
        aligned(reinterpret_cast<uintptr_t>(data) % 16 == 0 && token_stride % 4 == 0) {}

  template <int kCount>
  __device__ void AddTo(const Place& place, Values<kCount>* values) const {
    if (data == nullptr) return;
    const float* const bias = data + place.token * token_stride + place.feature;
    constexpr int kPack = kCount < 4 ? kCount : 4;
    for (int begin = 0; begin < kCount; begin += kPack) {
      Values<kPack> part;
      if (aligned) {
        part = LoadValues<kPack>(bias + begin);
      } else {
        for (int i = 0; i < kPack; ++i) part.v[i] = bias[begin + i];
      }
      for (int i = 0; i < kPack; ++i) values->v[begin + i] += part.v[i];
    }
  }
};

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
  __device__ Values<kCount> Load(const Place& place) const {
    return LoadValues<kCount>(At(z, place));
  }
  template <int kCount>
  __device__ void Store(const Place& place, Values<kCount> values) const {
    bias.AddTo(place, &values);
    if (store_z) StoreValues<kCount>(At(z, place), values);
    StoreValues<kCount>(At(y, place), Activate(activation, values).value);
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
  __device__ Inputs<kCount> Load(const Place& place) const {
    return {LoadValues<kCount>(At(z, place)), LoadValues<kCount>(At(dy, place))};
  }
  template <int kCount>
  __device__ void Store(const Place& place, const Inputs<kCount>& in) const {
    Values<kCount> d = Activate(activation, in.z).slope;
    for (int i = 0; i < kCount; ++i) d.v[i] *= in.dy.v[i];
    StoreValues<kCount>(At(dz, place), d);
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
  __device__ Inputs<kCount> Load(const Place& place) const {
    return {LoadValues<kCount>(At(p, place)), LoadValues<kCount>(At(q, place))};
  }
  template <int kCount>
  __device__ void Store(const Place& place, const Inputs<kCount>& in) const {
    Values<kCount> values = Activate(activation, in.p).value;
    for (int i = 0; i < kCount; ++i) values.v[i] *= in.q.v[i];
    StoreValues<kCount>(At(h, place), values);
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
  __device__ Inputs<kCount> Load(const Place& place) const {
    return {LoadValues<kCount>(At(p, place)), LoadValues<kCount>(At(q, place)),
            LoadValues<kCount>(At(dh, place))};
  }
  template <int kCount>
  __device__ void Store(const Place& place, const Inputs<kCount>& in) const {
    const ValuesAndSlopes<kCount> act = Activate(activation, in.p);
    Values<kCount> dp_values;
    Values<kCount> dq_values;
    for (int i = 0; i < kCount; ++i) {
      dp_values.v[i] = in.dh.v[i] * (in.q.v[i] * act.slope.v[i]);
      dq_values.v[i] = in.dh.v[i] * act.value.v[i];
    }
    StoreValues<kCount>(At(dp, place), dp_values);
    StoreValues<kCount>(At(dq, place), dq_values);
  }
};

// The three parts of z with their biases.
template <typename A>
struct GatedSumInputs {
  Activations<const A> a;
  Activations<const A> b;
  Activations<const A> c;
  Bias bias_a;
  Bias bias_b;
  Bias bias_c;

  GatedSumInputs(const float* bias, Activations<const A> z, int64_t hidden)
      : a(z.Slice(0, hidden)),
        b(z.Slice(hidden, hidden)),
        c(z.Slice(2 * hidden, hidden)),
        bias_a(bias, 3 * hidden),
        bias_b(bias + hidden, 3 * hidden),
        bias_c(bias + 2 * hidden, 3 * hidden) {}

  template <int kCount>
  struct Parts {
    Values<kCount> a;
    Values<kCount> b;
    Values<kCount> c;
  };
  template <int kCount>
  __device__ Parts<kCount> Load(const Place& place) const {
    return {LoadValues<kCount>(At(a, place)), LoadValues<kCount>(At(b, place)),
            LoadValues<kCount>(At(c, place))};
  }
  template <int kCount>
  __device__ void AddBiases(const Place& place, Parts<kCount>* parts) const {
    bias_a.AddTo(place, &parts->a);
    bias_b.AddTo(place, &parts->b);
    bias_c.AddTo(place, &parts->c);
  }
};

template <typename A>
struct GatedSumUnitOp {
  Activation activation;
  GatedSumInputs<A> z;
  Activations<A> h;

  template <int kCount>
  using Inputs = typename GatedSumInputs<A>::template Parts<kCount>;
  template <int kCount>
  __device__ Inputs<kCount> Load(const Place& place) const {
    return z.template Load<kCount>(place);
  }
  template <int kCount>
  __device__ void Store(const Place& place, Inputs<kCount> in) const {
    z.AddBiases(place, &in);
    Values<kCount> values = Activate(activation, in.b).value;
    for (int i = 0; i < kCount; ++i) values.v[i] = (in.a.v[i] + values.v[i]) * in.c.v[i];
    StoreValues<kCount>(At(h, place), values);
  }
};

template <typename A>
struct GatedSumUnitBackwardOp {
  Activation activation;
  GatedSumInputs<A> z;
  Activations<const A> dh;
  Activations<A> da;
  Activations<A> db;
  Activations<A> dc;

  template <int kCount>
  struct Inputs {
    typename GatedSumInputs<A>::template Parts<kCount> z;
    Values<kCount> dh;
  };
  template <int kCount>
  __device__ Inputs<kCount> Load(const Place& place) const {
    return {z.template Load<kCount>(place), LoadValues<kCount>(At(dh, place))};
  }
  template <int kCount>
  __device__ void Store(const Place& place, Inputs<kCount> in) const {
    z.AddBiases(place, &in.z);
    const ValuesAndSlopes<kCount> act = Activate(activation, in.z.b);
    Values<kCount> da_values;
    Values<kCount> db_values;
    Values<kCount> dc_values;
    for (int i = 0; i < kCount; ++i) {
      da_values.v[i] = in.dh.v[i] * in.z.c.v[i];
      db_values.v[i] = da_values.v[i] * act.slope.v[i];
      dc_values.v[i] = in.dh.v[i] * (in.z.a.v[i] + act.value.v[i]);
    }
    StoreValues<kCount>(At(da, place), da_values);
    StoreValues<kCount>(At(db, place), db_values);
    StoreValues<kCount>(At(dc, place), dc_values);
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

template <typename A>
void GatedSumUnit(Stream& stream, Activation activation, const float* bias, Activations<const A> z,
                  Activations<A> h) {
  CHECK_EQ(z.features, 3 * h.features);
  const GatedSumUnitOp<A> op{activation, GatedSumInputs<A>(bias, z, h.features), h};
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone,
                                  ShapeOf(h).With(op.z.a).With(op.z.b).With(op.z.c).With(h), op);
}

template <typename A>
void GatedSumUnitBackward(Stream& stream, Activation activation, const float* bias,
                          Activations<const A> z, Activations<const A> dh, Activations<A> dz) {
  const int64_t hidden = dh.features;
  CHECK(z.features == 3 * hidden && dz.features == 3 * hidden);
  const GatedSumUnitBackwardOp<A> op{
      activation,          GatedSumInputs<A>(bias, z, hidden), dh,
      dz.Slice(0, hidden), dz.Slice(hidden, hidden),           dz.Slice(2 * hidden, hidden)};
  ForEachElement<kLargestPack<A>>(
      stream, Merge::kNone,
      ShapeOf(dh).With(op.z.a).With(op.z.b).With(op.z.c).With(dh).With(op.da).With(op.db).With(
          op.dc),
      op);
}

#define ELASTOR_INSTANTIATE(A)                                                                   \
  template void BiasActivation<A>(Stream&, Activation, const float*, bool, Activations<A>,       \
                                  Activations<A>);                                               \
  template void ActivationBackward<A>(Stream&, Activation, Activations<const A>,                 \
                                      Activations<const A>, Activations<A>);                     \
  template void GatedUnit<A>(Stream&, Activation, Activations<const A>, Activations<A>);         \
  template void GatedUnitBackward<A>(Stream&, Activation, Activations<const A>,                  \
                                     Activations<const A>, Activations<A>);                      \
  template void GatedSumUnit<A>(Stream&, Activation, const float*, Activations<const A>,         \
                                Activations<A>);                                                 \
  template void GatedSumUnitBackward<A>(Stream&, Activation, const float*, Activations<const A>, \
                                        Activations<const A>, Activations<A>);
ELASTOR_INSTANTIATE(float)
ELASTOR_INSTANTIATE(BFloat16)
#undef ELASTOR_INSTANTIATE

}  // namespace elastor::cuda
