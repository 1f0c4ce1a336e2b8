#ifndef ELASTOR_CORE_OPS_KERNEL_TRAITS_H_
#define ELASTOR_CORE_OPS_KERNEL_TRAITS_H_

#include <cstdint>

namespace elastor {

// How activations [rows, tokens, features] lie on a device: a row's tokens together, or a token's
// rows together. The CPU's panels (core/tensor/panels.h) have one layout, called row-major here.
enum class TokenLayout { kRowMajor, kTokenMajor };

// A kernel's requirements and permissions, by which the schedule (core/graph/schedule.h) places its
// operands.
struct KernelTraits {
  // Forward: the output may lie in the memory of one of the first `in_place_inputs` inputs, if
  // nothing reads that input afterwards.
  int in_place_inputs = 0;
  // Forward: the input may lie in the output's memory, as its first features; then it is not
  // copied.
  bool extends_input = false;
  // Forward: the output is the input itself, or its features from `first_repeated` on. Where both
  // have one layout, they share memory.
  bool repeats_input = false;
  int64_t first_repeated = 0;

  // Backward reads the values of the first `reads_inputs` inputs. It may read the output's value,
  // or only its sign.
  int reads_inputs = 0;
  enum class OutputRead { kNone, kSign, kValue };
  OutputRead reads_output = OutputRead::kNone;
  // If the kernel changes its input in place, every element keeps its sign or becomes 0 together
  // with its gradient.
  bool keeps_sign = false;

  // Backward: a computed gradient may lie where the output's gradient lies, if nothing else needs
  // that gradient any more. The kernel adds an addend to the gradient it computes, which may lie
  // there too.
  bool gradient_in_place = false;
  bool adds_addend = false;

  // Used on devices. Layouts that the kernel prefers for its first input, if it has a preference,
  // and for its output's gradient. `row_major_*`: the kernel accepts no other layout.
  bool wants_token_major = false;
  bool row_major_input = false;
  bool row_major_output = false;
  bool row_major_dinput = false;
  bool row_major_doutput = false;
  // Used on devices: the output's gradient must be memory of its own, and no part of a larger
  // gradient (of a concat), since the kernel reads the tokens of all rows as one matrix.
  bool own_doutput = false;
  // The kernel takes any layout: its inputs get the layout wanted for its output, and its output's
  // gradient has the layout of its output or of its inputs' gradients.
  bool any_layout = false;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_KERNEL_TRAITS_H_
