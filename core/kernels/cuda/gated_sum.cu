#include "core/base/instantiate.h"
#include "core/kernels/cuda/activate.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

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
  __device__ Parts<kCount> Load(const Index& index) const {
    return {LoadValues<kCount>(At(a, index)), LoadValues<kCount>(At(b, index)),
            LoadValues<kCount>(At(c, index))};
  }
  template <int kCount>
  __device__ void AddBiases(const Index& index, Parts<kCount>* parts) const {
    bias_a.AddTo(index, &parts->a);
    bias_b.AddTo(index, &parts->b);
    bias_c.AddTo(index, &parts->c);
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
  __device__ Inputs<kCount> Load(const Index& index) const {
    return z.template Load<kCount>(index);
  }
  template <int kCount>
  __device__ void Store(const Index& index, Inputs<kCount> in) const {
    z.AddBiases(index, &in);
    Values<kCount> values = Activate(activation, in.b).value;
    for (int i = 0; i < kCount; ++i) values.v[i] = (in.a.v[i] + values.v[i]) * in.c.v[i];
    StoreValues<kCount>(At(h, index), values);
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
  __device__ Inputs<kCount> Load(const Index& index) const {
    return {z.template Load<kCount>(index), LoadValues<kCount>(At(dh, index))};
  }
  template <int kCount>
  __device__ void Store(const Index& index, Inputs<kCount> in) const {
    z.AddBiases(index, &in.z);
    const ValuesAndSlopes<kCount> act = Activate(activation, in.z.b);
    Values<kCount> da_values;
    Values<kCount> db_values;
    Values<kCount> dc_values;
    for (int i = 0; i < kCount; ++i) {
      da_values.v[i] = in.dh.v[i] * in.z.c.v[i];
      db_values.v[i] = da_values.v[i] * act.slope.v[i];
      dc_values.v[i] = in.dh.v[i] * (in.z.a.v[i] + act.value.v[i]);
    }
    StoreValues<kCount>(At(da, index), da_values);
    StoreValues<kCount>(At(db, index), db_values);
    StoreValues<kCount>(At(dc, index), dc_values);
  }
};

}  // namespace

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

ELASTOR_INSTANTIATE(GatedSumUnit, float, BFloat16)
ELASTOR_INSTANTIATE(GatedSumUnitBackward, float, BFloat16)

}  // namespace elastor::cuda
