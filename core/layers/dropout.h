#ifndef ELASTOR_CORE_LAYERS_DROPOUT_H_
#define ELASTOR_CORE_LAYERS_DROPOUT_H_

#include "core/base/random.h"
#include "core/layers/module.h"
#include "core/kernels/elementwise.h"

namespace elastor {

// Dropout in place while training, nothing otherwise: y for the forward pass, dy for the backward
// pass (the mask is made again from Philox). `layer` numbers the model's dropout layers.
template <typename T>
void ApplyDropout(const Pass<T>& pass, double rate, uint32_t layer, Panels<T> values) {
  if (!pass.training || rate == 0) return;
  DropoutKey key;
  key.key = MakeRandomKey(pass.seed, RandomPurpose::kDropout, layer);
  key.step = pass.step;
  key.first_row = pass.first_row;
  key.rate = rate;
  pass.Share(pass.rows, [&](int64_t begin, int64_t end) {
    DropoutKey part = key;
    part.first_row += begin;
    Dropout<T>(part, values.Rows(begin, end - begin), values.Rows(begin, end - begin));
  });
}

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_DROPOUT_H_
