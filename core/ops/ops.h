#ifndef ELASTOR_CORE_OPS_OPS_H_
#define ELASTOR_CORE_OPS_OPS_H_

#include <variant>

#include "core/ops/add.h"
#include "core/ops/attention.h"
#include "core/ops/batch_norm.h"
#include "core/ops/block_transpose.h"
#include "core/ops/compressed_interaction.h"
#include "core/ops/concat.h"
#include "core/ops/dropout.h"
#include "core/ops/embedding_input.h"
#include "core/ops/factorization_pool.h"
#include "core/ops/gated_feed_forward.h"
#include "core/ops/joint_logit.h"
#include "core/ops/linear.h"
#include "core/ops/logit_sum.h"
#include "core/ops/matrix_product.h"
#include "core/ops/mean_logit.h"
#include "core/ops/mean_pool.h"
#include "core/ops/mixture.h"
#include "core/ops/multiply.h"
#include "core/ops/norm.h"
#include "core/ops/pad.h"
#include "core/ops/pairwise_dot.h"
#include "core/ops/patch_input.h"
#include "core/ops/position.h"
#include "core/ops/relu.h"
#include "core/ops/sigmoid_gate.h"
#include "core/ops/sinkhorn_mix.h"
#include "core/ops/slice.h"
#include "core/ops/softmax_gate.h"
#include "core/ops/sum_pool.h"
#include "core/ops/target_attention.h"
#include "core/ops/target_token.h"
#include "core/ops/upper_triangle.h"
#include "core/ops/weighted_pool.h"

namespace elastor {

// All ops. To register a new op, add its name here.
using Op =
    std::variant<AddOp, AppendHistoryOp, AppendTargetOp, AttentionOp, BatchNormOp, BlockTransposeOp,
                 CompressedInteractionOp, ConcatOp, DropoutOp, EmbeddingInputOp,
                 FactorizationPoolOp, GatedFeedForwardOp, GatedSumFeedForwardOp, JointLogitOp,
                 LinearOp, LogitSumOp, MatrixProductOp, MeanLogitOp, MeanPoolOp, MixtureOp,
                 MultiplyOp, NormOp, PadOp, PairwiseDotOp, PatchInputOp, PositionOp, ReadTargetOp,
                 ReluOp, SigmoidGateOp, SinkhornMixOp, SliceOp, SoftmaxGateOp, SumPoolOp,
                 TargetAttentionOp, UpperTriangleOp, WeightedPoolOp>;

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_OPS_H_
