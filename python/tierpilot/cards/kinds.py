"""Which kind of operator one of PyTorch's is: the kinds of `tierctl model describe`.

Kinds of the published features have TensorFlow's names. Operators are those that PyTorch dispatches
("aten"), without the underscore of those that work in place; docs/reference/operator-kinds.md has the table.
"""

_OPERATORS = {
    "AddV2": "add sub rsub sum_to_size add_relu",
    "Activation": """celu elu gelu glu hardsigmoid hardswish leaky_relu log_sigmoid_forward mish
        prelu _prelu_kernel rrelu_with_noise selu sigmoid silu softplus softshrink tanh""",
    "Attention": """_flash_attention_forward _efficient_attention_forward
        _native_multi_head_attention _scaled_dot_product_attention
        _scaled_dot_product_attention_math _scaled_dot_product_efficient_attention
        _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
        _transformer_encoder_layer_fwd""",
    "AvgPool": """_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d avg_pool1d
        avg_pool2d avg_pool3d""",
    "BatchNorm": """_batch_norm_with_update _native_batch_norm_legit
        _native_batch_norm_legit_no_training cudnn_batch_norm native_batch_norm""",
    "Concat": "cat stack",
    "Conv2D": "_convolution conv1d conv2d conv3d convolution mkldnn_convolution",
    "Dropout": "bernoulli native_dropout",
    "Elementwise": """_to_copy abs acos asin atan atan2 binary_cross_entropy
        binary_cross_entropy_with_logits bitwise_and bitwise_not bitwise_or ceil cos cosh eq erf
        erfc exp exp2 expm1 floor floor_divide fmod ge gt huber_loss isinf isnan le lerp log log10
        log1p log2 logical_and logical_not logical_or lt masked_fill maximum minimum mse_loss ne neg
        nll_loss_forward nll_loss2d_forward pow reciprocal remainder round rsqrt sign sin sinh
        smooth_l1_loss sqrt square tan tril triu trunc where xlogy""",
    "Gather": """_embedding_bag _embedding_bag_forward_only _index_put_impl embedding gather index
        index_add index_copy index_fill index_put index_select masked_select one_hot scatter
        scatter_add scatter_reduce take""",
    "LayerNorm": """_fused_rms_norm native_group_norm native_layer_norm norm
        linalg_vector_norm renorm""",
    "MatMul": """_sparse_addmm _sparse_mm addbmm addmm addmv addr baddbmm bmm dot linear matmul mm mv
        outer""",
    "MaxPool": """adaptive_max_pool2d adaptive_max_pool3d max_pool1d max_pool2d
        max_pool2d_with_indices max_pool3d_with_indices mkldnn_max_pool2d""",
    "Mul": "addcdiv addcmul div mul",
    "Recurrent": "_cudnn_rnn _thnn_fused_gru_cell _thnn_fused_lstm_cell mkldnn_rnn_layer",
    "Reduce": """all amax amin any argmax argmin argsort count_nonzero cumprod cumsum kthvalue
        logcumsumexp logsumexp max mean median min mode prod segment_reduce sort std std_mean sum
        topk unique_consecutive var var_mean""",
    "ReLU": "clamp clamp_max clamp_min hardtanh relu relu6 threshold",
    "Resize": """upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d
        upsample_nearest2d upsample_nearest3d upsample_trilinear3d _upsample_nearest_exact2d""",
    "Shape": """_reshape_alias _unsafe_view alias arange as_strided broadcast_tensors
        channel_shuffle chunk clone col2im constant_pad_nd contiguous copy detach diag diagonal
        empty empty_like empty_strided expand eye fill flip full full_like im2col lift_fresh
        lift_fresh_copy linspace narrow new_empty new_full new_ones new_zeros normal ones ones_like
        pad pixel_shuffle pixel_unshuffle rand rand_like randint randn randn_like random randperm
        reflection_pad1d reflection_pad2d repeat repeat_interleave replication_pad1d
        replication_pad2d reshape resize roll scalar_tensor select slice split split_with_sizes
        squeeze to_sparse unbind unfold uniform unsafe_chunk unsafe_split unsqueeze view
        view_as_complex view_as_real zero zeros zeros_like""",
    "Softmax": "_log_softmax _softmax _safe_softmax",
    "Transpose": "adjoint movedim permute swapaxes t transpose",
}

_KINDS = {name: kind for kind, names in _OPERATORS.items() for name in names.split()}
# Neither compute nor make a value that a model goes on with.
IGNORED = frozenset(
    """_has_compatible_shallow_copy_type _local_scalar_dense _nested_tensor_from_mask_left_aligned
    is_same_size""".split()
)
# What only profilers see of a part of a pass: where it begins and ends.
IGNORED_NAMESPACES = frozenset(["profiler"])


def kind_of(name):
    """The kind of an operator by its name, as "addmm"; None where nobody knows it."""
    kind = _KINDS.get(name)
    if kind is None and name.endswith("_"):
        kind = _KINDS.get(name[:-1])
    return kind
